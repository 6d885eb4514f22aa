"""Running a graph to see what it takes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import MLTypeError, OutOfMemoryError
from ...ir.graph import Array
from ...plan.execution_plan import ExecutionPlan, PlannedDispatch
from ...runtime.peak import Peak
from ..kernels import Kernel
from ..peak import measured_peak
from .profile import GraphProfile, KernelTime, Stage

if TYPE_CHECKING:
    from ..graph import MLGraph

NO_TIMESTAMPS = "the device takes no timestamps: it was made without the feature 'timestamp-query'"
NO_KERNELS = "the numpy reference has no kernels"

_STAGES = ("checking the inputs", "writing them and submitting", "waiting, and reading the outputs")


def measure(graph: MLGraph, inputs: Mapping[str, Any], runs: int, peak: Peak | None) -> GraphProfile:
    """Run a graph as usual and then with timestamps, `runs` times; see `MLGraph.profile`."""
    context = graph._context
    if runs < 1:
        raise MLTypeError("runs must be counted from 1", operator="profile", got=str(runs), allowed="1 and more")
    context._checked_inputs(graph, inputs, "profile")
    clocks: list[Array] = []
    timed: list[Array] = []
    with context._guarded("profile"), context._lock:
        for _ in range(runs):
            marks = [_clock()]
            arrays = context._checked_inputs(graph, inputs, "profile")
            marks.append(_clock())
            pending = graph._executable.start(arrays, list(graph.outputs))
            marks.append(_clock())
            pending.result()
            marks.append(_clock())
            clocks.append(np.diff(marks, axis=0))
            times = graph._executable.kernel_times(arrays)
            if times is not None:
                timed.append(times)
    stages = np.median(clocks, axis=0)
    # Checking is none of the device's time: what `compute` is asked for begins when the inputs are there to be written.
    wall_ms = float(np.median([run[1:, 0].sum() for run in clocks]))
    plan = graph.plan
    common: dict[str, Any] = {
        "wall_ms": wall_ms,
        "runs": runs,
        "device": context.description,
        "stages": tuple(Stage(name, float(wall), float(cpu)) for name, (wall, cpu) in zip(_STAGES, stages, strict=True)),
    }
    if plan is None or not timed:
        return GraphProfile(kernels=(), gpu_ms=None, note=NO_KERNELS if plan is None else NO_TIMESTAMPS, **common)
    medians: list[float] = np.median(timed, axis=0).tolist()
    return GraphProfile(
        kernels=_kernels(plan, list(graph.kernels.values()), medians),
        gpu_ms=sum(medians) / 1e3,
        peak=peak or _peak(graph),
        fixed_bytes=plan.total_bytes - plan.slot_bytes,
        **common,
    )


def _clock() -> tuple[float, float]:
    """Return the host's time and the thread's, in milliseconds."""
    return time.perf_counter() * 1e3, time.thread_time() * 1e3


def _peak(graph: MLGraph) -> Peak | None:
    try:
        return measured_peak(graph._context)
    except OutOfMemoryError:  # the graph leaves no room for the probe's buffers
        return None


def _kernels(plan: ExecutionPlan, kernels: Sequence[Kernel], microseconds: Sequence[float]) -> tuple[KernelTime, ...]:
    of_node: defaultdict[int | None, float] = defaultdict(float)
    for planned, us in zip(plan.dispatches, microseconds, strict=True):
        of_node[planned.node] += us

    def operations(planned: PlannedDispatch, us: float) -> float | None:
        if planned.operations is None:
            return None
        return planned.operations * us / of_node[planned.node] if of_node[planned.node] else 0.0

    return tuple(
        KernelTime(
            name=kernel.name,
            kernel=str(kernel.spec),
            template=kernel.spec.template,
            variant=kernel.variant,
            labels=kernel.labels,
            reason=kernel.reason,
            grid=kernel.grid,
            microseconds=us,
            operations=operations(planned, us),
            touched_bytes=planned.touched_bytes,
            live_bytes=live,
        )
        for planned, kernel, us, live in zip(plan.dispatches, kernels, microseconds, plan.live_bytes(), strict=True)
    )
