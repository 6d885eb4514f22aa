"""A run divided over several submits, so that neither a driver's watchdog nor a program's frames wait for all of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from .buffer import Buffer

if TYPE_CHECKING:
    from .program import Program


def run_in_steps(
    program: Program, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer], max_ms: float
) -> Generator[tuple[int, int]]:
    """Submit a run part by part, one part for each request of the iterator.

    The program's first run in steps measures the time of each dispatch. In that run, every dispatch is a part of its own, and
    the host waits for it. No other run may begin before the last part, because it would use the same slots.

    Args:
        program: the program to run.
        inputs: its inputs.
        outputs: its outputs.
        max_ms: the maximum time of a part in milliseconds. A dispatch that takes longer is a part of its own.

    Yields:
        The number of submitted dispatches, and the number of all dispatches.

    Raises:
        InvalidStateError: the program or a buffer was destroyed, or another run in steps has not finished.
        DeviceLostError: the device is lost. The error names the part's kernels, in the first run in steps the single kernel.
    """
    device, total = program.device, len(program.plan.dispatches)
    program.begin_steps()
    try:
        measured: list[float] = []
        known = program.milliseconds
        for first, end in parts(known or [max_ms] * total, max_ms):
            with device.lock:
                recorder, ends = program.over(inputs, outputs)
                if not known:
                    device.wait()
                began = perf_counter()
                with device.running(d.label for d in program.plan.dispatches[first:end]):
                    program.submit(recorder.part(first, end), ends)
                    if not known:
                        device.wait()
                        device.check()  # a watchdog lets a wait end as if all were well
                measured.append((perf_counter() - began) * 1000)
            yield end, total
        program.milliseconds = known or measured
    finally:
        program.end_steps()


def parts(milliseconds: Sequence[float], most: float) -> list[tuple[int, int]]:
    """Return ranges of dispatches, as long as possible, none of which takes longer than `most` if it has more than one.

    >>> parts([1, 2, 9, 3, 1, 1], 4)
    [(0, 2), (2, 3), (3, 5), (5, 6)]
    """
    found: list[tuple[int, int]] = []
    first, sum_ms = 0, 0.0
    for i, took in enumerate(milliseconds):
        if i > first and sum_ms + took > most:
            found.append((first, i))
            first, sum_ms = i, 0.0
        sum_ms += took
    if milliseconds:
        found.append((first, len(milliseconds)))
    return found
