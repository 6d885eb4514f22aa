"""`watch`: which operator first made a NaN, an infinity, or a number too large for float16, while a graph runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import context_of
from webnn_wgpu.core.data_types import FLOATS, Array
from webnn_wgpu.core.wording import counted
from webnn_wgpu.display.tables import aligned, rich_table
from webnn_wgpu.ir.graph import Graph, Origin
from webnn_wgpu.plan.labels import node_label
from webnn_wgpu.reference.interpreter import evaluate

from .observing import ObservedValues, observing
from .values import INPUT, GraphValues, ValueStatistics, statistics

FLOAT16_OVERFLOWS = 65520.0
"""The midpoint between the largest float16 number and its hypothetical successor, from which numbers round to infinity."""

_TITLES = ("run", "operator", "kind", "what", "elements", "first at")

Test = Callable[[Array], Array]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """A value that left the range although its operands had not.

    Attributes:
        run: the number of the run since the watch began, from 0.
        label: the label of the operator that computes it, else its name and number, or the name of a graph input.
        op: the name of the operator in the specification, or "input".
        what: the kind of the alarm: "NaN", "infinite", or "beyond float16".
        count: the number of such elements.
        elements: the number of all elements.
        index: the index of the first such element.
        stored: whether a kernel has stored it. Otherwise it is a value inside a kernel of several operators, as numpy computes
            it from the operands of that kernel.
        output: the number of the operator's output.
    """

    run: int
    label: str
    op: str
    what: str
    count: int
    elements: int
    index: tuple[int, ...]
    stored: bool
    output: int = 0

    def __str__(self) -> str:
        inside = "" if self.stored else ", inside a kernel"
        hit = f"{self.count} of {self.elements} elements {self.what}, first at {list(self.index)}"
        return f"{self.label} ({self.op}){inside}: {hit}"


@dataclass(eq=False)
class Watch:
    """The observations of `watch` so far. `print` shows them.

    Attributes:
        alarms: the values that left the range, run by run in the order of their producers.
        runs: the number of observed runs.
        values: statistics of every value of the last run, if requested: inputs, stored results, and the values inside kernels
            of several operators.
    """

    alarms: list[Alarm] = field(default_factory=list[Alarm])
    runs: int = 0
    values: GraphValues | None = None

    @property
    def first(self) -> Alarm | None:
        """The first value that left the range. None if none has."""
        return next(iter(self.alarms), None)

    def summary(self) -> str:
        """Return one line: the first value that left the range."""
        seen = f"{counted(self.runs, 'run')} watched"
        return f"{seen}: nothing left the range" if self.first is None else f"{seen}: {self.first}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table of alarms."""
        return [(str(a.run), a.label, a.op, a.what, f"{a.count} of {a.elements}", str(list(a.index))) for a in self.alarms]

    def __str__(self) -> str:
        table = aligned([_TITLES, *self.rows()], (0,)) if self.alarms else []
        return "\n".join([self.summary(), *table, *([str(self.values)] if self.values else [])])

    def __rich__(self) -> Any:
        return rich_table(self.summary(), [_TITLES, *self.rows()], (0,))

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in (_TITLES, *self.rows()))
        return f"<p><b>{escape(self.summary())}</b></p>" + f"<table>{rows}</table>" * bool(self.alarms)


@contextmanager
def watch(
    graph: MLGraph, *, nan: bool = True, inf: bool = True, f16_range: bool = True, values: bool = False
) -> Generator[Watch]:
    """Observe every value of the runs of a graph in the `with` block, and record the values that leave the range.

    A value leaves the range only if its operands had not. Masks that hold infinities on purpose, and sums with them, are
    therefore no alarms. The graph runs with its installed kernels, overrides included. The watch reads back each result, which
    takes long. It computes the values inside a kernel of several operators in numpy from the operands of the kernel.

    Args:
        graph: the graph. The watch observes its runs by `compute` and `dispatch`, but not those by `dispatch_steps` and
            `encode`.
        nan: whether to look for NaN.
        inf: whether to look for infinities.
        f16_range: whether to look for float16 numbers that overflow, and, in a graph that keeps float16 values as float32
            (`build(wide_float16=True)`), for those that would.
        values: whether to keep minimum, maximum, mean and histogram of every value of the last run.

    Yields:
        The watch, to which each run adds its alarms.

    Raises:
        InvalidStateError: the graph was destroyed, its context lost, or another observer watches it.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"z": b.tanh(b.exp(b.mul(x, x, label="square"), label="grow"), label="squash")})
        >>> with debug.watch(graph) as watch:
        ...     result = context.compute(graph, {"x": np.full((2, 3), 10, np.float32)})
        >>> result["z"].max(), watch.first.label, watch.first.what
        (np.float32(1.0), 'grow', 'infinite')
    """
    context_of(graph).check_graph(graph, "watch")
    seen = Watch()
    tests: dict[str, Test] = {}
    if nan:
        tests["NaN"] = np.isnan
    if inf:
        tests["infinite"] = np.isinf
    looker = _Looker(graph, seen, tests, f16_range, values)
    with observing(graph, looker, "watch"):
        yield seen
    looker.end_run()


class _Looker(ObservedValues):
    """The observer of a watch."""

    def __init__(self, graph: MLGraph, watch: Watch, tests: Mapping[str, Test], f16_range: bool, keep: bool) -> None:
        super().__init__(graph.optimized, self._look)
        self._watch, self._tests, self._f16_range, self._histograms = watch, tests, f16_range, keep
        self._narrow = {node.id for node in graph.source.nodes if graph.source.type(node.outputs[0]).data_type == "float16"}
        self._kept: list[ValueStatistics] = []

    def __call__(self, position: int | None, made: Mapping[int, Array]) -> None:
        """Examine the values that a run passes to its observer."""
        if position is None:
            self.end_run()
            self._watch.runs += 1
            names = {value: name for name, value in self.graph.inputs.items()}
            for value, array in made.items():
                self._see(names[value], INPUT, [array], [], (), stored=True)
        super().__call__(position, made)

    def end_run(self) -> None:
        """Store the statistics of a run's values."""
        if self._histograms and self._kept:
            self._watch.values = GraphValues(tuple(self._kept))
        self._kept = []

    def _look(self, position: int, operands: Sequence[Array | None], results: Sequence[Array | None]) -> None:
        node = self.graph.nodes[position]
        body = node.attrs.get("body")
        given = [array for array in operands if array is not None]
        if not isinstance(body, Graph):
            self._see(node_label(node), node.op, results, given, node.origins, stored=True)
            return
        self._look_inside(body, operands, dict(zip(body.outputs.values(), results, strict=True)))

    def _look_inside(
        self, body: Graph, operands: Sequence[Array | None], stored: Mapping[int, Array | None]
    ) -> Mapping[int, Array]:
        """Examine the results of a kernel of several operators, and the values that it does not store. Return all values."""
        values = {value: array for name, value in body.inputs.items() if (array := operands[int(name)]) is not None}
        known = len(values) == len(body.inputs)
        seen = list(values.values())
        for member in body.nodes:
            label, (output,) = node_label(member), member.outputs
            inner = member.attrs.get("body")
            had = [None if value is None else values.get(value) for value in member.inputs]
            if known and isinstance(inner, Graph):
                result = inner.outputs["0"]
                array = self._look_inside(inner, had, {result: stored[output]} if output in stored else {}).get(result)
            elif output in stored:
                array = stored[output]
                self._see(label, member.op, [array], seen, member.origins, stored=True)
            elif known:
                with np.errstate(all="ignore"):
                    (array,) = evaluate(body, member, had)
                self._see(label, member.op, [array], [a for a in had if a is not None], member.origins, stored=False)
            else:
                array = None
            known = known and array is not None
            if array is not None:
                values[output] = array
                seen.append(array)
        return values

    def _see(
        self,
        label: str,
        op: str,
        results: Sequence[Array | None],
        operands: Sequence[Array],
        origins: Sequence[Origin],
        *,
        stored: bool,
    ) -> None:
        """Examine the results of an operator. Results that `operands` explain cause no alarm."""
        for output, array in enumerate(results):
            if array is None:
                continue
            if self._histograms:
                self._kept.append(statistics(label, op, output, array, histogram=True))
            for what, test in self._tests_of(array, origins).items():
                hit = test(array)
                if hit.any() and not any(test(a).any() for a in operands if str(a.dtype) in FLOATS):
                    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(hit)), hit.shape))
                    count = int(np.count_nonzero(hit))
                    self._watch.alarms.append(
                        Alarm(
                            run=self._watch.runs - 1,
                            label=label,
                            op=op,
                            what=what,
                            count=count,
                            elements=array.size,
                            index=index,
                            stored=stored,
                            output=output,
                        )
                    )

    def _tests_of(self, array: Array, origins: Sequence[Origin]) -> dict[str, Test]:
        """Return the tests of a value."""
        kind = str(array.dtype)
        if kind not in FLOATS:
            return {}
        narrow = kind == "float16" or any(origin.node in self._narrow for origin in origins)
        if not (self._f16_range and narrow):
            return dict(self._tests)
        # A float16 overflow is infinite: one alarm suffices.
        others = {what: test for what, test in self._tests.items() if what != "infinite"}
        return {**others, "beyond float16": _overflows}


def _overflows(array: Array) -> Array:
    return np.abs(array.astype(np.float32)) >= FLOAT16_OVERFLOWS
