"""Runs of a program up to one dispatch: its bindings before it, and its results by another source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..kernels.source_map import SourceMap
from ..plan.execution_plan import PlannedDispatch
from .buffer import Buffer
from .pipelines import Pipeline, PipelineCache
from .program import Program
from .readback import StagingPool
from .recorder import Dispatch, PlainRecorder
from .timestamps import FEATURE, Timestamps
from .tracing import Records, Tracer


def _begin(program: Program, number: int, inputs: Mapping[str, Array]) -> tuple[wgpu.GPUCommandEncoder, list[Dispatch]]:
    """Write a program's inputs, record the dispatches before one, and return the encoder and the other dispatches."""
    program.check()
    program.check_no_steps()
    own = program.over_own()
    program.memory.write(inputs)
    encoder = program.device.gpu.create_command_encoder()
    program.record(own.part(0, number), encoder)
    return encoder, program.dispatches_over(program.memory.ends)[number:]


def _number(program: Program, label: str) -> int:
    return next(i for i, d in enumerate(program.plan.dispatches) if d.label == label)


def trace_kernel(
    program: Program, label: str, source: SourceMap, inputs: Mapping[str, Array], condition: str, limit: int
) -> Records:
    """Run a program up to one dispatch, which uses a traced source, and return the records of that dispatch.

    Raises:
        OperationError: the source does not compile, a value's type cannot be shown, or the device failed to run it.
        InvalidStateError: the program was destroyed, or a run in steps has not finished.
        DeviceLostError: the device is gone.
    """
    device, number = program.device, _number(program, label)
    with device.lock:
        tracer = Tracer(device, program.plan.dispatches[number].spec, source, condition, limit)
        with device.translated("tracing a kernel"):
            encoder, (dispatch, *_) = _begin(program, number, inputs)
            tracer.record(encoder, dispatch.bind_group, dispatch.grid)
        device.submit(encoder, (*program.memory.buffers(program.memory.ends), tracer.buffer))
        return tracer.records()


def found_by(program: Program, position: int, inputs: Mapping[str, Array]) -> dict[int, Array]:
    """Run the dispatches before one, and return the bytes of its resources by binding, except constants.

    Args:
        program: the program, with its installed kernels.
        position: the number of the dispatch in the plan.
        inputs: the inputs by name.

    Raises:
        InvalidStateError: the program was destroyed.
        DeviceLostError: the device is gone.
    """
    with program.device.lock:
        program.check()
        program.check_no_steps()
        program.over_own()
        with program.device.translated("running a part of a graph"):
            program.memory.write(inputs)
            program.submit(PlainRecorder(program.dispatches_over(program.memory.ends)[:position]), program.memory.ends)
            found: dict[int, Array] = {}
            planned = program.plan.dispatches[position]
            for i, bound in program.memory.resources(planned, program.memory.ends).items():
                if i < len(planned.bindings) and planned.bindings[i].kind != "constant":
                    data: Any = program.device.gpu.queue.read_buffer(bound["buffer"], bound["offset"], bound["size"])
                    found[i] = np.frombuffer(data, np.uint8)
            return found


@dataclass(frozen=True)
class Tried:
    """The results of a dispatch by the plan's own kernel and by another kernel, on the same inputs.

    Attributes:
        expected: the results of the plan's own kernel. If the operator takes several dispatches, they are those of the whole
            operator.
        actual: the results of the other kernel.
        microseconds: the time of each run of both kernels in turn, [runs, 2]. None if the device takes no timestamps.
    """

    expected: list[Array]
    actual: list[Array]
    microseconds: Array | None


def try_source(program: Program, label: str, source: SourceMap, inputs: Mapping[str, Array], runs: int) -> Tried:
    """Compare a source for one dispatch with the plan's own kernel. The installed kernel stays.

    Raises:
        OperationError: the source does not compile or fit its buffers, or the device failed to run it.
        InvalidStateError: the program was destroyed, or a run in steps has not finished.
        DeviceLostError: the device is gone.
    """
    device, number = program.device, _number(program, label)
    planned = program.plan.dispatches[number]
    with device.lock:
        program.check()
        program.over_own()
        other = PipelineCache.of(device).override(planned, source)
        program.try_kernel(planned, other, source)
        kernels = (program.pipeline_of(planned), other)
        with device.translated("trying a kernel"):
            expected, actual = (_results(program, number, kernel, inputs) for kernel in kernels)
            timed = _timed(program, number, kernels, inputs, runs) if runs and FEATURE in device.caps.features else None
        return Tried(expected, actual, timed)


def _results(program: Program, number: int, kernel: Pipeline, inputs: Mapping[str, Array]) -> list[Array]:
    """Run a program up to the end of the operator that a dispatch belongs to, and return that operator's results."""
    dispatches = program.plan.dispatches
    node = dispatches[number].node
    count = 1 if node is None else sum(1 for _ in takewhile(lambda d: d.node == node, dispatches[number:]))
    encoder, rest = _begin(program, number, inputs)
    program.record(PlainRecorder([replace(rest[0], pipeline=kernel.pipeline), *rest[1:count]]), encoder)
    program.device.submit(encoder, program.memory.buffers(program.memory.ends))
    pool = StagingPool.of(program.device)
    return [pool.read(buffer, into).result()["data"] for buffer, into in _made(program, dispatches[number])]


def _made(program: Program, planned: PlannedDispatch) -> list[tuple[Buffer, Array]]:
    """Return the buffers and empty arrays of the results of a dispatch's operator, or of the outputs of a copy."""
    plan, ends = program.plan, program.memory.ends
    if planned.node is None:
        names = [str(resource.key) for resource in planned.bindings if resource.kind == "output"]
        found = [(ends["output", name], plan.outputs[name]) for name in names]
    else:
        values = [value for value in plan.graph.nodes[planned.node].outputs if value in plan.places]
        found = [(program.memory.buffer_of(plan.places[value], ends), plan.graph.type(value)) for value in values]
    return [(buffer, np.empty(type_.shape, type_.numpy)) for buffer, type_ in found]


def _timed(program: Program, number: int, kernels: Sequence[Pipeline], inputs: Mapping[str, Array], runs: int) -> Array:
    """Run several kernels in turn for one dispatch, and return the device time of each run, [runs, kernels]."""
    encoder, (dispatch, *_) = _begin(program, number, inputs)
    timestamps = Timestamps(program.device, runs * len(kernels))
    try:
        for i in range(runs * len(kernels)):
            compute = timestamps.begin_pass(encoder, i)
            PlainRecorder([replace(dispatch, pipeline=kernels[i % len(kernels)].pipeline)]).record(compute)
            compute.end()
        timestamps.resolve(encoder)
        program.device.submit(encoder, program.memory.buffers(program.memory.ends))
        found: Array = timestamps.microseconds().reshape(runs, len(kernels))
        return found
    finally:
        timestamps.destroy()
