"""`GraphProfile`: the times of a run and the peak rates of the device, as data and as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.errors import MLTypeError
from ..display.html import table_html
from ..display.tables import aligned, first_few, rich_table
from ..runtime.peak import Peak
from .kernels import shader_name

if TYPE_CHECKING:
    from .comparison import ProfileComparison

_TITLES = ("us", "share", "GB/s", "GFLOP/s", "of peak", "limit", "shader", "workgroups", "operators", "why")
_PLACES = "from"
"""The last column, which profiles of graph files have."""
_NUMBERS = range(5)
_NAMES, _SENTENCES = (5, 6, 7), (8,)
_OPTIONAL = (9, 7, 3, 2, 1)
"""The columns that narrow terminals leave out, in this order: the operators of a slow kernel are shown in full."""

_FORMAT = 1
"""Of the JSON that `to_json` writes."""

_LEAST_SHARE = 0.1
"""Of a peak, below which a kernel is bound by neither: by its start, by waiting for itself, or by too few invocations."""

Plot = Literal["roofline", "timeline", "memory"]
"""The plots that `GraphProfile.plot` draws."""


@dataclass(frozen=True, kw_only=True)
class KernelTime:
    """One kernel's share of a run.

    Attributes:
        name: the dispatch's name in the plan.
        kernel: the shader with its parameters.
        template: the template it is made from, `shaders/ops/<template>.wgsl.j2`.
        variant: the variant of the template or its family, or "" if there is only one.
        labels: the operators of the source graph that it computes, each once: the label, else name and number.
        reason: the reason for the choice of this kernel. For an overridden kernel, the source of the override.
        grid: the number of workgroups in x, y, z.
        microseconds: its time on the device.
        operations: arithmetic operations by the operators' definitions. Kernels that compute one operator together share its
            operations by their times. None where nothing is known of the kernel.
        touched_bytes: bytes that it reads and writes if it reads everything that it needs once.
        live_bytes: bytes of the intermediate values that are needed while it runs, its own results included.
        places: the lines of a graph file that the operators come from. Empty for other graphs.
    """

    name: str
    kernel: str
    template: str
    variant: str
    labels: tuple[str, ...]
    reason: str
    grid: tuple[int, int, int]
    microseconds: float
    operations: float | None = None
    touched_bytes: int = 0
    live_bytes: int = 0
    places: tuple[str, ...] = ()

    @property
    def shader(self) -> str:
        """The template and its variant: `matmul.subgroup`."""
        return shader_name(self.template, self.variant)

    @property
    def operators(self) -> str:
        """The first few of `labels`, and the number of the others."""
        return first_few(self.labels)

    @property
    def lines(self) -> str:
        """The first few of `places`, and the number of the others."""
        return first_few(self.places)

    @property
    def gb_per_s(self) -> float:
        """Gigabytes that it reads and writes per second."""
        return self.touched_bytes / self.microseconds / 1e3 if self.microseconds else 0.0

    @property
    def gflop_per_s(self) -> float | None:
        """Billions of operations per second. None if the operations are unknown."""
        if self.operations is None:
            return None
        return self.operations / self.microseconds / 1e3 if self.microseconds else 0.0

    @property
    def intensity(self) -> float | None:
        """Operations per byte. None if the operations are unknown."""
        return None if self.operations is None or not self.touched_bytes else self.operations / self.touched_bytes


@dataclass(frozen=True)
class Limit:
    """The limit of a kernel's speed.

    Attributes:
        name: "memory" or "arithmetic", the slower of the two by the device's peak rates. "neither" if the kernel is far from
            both.
        share: the share of the device's peak, from 0 on.
    """

    name: Literal["memory", "arithmetic", "neither"]
    share: float


@dataclass(frozen=True)
class Stage:
    """A part of an ordinary run on the host.

    Attributes:
        name: the work of the stage.
        wall_ms: the time by the host's clock.
        cpu_ms: the processor time of the thread that requested the run.
    """

    name: str
    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, kw_only=True)
class GraphProfile:
    """The times of a run. `print` shows them as a table, and so do rich and notebooks.

    Attributes:
        kernels: the kernels in the order in which they run, or as `slowest` sorts them.
        gpu_ms: the time of all kernels together by the device's timestamps. None without timestamps.
        wall_ms: the time of an ordinary run by the host's clock, from the write of the inputs to the arrival of the outputs.
        runs: the number of timed runs. Every time is their median.
        device: the description of the device.
        note: the reason why there are no times of kernels, or "".
        peak: the peak rates of the device. None if they were not measured.
        stages: the stages of an ordinary run on the host.
        fixed_bytes: the size of constants, inputs, outputs and uniforms, which exist during all kernels.
    """

    kernels: tuple[KernelTime, ...]
    gpu_ms: float | None
    wall_ms: float
    runs: int
    device: str
    note: str = ""
    peak: Peak | None = None
    stages: tuple[Stage, ...] = ()
    fixed_bytes: int = 0

    def slowest(self, count: int | None = None) -> GraphProfile:
        """Return the profile with its kernels by time, the slowest first.

        Args:
            count: the number of kernels to keep. None keeps all.
        """
        ordered = sorted(self.kernels, key=lambda kernel: -kernel.microseconds)
        return replace(self, kernels=tuple(ordered[:count]))

    def limit(self, kernel: KernelTime) -> Limit | None:
        """Return the limit of a kernel by the roofline model. None if operations or the device's peak are unknown.

        The peak of its memory limits a kernel with few operations per byte. The peak of its arithmetic limits one with many (S.
        Williams, A. Waterman, D. Patterson, Roofline, 2009). A share above 1 means that data came from a cache.

        Args:
            kernel: one of `kernels`.
        """
        if self.peak is None or kernel.intensity is None or kernel.gflop_per_s is None:
            return None
        if kernel.intensity < self.peak.balance:
            share, name = kernel.gb_per_s * 1e9 / self.peak.bytes_per_second, "memory"
        else:
            share, name = kernel.gflop_per_s * 1e9 / self.peak.flops, "arithmetic"
        return Limit(name if share >= _LEAST_SHARE else "neither", share)

    def compare(self, other: GraphProfile) -> ProfileComparison:
        """Return the comparison of this profile, the earlier one, with another.

        Args:
            other: the later profile.

        Example:
            >>> graph = b.build({"y": b.relu(x)})
            >>> once, again = (graph.profile({"x": np.ones((2, 3), np.float32)}) for _ in range(2))
            >>> [kernel.name for kernel in once.compare(again).kernels]
            ['relu_0']
        """
        from .comparison import compare

        return compare(self, other)

    def plot(self, what: Plot) -> str:
        """Return a plot as SVG.

        Args:
            what: the kind of plot. "roofline" shows each kernel under the roofline, "timeline" the kernels of a run in time,
                and "memory" the live bytes during a run.

        Raises:
            NotSupportedError: matplotlib is not installed. The extra `viz` installs it.
            MLTypeError: the profile lacks the data of the plot.
        """
        from .plots import plot

        return plot(self, what)

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Write the run for https://ui.perfetto.dev, `chrome://tracing` and speedscope: kernels, stages, memory over time.

        The kernels follow each other without the gaps there may be between them.

        Args:
            path: the file to write.

        Raises:
            OSError: the file cannot be written.
        """
        from .trace import trace

        Path(path).write_text(json.dumps(trace(self)), encoding="utf-8")

    def to_html(self, path: str | os.PathLike[str], title: str = "Profile") -> None:
        """Write a self-contained report with all tables, and with all plots if matplotlib is installed.

        Args:
            path: the file to write.
            title: the title of the report.

        Raises:
            OSError: the file cannot be written.
        """
        from .report import report

        Path(path).write_text(report(self, title), encoding="utf-8")

    def to_json(self) -> str:
        """Return everything as one JSON object, which `from_json` reads."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> GraphProfile:
        """Return the profile that `to_json` wrote.

        Args:
            text: the JSON text.

        Raises:
            MLTypeError: the text is no profile, or one of another version of this package.
        """
        try:
            record: Any = json.loads(text)
            if record.pop("format") != _FORMAT:
                raise ValueError("another format")
            kernels = [
                KernelTime(
                    labels=tuple(each.pop("labels")),
                    grid=tuple(each.pop("grid")),
                    places=tuple(each.pop("places", ())),
                    **each,
                )
                for each in record.pop("kernels")
            ]
            peak = record.pop("peak")
            stages = [Stage(**stage) for stage in record.pop("stages")]
            return cls(kernels=tuple(kernels), peak=peak and Peak(**peak), stages=tuple(stages), **record)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise MLTypeError(
                "the text is no profile", operator="from_json", got=str(error), allowed="a text of GraphProfile.to_json"
            ) from error

    def summary(self) -> str:
        """Return one line: the time on the device, the time of a run, and the kernels' share of it."""
        medians = f" (medians of {self.runs} runs)" if self.runs > 1 else ""
        if self.gpu_ms is None:
            return f"{self.note}; wall {self.wall_ms:.3f} ms{medians}"
        return f"GPU {self.gpu_ms:.3f} ms, {self.gpu_ms / self.wall_ms:.0%} of wall {self.wall_ms:.3f} ms{medians}"

    def excess(self) -> str:
        """Return the reason why the kernels' sum exceeds the time of a run, or "" if it does not."""
        if self.gpu_ms is None or self.gpu_ms <= self.wall_ms:
            return ""
        return "The kernels' sum exceeds a run: each kernel was timed in a pass of its own, and a run has one pass"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each kernel, from its microseconds to why it was chosen.

        Lines of a graph file's profile end with the lines of the file.
        """
        rows = [(*figures(self, k), k.shader, " x ".join(map(str, k.grid)), k.operators, k.reason) for k in self.kernels]
        if not self._has_places:
            return rows
        return [(*row, k.lines) for row, k in zip(rows, self.kernels, strict=True)]

    @property
    def _has_places(self) -> bool:
        return any(kernel.places for kernel in self.kernels)

    def _table(self) -> list[tuple[str, ...]]:
        return [(*_TITLES, _PLACES) if self._has_places else _TITLES, *self.rows()]

    def __str__(self) -> str:
        if not self.kernels:
            return self.summary()
        return "\n".join([self.summary(), *aligned(self._table(), _NUMBERS)])

    def __rich__(self) -> Any:
        return rich_table(self.summary(), self._table(), _NUMBERS, _SENTENCES, names=_NAMES, optional=_OPTIONAL)

    def _repr_html_(self) -> str:
        return table_html(self.summary(), self._table(), _NUMBERS)


def figures(profile: GraphProfile, kernel: KernelTime) -> tuple[str, str, str, str, str, str]:
    """Return a kernel's numbers as text: microseconds, share of the run, GB/s, GFLOP/s, share of the peak, and which."""
    limit = profile.limit(kernel)
    return (
        f"{kernel.microseconds:.1f}",
        f"{kernel.microseconds / 10 / profile.gpu_ms:.1f}%" if profile.gpu_ms else "",
        f"{kernel.gb_per_s:.1f}" if kernel.touched_bytes else "",
        f"{kernel.gflop_per_s:.1f}" if kernel.gflop_per_s else "",
        f"{limit.share:.0%}" if limit else "",
        limit.name if limit else "",
    )


def joined(profiles: Sequence[GraphProfile]) -> GraphProfile:
    """Return one profile of several graphs that run in sequence, at least one."""
    first = profiles[0]
    note = next((each.note for each in profiles if each.note), "")
    return replace(
        first,
        kernels=tuple(kernel for each in profiles for kernel in each.kernels),
        gpu_ms=None if note else sum(each.gpu_ms or 0.0 for each in profiles),
        wall_ms=sum(each.wall_ms for each in profiles),
        note=note,
        stages=tuple(stage for each in profiles for stage in each.stages),
        fixed_bytes=sum(each.fixed_bytes for each in profiles),
    )
