"""Running one dispatch of a program, after all that come before it, with another source."""

from __future__ import annotations

from collections.abc import Mapping

import wgpu

from ..core.data_types import Array
from ..kernels.source_map import SourceMap
from .buffer import Buffer
from .program import Program
from .recorder import Dispatch
from .tracing import Records, Tracer


def begin_before(
    program: Program, label: str, inputs: Mapping[str, Array]
) -> tuple[wgpu.GPUCommandEncoder, Dispatch, tuple[Buffer, ...]]:
    """Write a program's inputs and record what runs before one of its dispatches. To be called under the device's lock.

    Returns:
        The encoder, the dispatch, and all buffers that a run uses.

    Raises:
        InvalidStateError: the program was destroyed, or a run in steps has not finished.
    """
    program.check()
    program._check_no_steps()
    own = program._over_own()
    program._write(inputs)
    number = next(i for i, d in enumerate(program.plan.dispatches) if d.label == label)
    encoder = program.record(own.part(0, number))
    dispatch = program._dispatches(program._ends)[number]
    return encoder, dispatch, (*program._slots, *program._ends.values())


def trace_kernel(
    program: Program, label: str, source: SourceMap, inputs: Mapping[str, Array], condition: str, limit: int
) -> Records:
    """Run a program up to one dispatch, that with a traced source, and return what it has written.

    Raises:
        OperationError: as `Tracer` says, or the device failed to run it.
        InvalidStateError: the program was destroyed, or a run in steps has not finished.
        DeviceLostError: the device is gone.
    """
    device = program.device
    with device.lock:
        planned = next(d for d in program.plan.dispatches if d.label == label)
        tracer = Tracer(device, planned.spec, source, condition, limit)
        with device.translated("tracing a kernel"):
            encoder, dispatch, buffers = begin_before(program, label, inputs)
            tracer.record(encoder, dispatch.bind_group, dispatch.grid)
        device.submit(encoder, (*buffers, tracer.buffer))
        return tracer.records()
