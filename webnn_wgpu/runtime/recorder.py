"""Writing a list of dispatches into a compute pass, and submitting it, in two ways that do the same.

`PlainRecorder` uses wgpu's public API: three Python calls and their argument checks per dispatch. `RawRecorder` calls the C
functions beneath with handles taken once: less than half the CPU time. It is taken for the wgpu versions it was tested with,
and keeps the handles' owners alive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol

import wgpu

from ..core.errors import MLTypeError
from ..core.settings import recorder_name
from .device import tested_wgpu


@dataclass(frozen=True, kw_only=True)
class Dispatch:
    """One dispatch on the device: its pipeline, bind group, workgroups, and the dispatches that are always recorded with it."""

    pipeline: wgpu.GPUComputePipeline
    bind_group: wgpu.GPUBindGroup
    grid: tuple[int, int, int]
    before: tuple[Dispatch, ...] = ()
    after: tuple[Dispatch, ...] = ()


def _in_order(dispatches: Sequence[Dispatch]) -> list[Dispatch]:
    return [each for d in dispatches for each in (*d.before, d, *d.after)]


class Copy(NamedTuple):
    """A copy between two buffers, in bytes, after the dispatches."""

    source: wgpu.GPUBuffer
    source_offset: int
    destination: wgpu.GPUBuffer
    destination_offset: int
    size: int


class Recorder(Protocol):
    """An encoder of a fixed list of dispatches, which can be recorded any number of times."""

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        ...

    def submit(self, gpu: wgpu.GPUDevice, copies: Sequence[Copy] = ()) -> None:
        """Submit one pass of all dispatches, and copies after it.

        The method checks nothing: `Device.submit_by` does that.
        """
        ...

    def part(self, first: int, end: int) -> Recorder:
        """Return a recorder of the dispatches first..end-1 alone."""
        ...


class PlainRecorder:
    """Records through wgpu's public API."""

    def __init__(self, dispatches: Sequence[Dispatch]) -> None:
        self._dispatches = tuple(dispatches)

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        for dispatch in _in_order(self._dispatches):
            compute_pass.set_pipeline(dispatch.pipeline)
            compute_pass.set_bind_group(0, dispatch.bind_group)
            compute_pass.dispatch_workgroups(*dispatch.grid)

    def submit(self, gpu: wgpu.GPUDevice, copies: Sequence[Copy] = ()) -> None:
        """Submit one pass of all dispatches, and copies after it."""
        encoder = gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        self.record(compute)
        compute.end()
        for copy in copies:
            encoder.copy_buffer_to_buffer(*copy)
        gpu.queue.submit([encoder.finish()])

    def part(self, first: int, end: int) -> PlainRecorder:
        """Return a recorder of the dispatches first..end-1 alone."""
        return PlainRecorder(self._dispatches[first:end])


class RawRecorder:
    """Records through wgpu-native's C functions."""

    def __init__(self, dispatches: Sequence[Dispatch]) -> None:
        self._native = _native()
        self._owners = tuple(dispatches)
        self._commands: list[tuple[Any, Any, int, int, int]] = []
        last: Any = None
        for d in _in_order(dispatches):
            # A pipeline that is set already need not be set again.
            pipeline = None if d.pipeline is last else d.pipeline._internal
            last = d.pipeline
            self._commands.append((pipeline, d.bind_group._internal, *d.grid))

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        self._record(compute_pass._internal)

    def _record(self, handle: Any) -> None:
        lib, null = self._native.lib, self._native.null
        set_pipeline, set_bind_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        for pipeline, bind_group, x, y, z in self._commands:
            if pipeline is not None:
                set_pipeline(handle, pipeline)
            set_bind_group(handle, 0, bind_group, 0, null)
            dispatch(handle, x, y, z)

    def submit(self, gpu: wgpu.GPUDevice, copies: Sequence[Copy] = ()) -> None:
        """Submit one pass of all dispatches, and copies after it."""
        native = self._native
        made: list[Any] = []
        try:
            native.encode(self, gpu._internal, copies, made)
            native.checked.wgpuQueueSubmit(gpu.queue._internal, 1, native.new("WGPUCommandBuffer[]", made))
        finally:
            for command_buffer in made:
                native.lib.wgpuCommandBufferRelease(command_buffer)

    def encode(self, device: Any, copies: Sequence[Copy], made: list[Any]) -> None:
        """Append a finished command buffer to `made`, also one that is of no use because of an error."""
        lib, null = self._native.lib, self._native.null
        encoder = lib.wgpuDeviceCreateCommandEncoder(device, null)
        try:
            compute = lib.wgpuCommandEncoderBeginComputePass(encoder, null)
            try:
                self._record(compute)
                lib.wgpuComputePassEncoderEnd(compute)
            finally:
                lib.wgpuComputePassEncoderRelease(compute)
            for source, source_offset, destination, offset, size in copies:
                lib.wgpuCommandEncoderCopyBufferToBuffer(
                    encoder, source._internal, source_offset, destination._internal, offset, size
                )
            made.append(lib.wgpuCommandEncoderFinish(encoder, null))
        finally:
            lib.wgpuCommandEncoderRelease(encoder)

    def part(self, first: int, end: int) -> RawRecorder:
        """Return a recorder of the dispatches first..end-1 alone."""
        return RawRecorder(self._owners[first:end])


class _NativeRecorder:
    """The internals of wgpu that `RawRecorder` uses.

    Attributes:
        lib: wgpu-native's C functions.
        checked: the same functions, which here raise wgpu's errors.
        encode: `RawRecorder.encode` with wgpu's errors. wgpu collects the errors of every single C call, which takes longer
            than most calls. This function collects them once for a run.
        new: returns new C data, `new(type, content)`.
        null: the C null pointer.
    """

    def __init__(self) -> None:
        from wgpu.backends import wgpu_native
        from wgpu.backends.wgpu_native import _api

        self.lib: Any = wgpu_native.lib
        self.checked: Any = _api.libf
        self.encode: Callable[..., None] = self.checked._make_proxy_func("webnn_wgpu run", RawRecorder.encode)
        self.new: Callable[..., Any] = wgpu_native.ffi.new
        self.null: Any = wgpu_native.ffi.NULL


@cache
def _native() -> _NativeRecorder:
    return _NativeRecorder()


def uses_raw_calls() -> bool:
    """Return whether the package calls wgpu's C functions: by WEBNN_WGPU_RECORDER, else if that is safe.

    Raises:
        MLTypeError: WEBNN_WGPU_RECORDER names neither `raw` nor `plain`.
    """
    wanted = recorder_name() or ("raw" if tested_wgpu() else "plain")
    if wanted not in ("raw", "plain"):
        raise MLTypeError("WEBNN_WGPU_RECORDER must name a recorder", got=repr(wanted), allowed="raw, plain")
    return wanted == "raw"


def make_recorder(dispatches: Sequence[Dispatch]) -> Recorder:
    """Return the recorder that WEBNN_WGPU_RECORDER names, else the fastest that is safe with this wgpu.

    Raises:
        MLTypeError: WEBNN_WGPU_RECORDER names neither `raw` nor `plain`.
    """
    return RawRecorder(dispatches) if uses_raw_calls() else PlainRecorder(dispatches)
