"""Timing of runs: the spans that a watched thread records, and their table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from webnn_wgpu import MLContext, MLGraph
from webnn_wgpu.inspection import KernelTime

KINDS = ("load", "lower", "compile", "submit", "run", "read back", "host")
"""The kinds of spans.

In order: reading the file, lowering nodes to operators, compiling a graph with the upload of its weights, writing inputs with
recording of commands. Then work of the device, copying outputs to the host, and a node on the host."""


PAUSE_S = 1e-4
"""The pause between two polls of the device during a profile, in seconds."""


SLOWEST = 10
"""The maximum number of kernels of a graph in a printed profile."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A timed activity.

    Attributes:
        kind: one of `KINDS`.
        what: the description of the activity.
        ms: the duration by the host's clock, in milliseconds.
        gpu_ms: the duration of the kernels of a "run" by the device's timestamps, in milliseconds. None without timestamps.
        kernels: each kernel of the first "run" of a graph, and its time on the device.
    """

    kind: str
    what: str
    ms: float
    gpu_ms: float | None = None
    kernels: tuple[KernelTime, ...] = ()


@dataclass
class Profile:
    """The timing of a run of a model, from `Model.profile`.

    The host measures the spans around each step, and waits for the device before it records the device's time. The device
    measures the kernels, in a further run of each graph with timestamps. That run has a pass per kernel. The
    kernels' sum can therefore exceed the span of the run.

    Attributes:
        spans: the timed activities in order, beginning with the loading of the model.
        outputs: the results of the run.
        wall_ms: the duration of the whole run in milliseconds, including compilation for new shapes.
        note: the reason for missing times of kernels, or "".
    """

    spans: list[Span] = field(default_factory=list[Span])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    wall_ms: float = 0.0
    note: str = ""

    @property
    def gpu_ms(self) -> float | None:
        """The duration of all kernels of the run on the device, in milliseconds. None without timestamps."""
        return None if self.note else sum(span.gpu_ms or 0.0 for span in self.spans)

    def total_ms(self, kind: str) -> float:
        """Return the milliseconds of all spans of a kind."""
        return sum(span.ms for span in self.spans if span.kind == kind)

    def to_json(self) -> str:
        """Return everything but the outputs as one JSON object."""
        return json.dumps(
            {
                "wall_ms": self.wall_ms,
                "gpu_ms": self.gpu_ms,
                "note": self.note,
                "spans": [asdict(span) for span in self.spans],
            }
        )

    def __str__(self) -> str:
        kinds = {span.kind for span in self.spans}
        rows: list[tuple[str, str, float | None]] = [(kind, "", self.total_ms(kind)) for kind in KINDS if kind in kinds]
        rows.append(("GPU", self.note or "by the device's timestamps, in another run with a pass per kernel", self.gpu_ms))
        rows.append(("the run", "with everything since the inputs were given", self.wall_ms))
        for span in self.spans:
            rows.append((f"  {span.kind}", span.what, span.ms))
            rows += _kernel_rows(span.kernels)
        first, second = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
        return "\n".join(
            f"{k:<{first}}  {w:<{second}}  {'' if ms is None else f'{ms:>10.3f} ms'}".rstrip() for k, w, ms in rows
        )


def _kernel_rows(kernels: Sequence[KernelTime]) -> list[tuple[str, str, float | None]]:
    ordered = sorted(kernels, key=lambda kernel: -kernel.microseconds)
    rows: list[tuple[str, str, float | None]] = [
        ("    kernel", f"{k.shader}: {k.operators}{_from(k)}", k.microseconds / 1e3) for k in ordered[:SLOWEST]
    ]
    if rest := ordered[SLOWEST:]:
        rows.append(("    kernels", f"{len(rest)} more", sum(k.microseconds for k in rest) / 1e3))
    return rows


def _from(kernel: KernelTime) -> str:
    return f", from {kernel.lines}" if kernel.places else ""


@dataclass
class ThreadTiming:
    """The records of a watched thread.

    Attributes:
        spans: the timed activities.
        runs: the index of the span and the graph, for each run of a graph.
        inputs: the last inputs of each graph.
    """

    spans: list[Span] = field(default_factory=list[Span])
    runs: list[tuple[int, MLGraph]] = field(default_factory=list[tuple[int, MLGraph]])
    inputs: dict[MLGraph, Mapping[str, Any]] = field(default_factory=dict[MLGraph, Mapping[str, Any]])

    def profile(self, outputs: dict[str, Any], wall_ms: float) -> Profile:
        """Return the profile of a run: the spans, and the kernels of each graph. Each graph runs once more for the kernels."""
        found = {graph: graph.profile(inputs) for graph, inputs in self.inputs.items() if not graph.destroyed}
        spans, shown = list(self.spans), set[MLGraph]()
        for i, graph in self.runs:
            if graph in found:
                kernels = () if graph in shown else found[graph].kernels
                spans[i] = replace(spans[i], gpu_ms=found[graph].gpu_ms, kernels=kernels)
                shown.add(graph)
        return Profile(spans, outputs, wall_ms, next((p.note for p in found.values() if p.note), ""))


_watching: ContextVar[ThreadTiming | None] = ContextVar("webnn_wgpu_watch", default=None)


@contextmanager
def watched() -> Generator[ThreadTiming]:
    """Record the activities of this thread in the block."""
    watch = ThreadTiming()
    token = _watching.set(watch)
    try:
        yield watch
    finally:
        _watching.reset(token)


@contextmanager
def span(kind: str, what: str) -> Generator[None]:
    """Record the duration of the block, if this thread is watched."""
    watch = _watching.get()
    if watch is None:
        yield
        return
    start = time.perf_counter()
    yield
    watch.spans.append(Span(kind=kind, what=what, ms=(time.perf_counter() - start) * 1e3))


def compute(context: MLContext, graph: MLGraph, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a graph, with a span for each step if this thread is watched."""
    watch = _watching.get()
    if watch is None:
        return context.compute(graph, inputs)
    what = f"{graph.operation_count} operators"
    watch.inputs[graph] = inputs
    if context.device is None:
        with span("run", what):
            results = context.compute(graph, inputs)
        watch.runs.append((len(watch.spans) - 1, graph))
        return results
    with span("submit", what):
        promise = context.compute_async(graph, inputs)
    with span("run", what):
        while not promise.done():
            time.sleep(PAUSE_S)
    watch.runs.append((len(watch.spans) - 1, graph))
    with span("read back", ", ".join(map(str, graph.outputs))):
        return promise.result()


def dispatched(graph: MLGraph, inputs: Callable[[], Mapping[str, Any]]) -> None:
    """Record the run of a graph on tensors, whose span is the last one, if this thread is watched.

    Args:
        graph: the graph.
        inputs: returns the elements of its inputs.
    """
    watch = _watching.get()
    if watch is not None:
        watch.inputs[graph] = inputs()
        watch.runs.append((len(watch.spans) - 1, graph))
