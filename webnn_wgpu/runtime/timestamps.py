"""The begin and end of compute passes on the device, by timestamps of the device's own clock.

Timed work runs in a compute pass of its own, because WebGPU's feature "timestamp-query" offers only that on every backend.
Drivers begin a pass after all work recorded before it, so consecutive passes do not share time. Where a driver may take the
timestamp of a begin after the work of the pass (`RuntimeCosts.has_late_begins`), a pass lasts from the end of the one before.
An empty pass precedes the first one then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from .device import Buffer, Device
from .readback import StagingPool
from .versions import tested_wgpu

FEATURE = "timestamp-query"

_SET_QUERIES = 4096
"""WebGPU's limit on the queries of one set."""

_QUERY_BYTES = 8


class Timestamps:
    """Times of a fixed number of compute passes. Later runs with as many passes can use the object again.

    Args:
        device: a device with `FEATURE`.
        passes: the number of passes, at least one.
    """

    def __init__(self, device: Device, passes: int) -> None:
        self._device, self._passes = device, passes
        self._has_late_begins = device.target.costs.runtime.has_late_begins
        queries = 2 * (passes + self._has_late_begins)
        self._sets = [
            device.gpu.create_query_set(type="timestamp", count=min(_SET_QUERIES, queries - first))
            for first in range(0, queries, _SET_QUERIES)
        ]
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._resolved = Buffer(device, device.create_gpu_buffer(queries * _QUERY_BYTES, usage, "timestamps"))

    def begin_pass(self, encoder: wgpu.GPUCommandEncoder, number: int) -> wgpu.GPUComputePassEncoder:
        """Begin the pass of a number, counted from 0, in the order of the numbers."""
        if self._has_late_begins:
            if number == 0:
                self._begin(encoder, 0).end()
            # A copy of the last end has the driver wait for it. Otherwise it may be taken during the next kernel.
            chosen, first = divmod(2 * number, _SET_QUERIES)
            encoder.resolve_query_set(self._sets[chosen], first, 2, self._resolved.gpu, 0)
            number += 1
        return self._begin(encoder, number)

    def _begin(self, encoder: wgpu.GPUCommandEncoder, number: int) -> wgpu.GPUComputePassEncoder:
        chosen, first = divmod(2 * number, _SET_QUERIES)
        return encoder.begin_compute_pass(
            timestamp_writes={
                "query_set": self._sets[chosen],
                "beginning_of_pass_write_index": first,
                "end_of_pass_write_index": first + 1,
            }
        )

    def resolve(self, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record, behind all passes, the commands that make their timestamps readable."""
        for i, queries in enumerate(self._sets):
            encoder.resolve_query_set(queries, 0, queries.count, self._resolved.gpu, i * _SET_QUERIES * _QUERY_BYTES)

    def ticks(self) -> Array:
        """Wait for the submitted work, and return each pass's begin and end, [passes, 2], in ticks of the device's clock.

        Raises:
            OperationError, DeviceLostError: as `PendingRead.result` does.
        """
        found = np.empty((self._passes + self._has_late_begins, 2), np.uint64)
        StagingPool.of(self._device).read(self._resolved, found).result()
        return np.stack([found[:-1, 1], found[1:, 1]], axis=1) if self._has_late_begins else found

    def microseconds(self) -> Array:
        """Wait for the submitted work, and return the time of each pass. Exceptions are those of `ticks`."""
        begin, end = self.ticks().T
        # The specification allows clocks that step back. The difference of the unsigned numbers is negative then.
        return np.maximum((end - begin).view(np.int64), 0) * (_tick_ns(self._device.gpu) / 1e3)

    def destroy(self) -> None:
        """Free the memory once queued work is done."""
        self._resolved.destroy()
        for queries in self._sets:
            queries.destroy()


def _tick_ns(gpu: wgpu.GPUDevice) -> float:
    """Return the nanoseconds of a step of the clock: 1 by the specification, but wgpu-native hands on the driver's steps."""
    if not tested_wgpu():
        return 1.0
    from wgpu.backends import wgpu_native

    lib: Any = wgpu_native.lib
    queue: Any = gpu.queue
    return float(lib.wgpuQueueGetTimestampPeriod(queue._internal))
