"""Writing a list of dispatches into a compute pass, in two ways that do the same.

`PlainRecorder` uses wgpu's public API: three Python calls and their argument checks per dispatch. `RawRecorder` calls the C
functions beneath with handles taken once: less than half the CPU time. It is taken for the wgpu versions it was tested with,
and keeps the handles' owners alive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import wgpu

from ..core.errors import MLTypeError
from ..core.settings import recorder_name
from .device import tested_wgpu


@dataclass(frozen=True)
class Dispatch:
    """One dispatch on the device: pipeline, bind group, workgroups."""

    pipeline: wgpu.GPUComputePipeline
    bind_group: wgpu.GPUBindGroup
    grid: tuple[int, int, int]


class Recorder(Protocol):
    """Records a fixed list of dispatches, as often as wanted."""

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        ...

    def part(self, first: int, end: int) -> Recorder:
        """Return what records the dispatches first..end-1 alone."""
        ...


class PlainRecorder:
    """Records through wgpu's public API."""

    def __init__(self, dispatches: Sequence[Dispatch]) -> None:
        self._dispatches = tuple(dispatches)

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        for dispatch in self._dispatches:
            compute_pass.set_pipeline(dispatch.pipeline)
            compute_pass.set_bind_group(0, dispatch.bind_group)
            compute_pass.dispatch_workgroups(*dispatch.grid)

    def part(self, first: int, end: int) -> PlainRecorder:
        """Return what records the dispatches first..end-1 alone."""
        return PlainRecorder(self._dispatches[first:end])


class RawRecorder:
    """Records through wgpu-native's C functions."""

    def __init__(self, dispatches: Sequence[Dispatch]) -> None:
        from wgpu.backends import wgpu_native

        lib: Any = wgpu_native.lib

        self._owners = tuple(dispatches)
        self._set_pipeline: Any = lib.wgpuComputePassEncoderSetPipeline
        self._set_bind_group: Any = lib.wgpuComputePassEncoderSetBindGroup
        self._dispatch: Any = lib.wgpuComputePassEncoderDispatchWorkgroups
        self._null: Any = wgpu_native.ffi.NULL
        self._commands: list[tuple[Any, Any, int, int, int]] = []
        last: Any = None
        for d in dispatches:
            # A pipeline that is set already need not be set again.
            pipeline = None if d.pipeline is last else d.pipeline._internal
            last = d.pipeline
            self._commands.append((pipeline, d.bind_group._internal, *d.grid))

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        """Write all dispatches into an open compute pass."""
        handle = compute_pass._internal
        set_pipeline, set_bind_group, dispatch, null = self._set_pipeline, self._set_bind_group, self._dispatch, self._null
        for pipeline, bind_group, x, y, z in self._commands:
            if pipeline is not None:
                set_pipeline(handle, pipeline)
            set_bind_group(handle, 0, bind_group, 0, null)
            dispatch(handle, x, y, z)

    def part(self, first: int, end: int) -> RawRecorder:
        """Return what records the dispatches first..end-1 alone."""
        return RawRecorder(self._owners[first:end])


def make_recorder(dispatches: Sequence[Dispatch]) -> Recorder:
    """Return the recorder that WEBNN_WGPU_RECORDER names, else the fastest that is safe with this wgpu.

    Raises:
        MLTypeError: WEBNN_WGPU_RECORDER names neither `raw` nor `plain`.
    """
    wanted = recorder_name() or ("raw" if tested_wgpu() else "plain")
    kinds: dict[str, type[PlainRecorder] | type[RawRecorder]] = {"raw": RawRecorder, "plain": PlainRecorder}
    if wanted not in kinds:
        raise MLTypeError("WEBNN_WGPU_RECORDER must name a recorder", got=repr(wanted), allowed="raw, plain")
    return kinds[wanted](dispatches)
