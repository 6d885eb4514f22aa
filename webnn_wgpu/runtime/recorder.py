"""Writing a list of dispatches into a compute pass, and submitting it, in two ways that do the same.

`PlainRecorder` uses wgpu's public API: three Python calls and their argument checks per dispatch. `RawRecorder` calls the C
functions beneath with handles taken once: less than half the CPU time. It is taken for the wgpu versions it was tested with,
and keeps the handles' owners alive.

A fast GPU executes a run in less time than the host takes to prepare it. Two measures have them work at the same time:

* The encoder of the next run is recorded directly after a submit. It is finished when the next run is submitted, because
  wgpu-native never frees a command buffer that is not submitted.
* A run can be divided. The device begins with the first dispatches while the host finishes the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import wgpu

from ..core.errors import MLTypeError
from ..core.settings import recorder_name
from .versions import tested_wgpu


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


class Recorder(ABC):
    """An encoder of a fixed list of dispatches, which can be recorded any number of times.

    Args:
        dispatches: the dispatches.
        soon: the minimum number of dispatches of the first of two submits. 0 has one submit for all.
    """

    def __init__(self, dispatches: Sequence[Dispatch], soon: int = 0) -> None:
        self._dispatches = tuple(dispatches)
        self._ranges = submits(len(_in_order(dispatches)), soon)
        self._last: tuple[Copy, ...] | None = None
        self._ahead: list[Any] = []

    @abstractmethod
    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""

    def submit(self, gpu: wgpu.GPUDevice, copies: Sequence[Copy] = ()) -> None:
        """Submit all dispatches, and copies after them.

        The method checks nothing: `Device.submit_by` does that. When a submit has the same copies as the one before, more such
        submits are likely: the method records the next one before it returns.
        """
        wanted = tuple(copies)
        repeated = wanted == self._last
        ahead, self._ahead = self._ahead, []
        for encoder in ahead if ahead and repeated else self._recorded(gpu, wanted):
            self._queue(gpu, encoder)
        self._last = wanted
        if repeated:
            with suppress(wgpu.GPUError):  # The next submit reports the error.
                self._ahead = list(self._recorded(gpu, wanted))

    def _recorded(self, gpu: wgpu.GPUDevice, copies: Sequence[Copy]) -> Iterator[Any]:
        """Yield an encoder for each submit of a run, each after the one before was used."""
        for first, end in self._ranges:
            yield self._encoder(gpu, first, end, copies if (first, end) == self._ranges[-1] else ())

    @abstractmethod
    def _encoder(self, gpu: wgpu.GPUDevice, first: int, end: int, copies: Sequence[Copy]) -> Any:
        """Return an encoder of some of the commands, and of copies after them."""

    @abstractmethod
    def _queue(self, gpu: wgpu.GPUDevice, encoder: Any) -> None:
        """Finish an encoder and submit it."""

    def part(self, first: int, end: int) -> Recorder:
        """Return a recorder of the dispatches first..end-1 alone, in one submit."""
        return type(self)(self._dispatches[first:end])


def submits(count: int, soon: int) -> list[tuple[int, int]]:
    """Return the ranges of dispatches that are submitted together.

    A fast GPU executes a fifth of the dispatches while the host finishes the others. The rest of a divided run is at least
    twice as long as its beginning, because another submit takes time too.

    Args:
        count: the number of dispatches.
        soon: the minimum number of dispatches of the first of two submits. 0 has one submit for all.

    >>> submits(50, 12), submits(100, 12), submits(35, 12), submits(50, 0)
    ([(0, 12), (12, 50)], [(0, 20), (20, 100)], [(0, 35)], [(0, 50)])
    """
    if not 0 < 3 * soon <= count:
        return [(0, count)]
    first = max(soon, count // 5)
    return [(0, first), (first, count)]


class PlainRecorder(Recorder):
    """Records through wgpu's public API."""

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        self._record(compute_pass, _in_order(self._dispatches))

    def _record(self, compute_pass: wgpu.GPUComputePassEncoder, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            compute_pass.set_pipeline(dispatch.pipeline)
            compute_pass.set_bind_group(0, dispatch.bind_group)
            compute_pass.dispatch_workgroups(*dispatch.grid)

    def _encoder(self, gpu: wgpu.GPUDevice, first: int, end: int, copies: Sequence[Copy]) -> Any:
        encoder = gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        self._record(compute, _in_order(self._dispatches)[first:end])
        compute.end()
        for copy in copies:
            encoder.copy_buffer_to_buffer(*copy)
        return encoder

    def _queue(self, gpu: wgpu.GPUDevice, encoder: Any) -> None:
        gpu.queue.submit([encoder.finish()])


_Command: TypeAlias = tuple[Any, Any, int, int, int]
"""The handles of a pipeline, if it is to be set, and of a bind group, and the workgroups."""


class RawRecorder(Recorder):
    """Records through wgpu-native's C functions."""

    def __init__(self, dispatches: Sequence[Dispatch], soon: int = 0) -> None:
        super().__init__(dispatches, soon)
        self._native = _native()
        self._commands: list[_Command] = []
        begins = {first for first, _ in self._ranges}
        last: Any = None
        for i, d in enumerate(_in_order(dispatches)):
            # A pipeline that is set already need not be set again in the same pass.
            pipeline = None if d.pipeline is last and i not in begins else d.pipeline
            handle: Any = pipeline and pipeline._internal
            last = d.pipeline
            self._commands.append((handle, d.bind_group._internal, *d.grid))

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        self._record(compute_pass._internal, self._commands)

    def _record(self, handle: Any, commands: Sequence[_Command]) -> None:
        lib, null = self._native.lib, self._native.null
        set_pipeline, set_bind_group = lib.wgpuComputePassEncoderSetPipeline, lib.wgpuComputePassEncoderSetBindGroup
        dispatch = lib.wgpuComputePassEncoderDispatchWorkgroups
        for pipeline, bind_group, x, y, z in commands:
            if pipeline is not None:
                set_pipeline(handle, pipeline)
            set_bind_group(handle, 0, bind_group, 0, null)
            dispatch(handle, x, y, z)

    def _encoder(self, gpu: wgpu.GPUDevice, first: int, end: int, copies: Sequence[Copy]) -> Any:
        return self._native.encode(self, gpu._internal, self._commands[first:end], copies)

    def _queue(self, gpu: wgpu.GPUDevice, encoder: Any) -> None:
        native = self._native
        made: list[Any] = []
        try:
            native.finish(encoder, made)
            native.checked.wgpuQueueSubmit(gpu.queue._internal, 1, native.new("WGPUCommandBuffer[]", made))
        finally:
            for command_buffer in made:
                native.lib.wgpuCommandBufferRelease(command_buffer)

    def encode(self, device: Any, commands: Sequence[_Command], copies: Sequence[Copy]) -> Any:
        """Return an encoder of commands, and of copies after them. It is freed with its handle."""
        native = self._native
        lib, null = native.lib, native.null
        encoder = native.owned(lib.wgpuDeviceCreateCommandEncoder(device, null), lib.wgpuCommandEncoderRelease)
        compute = lib.wgpuCommandEncoderBeginComputePass(encoder, null)
        try:
            self._record(compute, commands)
            lib.wgpuComputePassEncoderEnd(compute)
        finally:
            lib.wgpuComputePassEncoderRelease(compute)
        for source, source_offset, destination, offset, size in copies:
            lib.wgpuCommandEncoderCopyBufferToBuffer(
                encoder, source._internal, source_offset, destination._internal, offset, size
            )
        return encoder


class _NativeRecorder:
    """The internals of wgpu that `RawRecorder` uses.

    Attributes:
        lib: wgpu-native's C functions.
        checked: the same functions, which here raise wgpu's errors.
        encode: `RawRecorder.encode` with wgpu's errors. wgpu collects the errors of every single C call, which takes longer
            than most calls. This function collects them once for a run.
        finish: finishes an encoder and appends the command buffer to a list, also one that is of no use because of an error.
        new: returns new C data, `new(type, content)`.
        owned: returns a handle that calls a function on its end, `owned(handle, function)`.
        null: the C null pointer.
    """

    def __init__(self) -> None:
        from wgpu.backends import wgpu_native
        from wgpu.backends.wgpu_native import _api

        self.lib: Any = wgpu_native.lib
        self.checked: Any = _api.libf
        self.encode: Callable[..., Any] = self.checked._make_proxy_func("webnn_wgpu run", RawRecorder.encode)
        self.finish: Callable[..., None] = self.checked._make_proxy_func("webnn_wgpu finish", self._finish)
        self.new: Callable[..., Any] = wgpu_native.ffi.new
        self.owned: Callable[..., Any] = wgpu_native.ffi.gc
        self.null: Any = wgpu_native.ffi.NULL

    def _finish(self, encoder: Any, made: list[Any]) -> None:
        made.append(self.lib.wgpuCommandEncoderFinish(encoder, self.null))


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


def make_recorder(dispatches: Sequence[Dispatch], soon: int = 0) -> Recorder:
    """Return the recorder that WEBNN_WGPU_RECORDER names, else the fastest that is safe with this wgpu.

    Args:
        dispatches: the dispatches to record.
        soon: the minimum number of dispatches of the first of two submits, see `Recorder`.

    Raises:
        MLTypeError: WEBNN_WGPU_RECORDER names neither `raw` nor `plain`.
    """
    return (RawRecorder if uses_raw_calls() else PlainRecorder)(dispatches, soon)
