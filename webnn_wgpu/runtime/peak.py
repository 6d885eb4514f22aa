"""The measured peak rates of a device, to which profiles compare kernels."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass

import numpy as np
import wgpu

from ..core import cache
from ..kernels.spec import Binding, Grid, KernelSpec, grid_1d
from ..kernels.templates import shader_root
from .buffer import Buffer
from .device import Device
from .pipelines import PipelineCache
from .timestamps import FEATURE, Timestamps

_VERSION = 1
"""Of the way in which it is measured."""

_WORKGROUP_FLOPS = 64 * 256 * 16 * 4 * 2
"""Operations of a workgroup of `shaders/probes/arithmetic.wgsl`: invocations, iterations, sums in quads, two for each."""

_LONG_ENOUGH_US = 4000
"""Time from which on neither a kernel's start nor a clock's step matters."""

_MOST_WORKGROUPS = 1 << 20
_ROUNDS = 15


@dataclass(frozen=True)
class Peak:
    """The highest rates that the package measured on a device.

    Attributes:
        flops: the float32 operations per second. A multiply-add counts as two.
        bytes_per_second: the bytes that a copy of a large storage buffer reads and writes. Reads from a cache may be faster,
            and so may reads of weights in a texture on software adapters.
        timestamps: whether the device's own clock took the times. Otherwise the host's clock took them, and they include the
            submit.
    """

    flops: float
    bytes_per_second: float
    timestamps: bool

    @property
    def balance(self) -> float:
        """Operations for each byte from which on a kernel is bound by arithmetic, and no more by memory."""
        return self.flops / self.bytes_per_second

    def __str__(self) -> str:
        clock = "" if self.timestamps else ", by the host's clock"
        return f"{self.flops / 1e9:.1f} GFLOP/s, {self.bytes_per_second / 1e9:.1f} GB/s{clock}"


def measured_peak(device: Device, *, again: bool = False) -> Peak:
    """Return a device's peaks: those found by an earlier process, else measured now, which takes about a second.

    Args:
        device: the device.
        again: whether to measure in any case.

    Raises:
        OutOfMemoryError: the device has no memory for two buffers of a moderate size.
        OperationError, DeviceLostError: the device cannot run the kernels.
    """
    caps = device.caps
    name = f"probes/peak-{cache.key_of(_VERSION, wgpu.__version__, caps.to_json())}"
    with device.lock:
        found: Peak | None = None if again else device.shared.get("peak") or _parsed(cache.read(name))
        if found is None:
            with device.translated("measuring the device"):
                found = _measured(device)
            cache.write(name, json.dumps(asdict(found)))
        device.shared["peak"] = found
        return found


def _parsed(text: str | None) -> Peak | None:
    if text is None:
        return None
    try:
        peak = Peak(**json.loads(text))
        numbers = (peak.flops, peak.bytes_per_second)
        return peak if all(math.isfinite(n) and n > 0 for n in numbers) else None
    except (TypeError, ValueError):
        return None


def _measured(device: Device) -> Peak:
    caps = device.caps
    limits = (caps.limit("max-storage-buffer-binding-size"), caps.limit("max-buffer-size"))
    copied = min(device.target.costs.runtime.uncached_bytes, *limits) // 1024 * 1024
    buffers = [device.create_buffer(copied, name) for name in ("peak source", "peak result")]
    try:
        buffers[0].write(np.full(8, 0.5, np.float32))
        arithmetic, copy = (Probe(device, name, buffers) for name in ("arithmetic", "copy"))
        workgroups = arithmetic.workgroups_of(_LONG_ENOUGH_US)
        copying = grid_1d(copied // 1024, caps)
        rounds = [(arithmetic.microseconds(grid_1d(workgroups, caps)), copy.microseconds(copying)) for _ in range(_ROUNDS)]
    finally:
        for buffer in buffers:
            buffer.destroy()
    # The fastest round is the least disturbed one.
    computing_us, copying_us = (min(times) for times in zip(*rounds, strict=True))
    return Peak(workgroups * _WORKGROUP_FLOPS / computing_us * 1e6, 2 * copied / copying_us * 1e6, FEATURE in caps.features)


class Probe:
    """A kernel of `shaders/probes` that reads the first of two buffers and may write the second."""

    def __init__(self, device: Device, name: str, buffers: list[Buffer]) -> None:
        self._device, self._buffers = device, buffers
        source = (shader_root() / "probes" / f"{name}.wgsl").read_text(encoding="utf-8")
        bindings = (Binding(name="source", access="read", quad=True), Binding(name="result", access="write", quad=True))
        spec = KernelSpec(template=f"probes/{name}", params=(), bindings=bindings, source=source)
        self._kernel = PipelineCache.of(device).get(spec, own=True)
        entries = [
            {"binding": i, "resource": {"buffer": b.gpu, "offset": 0, "size": b.size_bytes}} for i, b in enumerate(buffers)
        ]
        self._group = device.gpu.create_bind_group(layout=self._kernel.layout, entries=entries)
        self.microseconds((1, 1, 1))  # compiles it

    def record(self, compute: wgpu.GPUComputePassEncoder, grid: Grid) -> None:
        """Record a run in a pass, and end the pass."""
        compute.set_pipeline(self._kernel.pipeline)
        compute.set_bind_group(0, self._group)
        compute.dispatch_workgroups(*grid)
        compute.end()

    def workgroups_of(self, microseconds: float) -> int:
        """Return a number of workgroups that take so long, or up to twice as long."""
        count = 64
        while (took := self.microseconds(grid_1d(count, self._device.caps))) < microseconds and count < _MOST_WORKGROUPS:
            count *= 2 if took > microseconds / 8 else 8
        return count

    def microseconds(self, grid: Grid) -> float:
        """Run and return the time of the run."""
        device = self._device
        timestamps = Timestamps(device, 1) if FEATURE in device.caps.features else None
        encoder = device.gpu.create_command_encoder()
        self.record(timestamps.begin_pass(encoder, 0) if timestamps else encoder.begin_compute_pass(), grid)
        if timestamps:
            timestamps.resolve(encoder)
        device.wait()
        start = time.perf_counter()
        device.submit(encoder, self._buffers)
        if timestamps is None:
            device.wait()
            return (time.perf_counter() - start) * 1e6
        try:
            told_us = max(float(timestamps.microseconds()[0]), 1e-3)
            wall_us = (time.perf_counter() - start) * 1e6
            # Reject the timestamps of a driver that reports almost no time for a long run: each attempt would lengthen the run
            # again.
            return told_us if told_us > wall_us / 4 or wall_us < _LONG_ENOUGH_US else wall_us
        finally:
            timestamps.destroy()
