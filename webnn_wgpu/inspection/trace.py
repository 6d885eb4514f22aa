"""A profile in the Trace Event Format, which Perfetto, Chrome and speedscope read."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from .profile import GraphProfile

_HOST, _DEVICE = 1, 2
"""Numbers of the two processes that the trace shows."""


def trace(profile: GraphProfile) -> dict[str, Any]:
    """Return a run as a trace: the host's stages, the kernels in sequence, and the intermediate memory over time.

    Spec: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
    """
    events = [
        _name("process_name", _HOST, "Host"),
        _name("process_name", _DEVICE, f"Device: {profile.device}"),
        _name("thread_name", _HOST, "an ordinary run"),
        _name("thread_name", _DEVICE, "kernels"),
    ]
    walls = [stage.wall_ms * 1e3 for stage in profile.stages]
    starts = list(accumulate(walls, initial=0.0))
    for stage, start, wall in zip(profile.stages, starts, walls, strict=False):
        events.append(_span(stage.name, _HOST, start, wall, {"cpu_ms": stage.cpu_ms}))
    # Kernels begin about when the host has submitted them.
    at = starts[-2] if walls else 0.0
    for kernel in profile.kernels:
        limit = profile.limit(kernel)
        details: dict[str, Any] = {
            "operators": ", ".join(kernel.labels),
            "shader": kernel.kernel,
            "why": kernel.reason,
            "workgroups": " x ".join(map(str, kernel.grid)),
            "GB/s": round(kernel.gb_per_s, 3),
            "GFLOP/s": None if kernel.gflop_per_s is None else round(kernel.gflop_per_s, 3),
        }
        if kernel.places:
            details["from"] = ", ".join(kernel.places)
        if limit is not None:
            details |= {"limit": limit.name, "share of peak": round(limit.share, 4)}
        events.append(_span(kernel.name, _DEVICE, at, kernel.microseconds, details))
        events.append(_memory(at, kernel.live_bytes))
        at += kernel.microseconds
    if profile.kernels:
        events.append(_memory(at, 0))
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"summary": profile.summary(), "device": profile.device},
    }


def _name(kind: str, process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": process, "args": {"name": name}}


def _span(name: str, process: int, start: float, duration: float, details: dict[str, Any]) -> dict[str, Any]:
    place = {"pid": process, "tid": process}
    return {"ph": "X", "cat": "run", "name": name, "ts": start, "dur": duration, **place, "args": details}


def _memory(at: float, count: int) -> dict[str, Any]:
    return {"ph": "C", "name": "intermediate values", "ts": at, "pid": _DEVICE, "tid": _DEVICE, "args": {"bytes": count}}
