"""Statistics of a graph's values in a run: range, mean, NaN and infinities, operator by operator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webnn_wgpu.api.internals import context_of

from ..api.graph import MLGraph
from ..core.data_types import Array
from ..core.wording import counted
from ..display.tables import aligned, rich_table
from ..passes import PASSES
from ..plan.labels import node_label

_TITLES = ("value", "operator", "type", "min", "max", "mean", "NaN", "infinite")
_NUMBERS = range(3, len(_TITLES))

INPUT = "input"

BINS = 16
"""Parts of a histogram."""

_BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, kw_only=True)
class ValueStatistics:
    """Statistics of one value of a graph in a run.

    Attributes:
        label: the operator's label, else its name and number, or the name of a graph input.
        operator: the name of the operator in the specification, or "input".
        output: the number of the operator's output.
        type: the data type and shape, as `float32[2, 3]`.
        min, max, mean: the statistics of the finite elements. NaN if there are none.
        nan: the number of NaN elements.
        inf: the number of infinite elements.
        elements: the number of elements.
        histogram: the number of elements in each of `BINS` equal intervals from min to max. Empty unless requested.
    """

    label: str
    operator: str
    output: int
    type: str
    min: float
    max: float
    mean: float
    nan: int
    inf: int
    elements: int
    histogram: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The label, with the number of the output if that is not the first: `split_2[1]`."""
        return f"{self.label}[{self.output}]" if self.output else self.label

    @property
    def bars(self) -> str:
        """The histogram as a line of bars."""
        most = max(self.histogram, default=0)
        return "".join(_BARS[-(-n * (len(_BARS) - 1) // most)] if most else _BARS[0] for n in self.histogram)


@dataclass(frozen=True)
class GraphValues:
    """Statistics of the inputs and all intermediate values of a graph in a run. `print` shows them as a table.

    Attributes:
        values: the inputs, then the results of the operators in an order in which these can run.
        nan, inf: whether `first` looks for NaN, and for infinities.
    """

    values: tuple[ValueStatistics, ...]
    nan: bool = True
    inf: bool = True

    @property
    def first(self) -> ValueStatistics | None:
        """The first value with a NaN or infinite element. It is the origin of the others, or an input with such elements."""
        return next((v for v in self.values if (self.nan and v.nan) or (self.inf and v.inf)), None)

    def of(self, label: str) -> tuple[ValueStatistics, ...]:
        """Return the values of the operator or input with a label. Empty if there is none.

        Args:
            label: the label of the operator, or the name of the input.
        """
        return tuple(value for value in self.values if value.label == label)

    def summary(self) -> str:
        """Return a line with the first value that has a NaN or infinity, as requested."""
        first = self.first
        if first is None:
            kinds = " or ".join(name for name, wanted in (("NaN", self.nan), ("infinity", self.inf)) if wanted)
            return counted(len(self.values), "value") + (f", none with {kinds}" if kinds else "")
        return (
            f"first at {first.name} ({first.operator}): {first.nan} NaN and {first.inf} infinite of {first.elements} elements"
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each value."""
        return [
            (v.name, v.operator, v.type, *(f"{n:.6g}" for n in (v.min, v.max, v.mean)), str(v.nan), str(v.inf), *_drawn(v))
            for v in self.values
        ]

    def _table(self) -> list[tuple[str, ...]]:
        return [(*_TITLES, *(["histogram"] if any(v.histogram for v in self.values) else [])), *self.rows()]

    def __str__(self) -> str:
        return "\n".join([self.summary(), *aligned(self._table(), _NUMBERS)])

    def __rich__(self) -> Any:
        return rich_table(self.summary(), self._table(), _NUMBERS)


def _drawn(value: ValueStatistics) -> tuple[str, ...]:
    return (value.bars,) if value.histogram else ()


def values(graph: MLGraph, feeds: Mapping[str, Any], *, nan: bool = True, inf: bool = True) -> GraphValues:
    """Run the operators of a graph one by one, and return statistics of each result.

    The function compiles the source graph again without passes and with every result as an output, which takes memory for all
    of them at once. The statistics therefore include values that a fused kernel never stores. They do not include kernels that
    override others in `graph`: `watch` observes those.

    Args:
        graph: the graph.
        feeds: every input by name, as for `MLContext.compute`.
        nan: whether the report's `first` looks for NaN.
        inf: whether it looks for infinities. Masks often hold them on purpose.

    Returns:
        The statistics of the inputs and of all results.

    Raises:
        MLTypeError: a missing or unknown name, a wrong data type or size.
        InvalidStateError: the graph was destroyed or the context lost.
        OutOfMemoryError: the device cannot hold all values at once.
        OperationError: the device failed to run the graph.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"result": b.tanh(b.log(b.sub(x, y, label="difference"), label="logarithm"))})
        >>> found = debug.values(graph, {"x": np.full((2, 3), 2, np.float32), "y": np.eye(2, 3, dtype=np.float32) * 3})
        >>> found.first.label, found.first.nan, found.of("difference")[0].min
        ('logarithm', 2, -1.0)
    """
    context, source = context_of(graph), graph.source
    arrays = context.checked_inputs(graph, feeds, "values")
    results = {f"{node.id}.{i}": value for node in source.nodes for i, value in enumerate(node.outputs)}
    with context.compile(replace(source, outputs=results, aliases={}), None, [p.name for p in PASSES], "values") as every:
        computed = context.context.compute(every, arrays)
    found = [statistics(name, INPUT, 0, array.reshape(graph.inputs[name].shape)) for name, array in arrays.items()]
    for node in source.nodes:
        label = node_label(node)
        found += [statistics(label, node.op, i, computed[f"{node.id}.{i}"]) for i in range(len(node.outputs))]
    return GraphValues(tuple(found), nan, inf)


def statistics(label: str, operator: str, output: int, array: Array, histogram: bool = False) -> ValueStatistics:
    """Return the statistics of a value.

    Args:
        label: the operator that computes it, or the name of an input.
        operator: the name of the operator in the specification, or "input".
        output: the number of the operator's output.
        array: the elements.
        histogram: whether to compute the histogram.
    """
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high, mean = (float(f(finite)) for f in (np.min, np.max, np.mean)) if finite.size else (math.nan,) * 3
    nan, inf = int(np.isnan(numbers).sum()), int(np.isinf(numbers).sum())
    counts: tuple[int, ...] = ()
    if histogram and finite.size:
        with np.errstate(all="ignore"):
            parts = np.nan_to_num((finite - low) / (high - low) * BINS).clip(0, BINS - 1).astype(np.intp)
        counts = tuple(int(n) for n in np.bincount(parts, minlength=BINS))
    kind = f"{array.dtype}{list(array.shape)}"
    return ValueStatistics(
        label=label,
        operator=operator,
        output=output,
        type=kind,
        min=low,
        max=high,
        mean=mean,
        nan=nan,
        inf=inf,
        elements=array.size,
        histogram=counts,
    )
