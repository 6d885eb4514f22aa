"""Having a driver compile kernels before they are first run.

Drivers that compile when a kernel is first dispatched do so too where it is dispatched for nothing. llvmpipe compiles one
kernel after the other on a device, but what another device has compiled it finds in its cache on disk: there kernels are
compiled on a few devices of their own, side by side, while the host makes the others and uploads the weights.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import wgpu

from ..core.errors import WebNNError
from .device import Device
from .pipelines import Pipeline, PipelineCache

logger = logging.getLogger("webnn_wgpu")

_NOTHING_BYTES = 64
"""At least one element of any array."""

_FEWEST_KERNELS = 4
"""Kernels from which on devices to compile them on pay: to open one takes as long as to compile a small kernel."""

_MOST_LANES = 8
"""Devices that compile side by side: each takes memory of its own for what it compiles."""


@dataclass(frozen=True)
class Use:
    """What tells two uses of a kernel apart for a driver: llvmpipe compiles it anew for some values and sizes.

    Attributes:
        uniforms: the uniform data.
        textures: binding, width and height of each texture.
    """

    uniforms: bytes = b""
    textures: tuple[tuple[int, int, int], ...] = ()


class WarmUp:
    """Has the driver compile the kernels of one program, and is done at the end of its `with` block.

    Args:
        device: where the kernels will run.
        kernels: how many of them are new.
    """

    def __init__(self, device: Device, kernels: int) -> None:
        self._device = device
        count = min(_processors(), kernels, _MOST_LANES)
        worth = count > 1 and kernels >= _FEWEST_KERNELS and _shares_through_disk(device)
        self._lanes = _Lanes(device, count) if worth else None
        self._begun: list[tuple[Future[None], Pipeline, Mapping[Use, Mapping[int, Any]]]] = []

    def start(self, kernel: Pipeline, uses: Mapping[Use, Mapping[int, Any]]) -> None:
        """Begin to compile a kernel for uses that are new.

        Args:
            kernel: the kernel.
            uses: the resources of uniforms and textures by binding, for each use.
        """
        new = {use: resources for use, resources in uses.items() if use not in kernel.warm}
        if not new:
            return
        kernel.warm.update(new)
        if self._lanes is None:
            dispatch_nothing(self._device, kernel, new.values())
        else:
            self._begun.append((self._lanes.start(kernel, list(new)), kernel, new))

    def __enter__(self) -> WarmUp:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            for compiled, kernel, uses in self._begun if error is None else ():
                compiled.result()
                dispatch_nothing(self._device, kernel, uses.values())
        finally:
            if self._lanes is not None:
                self._lanes.close()
        if error is None:
            self._device.wait()


class _Lanes:
    """Threads with a device each, on which the driver compiles kernels that it will find again in its cache."""

    def __init__(self, device: Device, count: int) -> None:
        self._device = device
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="webnn_wgpu-compile", initializer=self._open)
        self._own = threading.local()
        self._opened: list[Device] = []

    def _open(self) -> None:
        gpu = self._device.gpu
        lane: Device | None = None
        try:
            opened = gpu.adapter.request_device_sync(
                label="webnn_wgpu compile", required_features=sorted(gpu.features), required_limits=dict(gpu.limits)
            )
            lane = Device(opened, owned=True, caps=self._device.caps)
            self._opened.append(lane)
        except (RuntimeError, wgpu.GPUError) as error:
            logger.info("no device to compile on beside %s: %s", self._device.description, error)
        self._own.device = lane

    def start(self, kernel: Pipeline, uses: list[Use]) -> Future[None]:
        """Begin to compile a kernel, and return what tells when it is in the driver's cache."""
        return self._pool.submit(self._compile, kernel, uses)

    def _compile(self, kernel: Pipeline, uses: list[Use]) -> None:
        lane: Device | None = self._own.device
        if lane is None:
            return
        try:
            made = PipelineCache(lane).get(kernel.spec)
            dispatch_nothing(lane, made, [_stand_ins(lane, kernel, use) for use in uses])
            lane.wait()
        except (WebNNError, wgpu.GPUError) as error:
            logger.info("%s was not compiled ahead: %s", kernel.spec, error)

    def close(self) -> None:
        """Free the devices."""
        self._pool.shutdown(cancel_futures=True)
        del self._pool  # which holds on to this object, and so to the device
        for lane in self._opened:
            lane.gpu.destroy()


def dispatch_nothing(device: Device, kernel: Pipeline, uses: Any) -> None:
    """Dispatch no workgroups of a kernel.

    Args:
        device: where.
        kernel: the kernel, on this device.
        uses: for each use, the resources of some bindings; the others get a buffer that nothing is read from.
    """
    gpu = device.gpu
    encoder = gpu.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(kernel.pipeline)
    count = len(kernel.spec.bindings) + bool(kernel.spec.uniforms)
    for given in uses:
        entries = [{"binding": i, "resource": given[i] if i in given else _no_buffer(device, i)} for i in range(count)]
        compute.set_bind_group(0, gpu.create_bind_group(layout=kernel.layout, entries=entries))
        compute.dispatch_workgroups(0, 1, 1)
    compute.end()
    device.submit(encoder, ())


def _no_buffer(device: Device, binding: int) -> Any:
    """Return a buffer to bind where nothing is read or written."""
    with device.lock:
        kept: list[Any] = device.shared.setdefault("nothing", [])
        while len(kept) <= binding:
            buffer = device.gpu.create_buffer(label="nothing", size=_NOTHING_BYTES, usage=wgpu.BufferUsage.STORAGE)
            kept.append({"buffer": buffer, "offset": 0, "size": _NOTHING_BYTES})
        return kept[binding]


def _stand_ins(lane: Device, kernel: Pipeline, use: Use) -> dict[int, Any]:
    """Return resources on a lane's device that a driver takes for those of a use."""
    gpu = lane.gpu
    resources: dict[int, Any] = {}
    for binding, width, height in use.textures:
        # Of the sizes it matters whether they are powers of two.
        across, down = (4 if n & (n - 1) == 0 else 3 for n in (width, height))
        texture = gpu.create_texture(size=(across, down, 1), format="rgba32float", usage=wgpu.TextureUsage.STORAGE_BINDING)
        resources[binding] = texture.create_view()
    if use.uniforms:
        buffer = gpu.create_buffer_with_data(data=use.uniforms, usage=wgpu.BufferUsage.UNIFORM)
        resources[len(kernel.spec.bindings)] = {"buffer": buffer, "offset": 0, "size": len(use.uniforms)}
    return resources


def _shares_through_disk(device: Device) -> bool:
    """Whether what the driver compiles for one device serves another at once."""
    switch = os.environ.get("MESA_SHADER_CACHE_DISABLE", os.environ.get("MESA_GLSL_CACHE_DISABLE", ""))
    return device.caps.device.startswith("llvmpipe") and switch.lower() not in ("1", "true", "yes", "y", "on")


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
