"""Where the time goes: spans that a thread notes while it is being watched, and the table made of them."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any

from webnn_wgpu import MLContext, MLGraph

KINDS = ("load", "lower", "compile", "submit", "run", "read back", "host")
"""What a span may be: reading the file; lowering nodes to operators; compiling a graph, its weights' upload included; writing
inputs and recording commands; the device at work; copying outputs to the host; a node on the host."""


PAUSE_S = 1e-4
"""How long a profile sleeps between two looks at whether the device is done."""


@dataclass(frozen=True)
class Span:
    """One thing that took time: its kind (of `KINDS`), what it was, and milliseconds."""

    kind: str
    what: str
    ms: float


@dataclass
class Profile:
    """What a run of a model took, made by `Model.profile`.

    Times are the host's, taken around each step, with the device drained before its time is noted. Kernels have no times of
    their own: nothing on the device is asked for timestamps.

    Attributes:
        spans: what took time, in order; what the model's loading took comes first.
        outputs: the results of the run.
        wall_ms: the run as a whole, compiling for new shapes included.
    """

    spans: list[Span] = field(default_factory=list[Span])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    wall_ms: float = 0.0

    def total_ms(self, kind: str) -> float:
        """Return the milliseconds of all spans of a kind."""
        return sum(span.ms for span in self.spans if span.kind == kind)

    def to_json(self) -> str:
        """Return everything but the outputs as one JSON object."""
        return json.dumps({"wall_ms": self.wall_ms, "spans": [asdict(span) for span in self.spans]})

    def __str__(self) -> str:
        rows = [(kind, "", self.total_ms(kind)) for kind in KINDS if any(s.kind == kind for s in self.spans)]
        rows.append(("the run", "with everything since the inputs were given", self.wall_ms))
        rows += [(f"  {span.kind}", span.what, span.ms) for span in self.spans]
        first, second = max(len(row[0]) for row in rows), max(len(row[1]) for row in rows)
        return "\n".join(f"{kind:<{first}}  {what:<{second}}  {ms:>10.3f} ms" for kind, what, ms in rows)


_watching: ContextVar[list[Span] | None] = ContextVar("webnn_wgpu_spans", default=None)


@contextmanager
def watched() -> Generator[list[Span]]:
    """Collect the spans of what this thread does meanwhile."""
    spans: list[Span] = []
    token = _watching.set(spans)
    try:
        yield spans
    finally:
        _watching.reset(token)


@contextmanager
def span(kind: str, what: str) -> Generator[None]:
    """Note how long something takes, if this thread is watched."""
    spans = _watching.get()
    if spans is None:
        yield
        return
    start = time.perf_counter()
    yield
    spans.append(Span(kind, what, (time.perf_counter() - start) * 1e3))


def compute(context: MLContext, graph: MLGraph, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a graph; if this thread is watched, step by step."""
    if _watching.get() is None:
        return context.compute(graph, inputs)
    what = f"{graph.operation_count} operators"
    if context.device is None:
        with span("run", what):
            return context.compute(graph, inputs)
    with span("submit", what):
        promise = context.compute_async(graph, inputs)
    with span("run", what):
        while not promise.done():
            time.sleep(PAUSE_S)
    with span("read back", ", ".join(map(str, graph.outputs))):
        return promise.result()
