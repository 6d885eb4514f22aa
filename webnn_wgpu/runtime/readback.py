"""Reading tensors back: staging buffers by size class, reused only after what they held was taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import UnknownError
from .device import Buffer, Device

_SMALLEST = 4096


class PendingRead:
    """A copy to a staging buffer that has been submitted."""

    def __init__(self, pool: StagingPool, staging: wgpu.GPUBuffer, empty: Array, mapping: Any) -> None:
        self._pool, self._staging, self._empty, self._mapping = pool, staging, empty, mapping
        self._array: Array | None = None

    def done(self) -> bool:
        """Return whether the data has arrived; never waits."""
        if self._array is None:
            self._pool.device.poll()
        return self._array is not None or self._staging.map_state == "mapped"

    def result(self) -> Array:
        """Wait for the data and return it.

        Raises:
            UnknownError: the device could not hand the data back.
        """
        if self._array is None:
            try:
                self._mapping.sync_wait()
            except (RuntimeError, wgpu.GPUError) as error:
                raise UnknownError(f"the tensor could not be read back: {error}", operator="read_tensor") from error
            with self._pool.device.lock:
                array = self._empty
                window: Any = self._staging.read_mapped(0, self._staging.size, copy=False)
                array.reshape(-1).view(np.uint8)[:] = np.frombuffer(window, np.uint8, array.nbytes)
                self._staging.unmap()
                self._array = array
                self._pool.give_back(self._staging)
        return self._array


class StagingPool:
    """The staging buffers of one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._free: dict[int, list[wgpu.GPUBuffer]] = {}

    @classmethod
    def of(cls, device: Device) -> StagingPool:
        """Return the pool of a device."""
        with device.lock:
            return device.shared.setdefault("staging", cls(device))

    def read(self, buffer: Buffer, into: Array) -> PendingRead:
        """Submit a copy of a whole buffer; the result is `into`, a C-contiguous array, filled."""
        with self.device.lock:
            buffer.check()
            limit = self.device.caps.limit("max-buffer-size")
            size = min(limit, max(_SMALLEST, 1 << (buffer.size_bytes - 1).bit_length()))
            waiting = self._free.get(size)
            staging = waiting.pop() if waiting else self._create(size)
            encoder = self.device.gpu.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer.gpu, 0, staging, 0, buffer.size_bytes)
            self.device.submit(encoder, (buffer,))
            return PendingRead(self, staging, into, staging.map_async(wgpu.MapMode.READ))

    def _create(self, size: int) -> wgpu.GPUBuffer:
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        return self.device.gpu.create_buffer(label="staging", size=size, usage=usage)

    def give_back(self, staging: wgpu.GPUBuffer) -> None:
        """Take an unmapped staging buffer back; two of a size are kept, which is what alternating reads need."""
        waiting = self._free.setdefault(staging.size, [])
        if len(waiting) < 2:
            waiting.append(staging)
        else:
            staging.destroy()
