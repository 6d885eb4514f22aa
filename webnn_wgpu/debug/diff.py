"""`diff`: the first operator of a graph that computes something else than it should."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from webnn_wgpu.api.context import MLContext
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.kernels import Kernel, first_few
from webnn_wgpu.api.tables import aligned
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.ir.graph import Graph, Node
from webnn_wgpu.plan.planner import node_label
from webnn_wgpu.testing.judging import Judgement

from .comparison import Comparison, compare
from .observing import Values, observing, optimised, part_of, without
from .oracles import Oracle, OtherGraph, Reference
from .repro import Repro, kernels_repro, new_folder, operator_repro

_TITLES = ("operator", "kind", "type", "wrong", "max error", "ULP", "of allowed")


@dataclass(frozen=True, kw_only=True)
class OperatorDiff(Comparison):
    """How far the results of an operator, or of operators in one kernel, are from what its operands should give.

    Attributes:
        label: the operator, by label, else by name and number; of several in one kernel, what the plan calls them together.
        op: name of the operator in the specification; of several in one kernel the names, with a plus between them.
        labels: the operators of the source graph that it stands for, each once.
        kernels: names of the kernels that compute it, as `MLGraph.kernels` has them.
        overridden: whether one of them is a source of the caller's.
        output: which of its results the numbers are of: the one that is furthest off.
        repro_path: of the first and of the worst that are wrong, a Python file that shows it on its own; else "".
    """

    label: str
    op: str
    labels: tuple[str, ...]
    kernels: tuple[str, ...]
    overridden: bool = False
    output: int = 0
    repro_path: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, [self._title, super().__str__(), f"  repro: {self.repro_path}" * bool(self.repro_path)]))

    @property
    def _title(self) -> str:
        operators = f" of {', '.join(self.labels)}" if len(self.labels) > 1 else ""
        kernels = ", ".join(self.kernels) + (", overridden" if self.overridden else "")
        return f"{self.label} ({self.op}){operators}, kernel {kernels}:" if kernels else f"{self.label} ({self.op}):"

    def _repr_html_(self) -> str:
        repro = f"<p>repro: <code>{escape(self.repro_path)}</code></p>" * bool(self.repro_path)
        return f"<p><b>{escape(self._title)}</b></p>{super()._repr_html_()}{repro}"


@dataclass(frozen=True)
class GraphDiff:
    """What `diff` has found. `print` shows the first operator that is wrong, and the others that are.

    Attributes:
        against: what the graph was compared with.
        operators: every operator, or kernel of several, that was compared, in the order in which they ran.
        outputs: how far the graph's outputs are from those of a whole run of what it was compared with, by name. What errors a
            graph may add up is not known, so these are only told.
        uncompared: labels of what could not be compared: for its operands no accuracy is promised, or nothing is known of what
            it should compute.
    """

    against: str
    operators: tuple[OperatorDiff, ...]
    outputs: Mapping[str, Comparison]
    uncompared: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[OperatorDiff, ...]:
        """The operators that are wrong, in the order in which they ran."""
        return tuple(each for each in self.operators if not each)

    @property
    def first(self) -> OperatorDiff | None:
        """The first operator that is wrong: earlier errors do not count for it. None where all agree."""
        return next(iter(self.wrong), None)

    @property
    def worst(self) -> OperatorDiff | None:
        """The operator that is furthest off in terms of what it may be. None where all agree."""
        return max(self.wrong, key=_badness, default=None)

    def of(self, label: str) -> tuple[OperatorDiff, ...]:
        """Return what was compared of the operator of a label."""
        return tuple(each for each in self.operators if label == each.label or label in each.labels)

    def summary(self) -> str:
        """Return one line: the first operator that is wrong, or how far off the others are."""
        count = f"{len(self.operators)} operator{'s' * (len(self.operators) != 1)} against {self.against}"
        left = f"; not compared: {first_few(self.uncompared)}" if self.uncompared else ""
        if self.first is None:
            nearest = max(self.operators, key=_badness, default=None)
            most = f"; {nearest.label} is off by {nearest.share:.2f} of what it may be" if nearest and nearest.share else ""
            return f"{count}: all agree{most}{left}"
        return f"{count}: {len(self.wrong)} wrong, the first is {self.first.label} ({self.first.op}){left}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table of what is wrong: operator, kind, type, wrong elements, errors."""
        return [
            (w.label, w.op, w.type, str(w.wrong), f"{w.max_abs_error:.3g}", f"{w.max_ulp:.7g}", f"{w.share:.3g}")
            for w in self.wrong
        ]

    def __str__(self) -> str:
        lines = [self.summary()]
        if self.first is not None:
            lines += ["", str(self.first), "", *aligned([_TITLES, *self.rows()], range(3, len(_TITLES)))]
        for name, output in self.outputs.items():
            lines.append(f"output {name}, end to end: off by {output.max_abs_error:.3g}, {output.max_ulp:.7g} ULP")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in self.rows())
        head = "".join(f"<th>{title}</th>" for title in _TITLES)
        first = "" if self.first is None else f"{self.first._repr_html_()}<table><tr>{head}</tr>{rows}</table>"
        return f"<p><b>{escape(self.summary())}</b></p>{first}"


def _badness(found: OperatorDiff) -> tuple[float, float]:
    return found.share, found.max_ulp


def diff(
    graph: MLGraph,
    feeds: Mapping[str, Any],
    against: str | MLGraph | MLContext = "reference",
    *,
    folder: str | os.PathLike[str] | None = None,
) -> GraphDiff:
    """Run a graph as it is installed, and compare what each kernel stores with what it should.

    What a kernel should give is computed from the operands that it had on the device, so that an earlier error does not count
    for it, and judged by the accuracy of the operators that it computes. Kernels that `override` put in others' place are
    compared like all others. Where a kernel of several operators is wrong, these are run one by one too: if one of them is
    wrong by itself, that is named; else the kernel is, with all its labels.

    Args:
        graph: the graph.
        feeds: every input by name, as `MLContext.compute` takes them.
        against: "reference", which is numpy; a context, on which the graph is compiled anew, without what overrides its
            kernels; or another graph of the same operators, with the kernels it has: of another device, driver or variant.
        folder: where files that reproduce what is wrong are written, one set for the first operator and one for the worst;
            default a new folder among the system's temporary files.

    Returns:
        The report; `first` is None where all agree.

    Raises:
        MLTypeError: a missing or unknown name, a wrong data type or size; nothing that can be compared with.
        InvalidStateError: the graph was destroyed, its context lost, or others look at it already.
        OperationError: a device failed to run a graph.

    Numerics: Bounds are those of the operators of the graph after its passes, so passes that round less often are no errors.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"z": b.softmax(b.neg(x, label="minus"), axis=1)})
        >>> feeds = {"x": np.ones((2, 3), np.float32)}
        >>> print(debug.diff(graph, feeds).first)
        None
        >>> _ = graph.override("minus", graph.kernels["minus"].wgsl.replace("-(x0)", "x0"))
        >>> found = debug.diff(graph, feeds).first
        >>> found.label, found.op, found.max_abs_error
        ('minus', 'neg', 2.0)
    """
    context = graph._context
    arrays = context._checked_inputs(graph, feeds, "diff")
    oracle, made = _oracle(graph, against)
    try:
        run = _Run(graph, oracle)
        values = Values(optimised(graph), run.see)
        with context._guarded("diff"), context._lock, observing(graph, values, "diff"):
            results = graph._executable.start(arrays, list(graph.outputs)).result()
        run.check_copies(values.finish(), results)
        outputs = oracle.outputs(arrays)
    finally:
        if made is not None:
            made.destroy()
    compared = {name: compare(results[name], array, float("inf")) for name, array in outputs.items()}
    return run.report(compared, folder)


def _oracle(graph: MLGraph, against: str | MLGraph | MLContext) -> tuple[Oracle, MLGraph | None]:
    """Return what knows what is right, and the graph that was made for it, if one was."""
    if isinstance(against, MLContext):
        made = against.rebuild(graph)
        return OtherGraph(graph, made), made
    if isinstance(against, MLGraph):
        return OtherGraph(graph, against), None
    if against == "reference":
        return Reference(graph), None
    allowed = '"reference", an MLContext, an MLGraph'
    if against == "onnxruntime":
        hint = "Models loaded from ONNX can be compared with it: diff_model"
        raise NotSupportedError("a graph is no ONNX model", operator="diff", got=repr(against), allowed=allowed, hint=hint)
    raise MLTypeError("against must say what to compare with", operator="diff", got=repr(against), allowed=allowed)


@dataclass
class _Run:
    """One run of a graph while its operators are compared."""

    graph: MLGraph
    oracle: Oracle
    found: list[OperatorDiff] = field(default_factory=list[OperatorDiff])
    uncompared: list[str] = field(default_factory=list[str])
    repros: dict[str, tuple[int, Repro]] = field(default_factory=dict[str, "tuple[int, Repro]"])
    """What `first` and `worst` are shown by, with their positions among `found`."""

    def __post_init__(self) -> None:
        self.optimised = optimised(self.graph)
        self.kernels: dict[int | None, list[Kernel]] = {}
        if self.graph.plan is not None:
            for planned, kernel in zip(self.graph.plan.dispatches, self.graph.kernels.values(), strict=True):
                self.kernels.setdefault(planned.node, []).append(kernel)

    def see(self, position: int, operands: list[Array | None], results: list[Array | None]) -> None:
        """Compare one node's results with what they should be."""
        node = self.optimised.nodes[position]
        kernels = self.kernels.get(position, [])
        judged = self.oracle.judge(position, operands, results, by_transforms(kernels))
        if judged is None:
            self.uncompared.append(node_label(node))
            return
        labels = tuple(dict.fromkeys(label for kernel in kernels for label in kernel.labels))
        entry = _entry(node, results, judged, labels, kernels)
        if not entry and not self._split(position, node, operands):
            if entry.overridden or isinstance(node.attrs.get("body"), Graph):
                given = {v: a for v, a in zip(node.inputs, operands, strict=True) if v is not None and a is not None}
                repro = kernels_repro(self.graph, kernels, given, dict(zip(node.outputs, judged, strict=True)))
            else:
                repro = operator_repro(self.graph, node, self.optimised, operands, self.optimised.constants, judged)
            self._add(entry, repro)
        elif entry:
            self.found.append(entry)

    def _split(self, position: int, node: Node, operands: Sequence[Array | None]) -> bool:
        """Run the operators of a fused node one by one; compare them, and return whether one is wrong by itself."""
        body = node.attrs.get("body")
        if not isinstance(body, Graph):
            return False
        given = {inner: operands[int(name)] for name, inner in body.inputs.items()}
        arrays = {inner: array for inner, array in given.items() if array is not None}
        outer = {inner: node.inputs[int(name)] for name, inner in body.inputs.items()}
        constants = {inner: arrays[inner] for inner, value in outer.items() if value in self.optimised.constants}
        parts = part_of(body, body.nodes, constants, every=True)
        context = self.graph._context
        with context._compile(parts, None, without(), "diff") as alone:
            made = context.compute(alone, {name: arrays[value] for name, value in parts.inputs.items()})
        arrays |= {value: made[name] for name, value in parts.outputs.items()}
        wrong = False
        for member in body.nodes:
            had = [None if value is None else arrays[value] for value in member.inputs]
            results = [arrays[value] for value in member.outputs]
            judged = self.oracle.judge_alone(body, member, had, results)
            if judged is None:
                continue
            entry = _entry(member, results, judged, (node_label(member),), [])
            if not entry:
                wrong = True
                self._add(entry, operator_repro(self.graph, member, body, had, constants, judged))
        return wrong

    def _add(self, entry: OperatorDiff, repro: Repro) -> None:
        at = len(self.found)
        self.found.append(entry)
        self.repros.setdefault("first", (at, repro))
        if "worst" not in self.repros or _badness(entry) > _badness(self.found[self.repros["worst"][0]]):
            self.repros["worst"] = at, repro

    def check_copies(self, values: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compare outputs that are copies with what they are copies of."""
        for kernel in self.kernels.get(None, []):
            name = next(n for n in self.optimised.outputs if kernel.bindings[-1].bound_to == f"output {n}")
            if name not in values:
                continue
            result = compare(results[name], values[name], 0)
            found = OperatorDiff(
                **vars(result),
                label=kernel.name,
                op="copy",
                labels=kernel.labels or (kernel.name,),
                kernels=(kernel.name,),
                overridden=kernel.overridden,
            )
            if found:
                self.found.append(found)
            else:
                value = self.optimised.outputs[name]
                judgement = Judgement(values[name], np.zeros(values[name].shape), np.asarray(results[name] != values[name]))
                self._add(found, kernels_repro(self.graph, [kernel], {value: values[name]}, {value: judgement}, name))

    def report(self, outputs: Mapping[str, Comparison], folder: str | os.PathLike[str] | None) -> GraphDiff:
        """Return the report, with the files of what is wrong written."""
        if self.repros:
            root = Path(folder) if folder is not None else new_folder()
            for at, repro in dict(self.repros.values()).items():
                entry = self.found[at]
                path = repro.write(root, entry.label, f"{entry.op} '{entry.label}': {entry.verdict}")
                self.found[at] = replace(entry, repro_path=str(path))
        return GraphDiff(self.oracle.name, tuple(self.found), outputs, tuple(self.uncompared))


def by_transforms(kernels: Sequence[Kernel]) -> bool:
    """Return whether kernels compute a convolution by Winograd's transforms, whose bounds are wider."""
    return any(kernel.spec.template.startswith("winograd") for kernel in kernels)


def _entry(
    node: Node, results: Sequence[Array | None], judged: Sequence[Judgement], labels: tuple[str, ...], kernels: Sequence[Kernel]
) -> OperatorDiff:
    """Return what is told of a node: the numbers of the result that is furthest off."""
    pairs = zip(results, judged, strict=True)
    compared = [compare(j.expected if a is None else a, j.expected, j.allowed, j.wrong) for a, j in pairs]
    output = max(range(len(compared)), key=lambda i: (compared[i].wrong > 0, compared[i].share))
    body = node.attrs.get("body")
    return OperatorDiff(
        **vars(compared[output]),
        label=node_label(node),
        op=" + ".join(member.op for member in (body.nodes if isinstance(body, Graph) else (node,))),
        labels=labels or (node_label(node),),
        kernels=tuple(kernel.name for kernel in kernels),
        overridden=any(kernel.overridden for kernel in kernels),
        output=output,
    )
