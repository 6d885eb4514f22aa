"""Runs of one application's own kernel, without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import MLTypeError, OperationError
from ..kernels.own import own_spec
from ..kernels.source_map import map_of_source
from ..kernels.spec import Binding, Grid, KernelSpec
from .buffer import Buffer
from .device import Device
from .messages import compiler_message
from .pipelines import PipelineCache
from .readback import PendingRead
from .recorder import Dispatch, PlainRecorder
from .tracing import Tracer
from .transfers import copy_bytes
from .wrapping import WrappedBuffer


@dataclass(frozen=True)
class RunArgument:
    """One argument of a kernel: an array, a tensor's buffer, or a buffer of the caller's."""

    value: Array | Buffer | wgpu.GPUBuffer
    name: str
    access: Literal["read", "write"]


def is_gpu_buffer(value: object) -> bool:
    """Return whether a value is a `wgpu.GPUBuffer`."""
    return isinstance(value, wgpu.GPUBuffer)


def run_spec(source: str, arguments: Sequence[RunArgument]) -> KernelSpec:
    """Return the kernel of a source over some arguments."""
    return own_spec("run_wgsl", source, [Binding(name=a.name, access=a.access, element="bits8", exact=True) for a in arguments])


def run_kernel(
    device: Device, source: str, arguments: Sequence[RunArgument], grid: Grid, tracer: Tracer | None = None
) -> PendingRead | None:
    """Submit a run of a kernel, and return the pending arrays that it writes, by the names of its bindings.

    Args:
        device: the device of the run.
        source: the WGSL of the kernel.
        arguments: the resources of its bindings.
        grid: the number of workgroups.
        tracer: the same kernel, if its `dbg` statements are to run.

    Raises:
        MLTypeError: a buffer of another device or without the usage STORAGE, or one buffer twice if the kernel writes it.
        OperationError: the kernel does not compile, or a buffer is smaller than its declaration.
        InvalidStateError: a buffer was destroyed or is mapped.
        OutOfMemoryError: the device cannot hold the arrays.
    """
    with device.lock:
        with device.translated("compiling a kernel"):
            kernel = PipelineCache.of(device).get(run_spec(source, arguments))
        buffers = [_buffer(device, a) for a in arguments]
        _check_apart(arguments, buffers)
        bound = [_writable(device, a, b) for a, b in zip(arguments, buffers, strict=True)]
        bounces = [(tensor, own) for tensor, own in zip(buffers, bound, strict=True) if tensor is not own]
        entries = [
            {"binding": i, "resource": {"buffer": own.gpu, "offset": own.offset_bytes, "size": _bound_bytes(a, b)}}
            for i, (a, b, own) in enumerate(zip(arguments, buffers, bound, strict=True))
        ]
        with device.translated("the kernel"):
            group = device.gpu.create_bind_group(layout=kernel.layout, entries=entries)
            encoder = device.gpu.create_command_encoder()
            _record(encoder, [copy for t, own in bounces for copy in copy_bytes(device, t, own, t.data_bytes)])
            if tracer is not None:
                tracer.record(encoder, group, grid)
            else:
                _record(encoder, [Dispatch(pipeline=kernel.pipeline, bind_group=group, grid=grid)])
            _record(encoder, [copy for t, own in bounces for copy in copy_bytes(device, own, t, t.data_bytes)])
        windows: dict[str, tuple[int, Array]] = {}
        copied: list[tuple[Buffer, int]] = []
        total = 0
        for argument, buffer in zip(arguments, buffers, strict=True):
            if isinstance(argument.value, np.ndarray) and argument.access == "write":
                windows[argument.name] = (total, np.empty_like(argument.value))
                copied.append((buffer, total))
                total += buffer.size_bytes
        staging = device.create_staging(total) if windows else None
        if staging is not None:
            for buffer, offset in copied:
                encoder.copy_buffer_to_buffer(buffer.gpu, 0, staging, offset, buffer.size_bytes)
        try:
            device.submit(encoder, buffers if tracer is None else [*buffers, tracer.buffer], staging)
        except OperationError as error:
            found = compiler_message(str(error.__cause__), map_of_source(source, ""))
            raise OperationError("the kernel does not fit its buffers", got=found) from error
        return None if staging is None else PendingRead(device, staging, windows)


def _buffer(device: Device, argument: RunArgument) -> Buffer:
    value = argument.value
    if isinstance(value, Buffer):
        value.check()
        return value
    if isinstance(value, wgpu.GPUBuffer):
        return WrappedBuffer.of(device, value, 0, None)
    made = device.create_buffer(value.nbytes, argument.name)
    made.write(value)
    return made


def _writable(device: Device, argument: RunArgument, buffer: Buffer) -> Buffer:
    """Return memory that a kernel may write in whole words: the buffer, or a bounce buffer."""
    if argument.access == "read" or buffer.data_bytes == buffer.size_bytes:
        return buffer
    return device.create_buffer(buffer.size_bytes, argument.name)


def _record(encoder: wgpu.GPUCommandEncoder, dispatches: Sequence[Dispatch]) -> None:
    if dispatches:
        compute = encoder.begin_compute_pass()
        PlainRecorder(dispatches).record(compute)
        compute.end()


def _bound_bytes(argument: RunArgument, buffer: Buffer) -> int:
    return -(-argument.value.nbytes // 4) * 4 if isinstance(argument.value, np.ndarray) else buffer.size_bytes


def _check_apart(arguments: Sequence[RunArgument], buffers: Sequence[Buffer]) -> None:
    """Refuse one buffer behind two bindings, unless both only read it."""
    seen: dict[int, RunArgument] = {}
    for argument, buffer in zip(arguments, buffers, strict=True):
        other = seen.setdefault(id(buffer.memory), argument)
        if other is not argument and "write" in (argument.access, other.access):
            raise MLTypeError("a buffer that is written must not be bound twice", got=f"'{other.name}' and '{argument.name}'")
