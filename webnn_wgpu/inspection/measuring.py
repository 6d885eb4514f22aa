"""Measurement of the runs of a compiled graph."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..ir.graph import Array
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch
from ..runtime.peak import Peak
from .kernels import Kernel
from .profile import GraphProfile, KernelTime, Stage

NO_TIMESTAMPS = "the device takes no timestamps: it was made without the feature 'timestamp-query'"
NO_KERNELS = "the numpy reference has no kernels"

_STAGES = ("checking the inputs", "writing them and submitting", "waiting, and reading the outputs")


class TimedProgram(Protocol):
    """A compiled graph that can be timed."""

    def start(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> TimedRun:
        """Submit a run over arrays."""
        ...

    def kernel_times(self, inputs: Mapping[str, Array]) -> Array | None:
        """Run once, and return the device time of each kernel in microseconds, or None without timestamps."""
        ...


class TimedRun(Protocol):
    """A submitted run."""

    def result(self) -> dict[str, Array]:
        """Wait for the outputs and return them."""
        ...


@dataclass(frozen=True)
class Measurement:
    """The times of several runs.

    Attributes:
        clocks: milliseconds of the stages of each run by the host's clock and by the thread's: float64[runs, stages, 2].
        kernels_us: the time of each kernel in microseconds, float64[runs, kernels]. None without timestamps.
    """

    clocks: Array
    kernels_us: Array | None


def measure(
    program: TimedProgram, checked_inputs: Callable[[], dict[str, Array]], outputs: Sequence[str], runs: int
) -> Measurement:
    """Run a compiled graph as usual and then with timestamps, `runs` times.

    Args:
        program: the compiled graph.
        checked_inputs: returns the inputs as arrays. This is the first stage of a run.
        outputs: the names of the outputs to read.
        runs: the number of runs.
    """
    clocks: list[Array] = []
    timed: list[Array] = []
    for _ in range(runs):
        marks = [_clock()]
        arrays = checked_inputs()
        marks.append(_clock())
        pending = program.start(arrays, outputs)
        marks.append(_clock())
        pending.result()
        marks.append(_clock())
        clocks.append(np.diff(marks, axis=0))
        times = program.kernel_times(arrays)
        if times is not None:
            timed.append(times)
    return Measurement(np.array(clocks), np.array(timed) if timed else None)


def profile_of(
    measured: Measurement,
    plan: ExecutionPlan | None,
    kernels: Sequence[Kernel],
    device: str,
    peak: Callable[[], Peak | None],
) -> GraphProfile:
    """Return the profile of a measurement.

    Args:
        measured: the times.
        plan: the plan of the graph. None on the numpy reference.
        kernels: the kernels of the plan, in its order.
        device: the description of the device.
        peak: returns the peak rates of the device. It is called if there are times of kernels.
    """
    stages = np.median(measured.clocks, axis=0)
    # The validation takes no device time: the run proper begins when the inputs are ready to be written.
    wall_ms = float(np.median([run[1:, 0].sum() for run in measured.clocks]))
    common: dict[str, Any] = {
        "wall_ms": wall_ms,
        "runs": len(measured.clocks),
        "device": device,
        "stages": tuple(Stage(name, float(wall), float(cpu)) for name, (wall, cpu) in zip(_STAGES, stages, strict=True)),
    }
    if plan is None or measured.kernels_us is None:
        return GraphProfile(kernels=(), gpu_ms=None, note=NO_KERNELS if plan is None else NO_TIMESTAMPS, **common)
    medians: list[float] = np.median(measured.kernels_us, axis=0).tolist()
    return GraphProfile(
        kernels=_kernels(plan, kernels, medians),
        gpu_ms=sum(medians) / 1e3,
        peak=peak(),
        fixed_bytes=plan.total_bytes - plan.slot_bytes,
        **common,
    )


def _clock() -> tuple[float, float]:
    """Return the host's time and the thread's, in milliseconds."""
    return time.perf_counter() * 1e3, time.thread_time() * 1e3


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
            places=kernel.places,
        )
        for planned, kernel, us, live in zip(plan.dispatches, kernels, microseconds, plan.live_bytes(), strict=True)
    )
