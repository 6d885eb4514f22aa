"""What a run of a graph takes on its device, kernel by kernel: made by `MLGraph.profile`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import MLTypeError
from ..ir.graph import Array
from ..plan.execution_plan import PlannedDispatch
from ..plan.planner import node_label

if TYPE_CHECKING:
    from .graph import MLGraph

NO_TIMESTAMPS = "the device takes no timestamps: it was made without the feature 'timestamp-query'"
NO_KERNELS = "the numpy reference has no kernels"

_TITLES = ("us", "share", "kernel", "workgroups", "operators", "why")
_NAMED = 3
"""Most operators that a line of a table names."""


@dataclass(frozen=True)
class KernelTime:
    """One kernel's share of a run.

    Attributes:
        name: the dispatch's name in the plan.
        kernel: the shader with its parameters.
        template: the template it is made from, `shaders/ops/<template>.wgsl.j2`.
        variant: which of the template's or its family's variants; "" where there is but one.
        labels: the operators of the source graph it computes, by label, else by name and number; each label once.
        reason: why this kernel was chosen.
        grid: workgroups in x, y, z.
        microseconds: its time on the device.
    """

    name: str
    kernel: str
    template: str
    variant: str
    labels: tuple[str, ...]
    reason: str
    grid: tuple[int, int, int]
    microseconds: float

    @property
    def shader(self) -> str:
        """The template and its variant: `matmul.subgroup`."""
        named = not self.variant or self.template.endswith(f".{self.variant}")
        return self.template if named else f"{self.template}.{self.variant}"

    @property
    def operators(self) -> str:
        """The first few of `labels`, and how many more there are."""
        more = len(self.labels) - _NAMED
        return ", ".join(self.labels[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class GraphProfile:
    """What a run took. `print` shows it as a table, and so does rich.

    Attributes:
        kernels: the kernels in the order in which they run, or as `slowest` sorts them.
        gpu_ms: all kernels together, by the device's timestamps; None where it takes none.
        wall_ms: an ordinary run from writing the inputs to having the outputs, by the host's clock.
        runs: how many runs were timed; every time is the median.
        device: where it ran.
        note: why there are no times of kernels; else "".
    """

    kernels: tuple[KernelTime, ...]
    gpu_ms: float | None
    wall_ms: float
    runs: int
    device: str
    note: str = ""

    def slowest(self, count: int | None = None) -> GraphProfile:
        """Return the profile with its kernels by time, the slowest first.

        Args:
            count: how many to keep; all by default.
        """
        ordered = sorted(self.kernels, key=lambda kernel: -kernel.microseconds)
        return replace(self, kernels=tuple(ordered[:count]))

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        return json.dumps(asdict(self), indent=2)

    def summary(self) -> str:
        """Return one line: time on the device, time of a run."""
        gpu = self.note if self.gpu_ms is None else f"GPU {self.gpu_ms:.3f} ms"
        return f"{gpu}; wall {self.wall_ms:.3f} ms" + (f" (medians of {self.runs} runs)" if self.runs > 1 else "")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each kernel: microseconds, share, kernel, workgroups, operators, why."""
        return [
            (
                f"{k.microseconds:.1f}",
                f"{k.microseconds / 10 / self.gpu_ms:.1f}%" if self.gpu_ms else "",
                k.shader,
                " x ".join(map(str, k.grid)),
                k.operators,
                k.reason,
            )
            for k in self.kernels
        ]

    def __str__(self) -> str:
        if not self.kernels:
            return self.summary()
        rows = [_TITLES, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        numbers = [[cell.rjust(width) for cell, width in zip(row[:2], widths, strict=False)] for row in rows]
        words = [[cell.ljust(width) for cell, width in zip(row[2:], widths[2:], strict=True)] for row in rows]
        return "\n".join([self.summary(), *("  ".join(a + b).rstrip() for a, b in zip(numbers, words, strict=True))])

    def __rich__(self) -> Any:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self.summary(), title_justify="left", box=box.SIMPLE_HEAD)
        for i, title in enumerate(_TITLES):
            table.add_column(title, justify="right" if i < 2 else "left", no_wrap=True, overflow="ellipsis")
        for row in self.rows():
            table.add_row(*map(Text, row))  # labels are data and no markup
        return table


def measure(graph: MLGraph, inputs: Mapping[str, Any], runs: int) -> GraphProfile:
    """Run a graph as usual and then with timestamps, `runs` times; see `MLGraph.profile`."""
    context = graph._context
    if runs < 1:
        raise MLTypeError("runs must be counted from 1", operator="profile", got=str(runs), allowed="1 and more")
    arrays = context._checked_inputs(graph, inputs, "profile")
    walls: list[float] = []
    timed: list[Array] = []
    with context._guarded("profile"), context._lock:
        for _ in range(runs):
            start = time.perf_counter()
            graph._executable.start(arrays, list(graph.outputs)).result()
            walls.append((time.perf_counter() - start) * 1e3)
            times = graph._executable.kernel_times(arrays)
            if times is not None:
                timed.append(times)
    wall_ms = float(np.median(walls))
    if graph.plan is None or not timed:
        note = NO_KERNELS if graph.plan is None else NO_TIMESTAMPS
        return GraphProfile((), None, wall_ms, runs, context.description, note)
    labels = {node.id: node_label(node) for node in graph.source.nodes}
    medians = np.median(timed, axis=0)
    kernels = [_kernel_time(d, labels, float(us)) for d, us in zip(graph.plan.dispatches, medians, strict=True)]
    return GraphProfile(tuple(kernels), float(medians.sum()) / 1e3, wall_ms, runs, context.description)


def _kernel_time(planned: PlannedDispatch, labels: Mapping[int, str], microseconds: float) -> KernelTime:
    spec = planned.spec
    return KernelTime(
        planned.label,
        str(spec),
        spec.template,
        spec.variant,
        tuple(dict.fromkeys(labels[origin.node] for origin in planned.origins)),
        planned.reason,
        planned.grid,
        microseconds,
    )
