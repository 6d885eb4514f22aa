"""Reading results back: staging buffers, and the handle on a copy that has been submitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import DeviceLostError, DOMException, OperationError
from .buffer import Buffer
from .device import Device
from .mapping import map_staging
from .messages import wgpu_message

_SMALLEST = 4096
_KEPT = 2
"""The number of idle staging buffers of a size that the pool keeps: enough to read two tensors in turn."""

Windows: TypeAlias = Mapping[str, tuple[int, Array]]
"""The content of a staging buffer: name -> offset in bytes, and the array to fill."""


class PendingRead:
    """Data on its way to the host: a copy into a staging buffer has been submitted.

    The object holds the staging buffer alone, so the application may destroy the source of the copy meanwhile.

    Args:
        device: the device of the copy.
        staging: the destination of the copy, which is not mapped.
        windows: the content of the staging buffer after the copy.
        taken: a function that is called when the data was read and the staging buffer is free again.
    """

    def __init__(
        self, device: Device, staging: wgpu.GPUBuffer, windows: Windows, taken: Callable[[], None] | None = None
    ) -> None:
        self._device, self._staging, self._windows, self._taken = device, staging, windows, taken
        self._outcome: dict[str, Array] | DOMException | None = None
        self._mapping = map_staging(device, staging)

    def done(self) -> bool:
        """Return whether the data has arrived, without a wait unless wgpu cannot tell."""
        return self._outcome is not None or self._device.lost or self._mapping.arrived()

    def result(self) -> dict[str, Array]:
        """Wait for the data and return it by name.

        Raises:
            OperationError: the device could not hand the data back.
            DeviceLostError: the device is gone.
        """
        self.settle()
        if isinstance(self._outcome, DOMException):
            raise self._outcome
        return dict(self._outcome or {})

    def settle(self) -> None:
        """Wait for the data and read it from the staging buffer. `result` raises a failure."""
        if self._outcome is not None:
            return
        if not self._mapping.wait():
            self._outcome = self._device.loss("the data did not arrive")
            return
        with self._device.lock:
            if self._outcome is None:
                self._take()

    def _take(self) -> None:
        try:
            self._device.check()  # wgpu ends the process if a buffer of a lost device is read
        except DeviceLostError:
            self._outcome = self._device.loss("the data is too")
            return
        try:
            self._mapping.finish()
            mapped: Any = self._staging.read_mapped(copy=False)  # once, as each call takes longer than to copy some kilobytes
            content = np.frombuffer(mapped, np.uint8)
            for offset, array in self._windows.values():
                array.reshape(-1).view(np.uint8)[:] = content[offset : offset + array.nbytes]
        except (RuntimeError, wgpu.GPUError) as error:
            self._outcome = OperationError(f"the data could not be read back: {wgpu_message(error)}")
            return
        # In this order an interrupted call loses no data: unread data stays mapped, and a staging buffer that stays mapped is
        # never used again.
        self._outcome = {name: array for name, (_, array) in self._windows.items()}
        try:
            self._staging.unmap()
        except wgpu.GPUError:
            return  # The device is lost, but the data has arrived.
        if self._taken is not None:
            self._taken()


class StagingPool:
    """The staging buffers of one device by size. The pool reuses a buffer after its data was read."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[int, list[wgpu.GPUBuffer]] = {}

    @classmethod
    def of(cls, device: Device) -> StagingPool:
        """Return the pool of a device."""
        with device.lock:
            return device.shared.setdefault("staging", cls(device))

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffers that wait to be used again."""
        return sum(size * len(waiting) for size, waiting in self._free.items())

    def read(self, buffer: Buffer, into: Array) -> PendingRead:
        """Submit a copy of a buffer. The result, under the name "data", is `into`, a C-contiguous array, filled.

        Raises:
            InvalidStateError: the buffer was destroyed.
            OutOfMemoryError: there is no memory for a staging buffer.
        """
        device = self._device
        with device.lock:
            buffer.check()
            limit = device.caps.limit("max-buffer-size")
            size = min(limit, max(_SMALLEST, 1 << (buffer.size_bytes - 1).bit_length()))
            waiting = self._free.get(size)
            staging = waiting.pop() if waiting else device.create_staging(size)
            encoder = device.gpu.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer.gpu, buffer.offset_bytes, staging, 0, buffer.size_bytes)
            device.submit(encoder, (buffer,), staging)
            return PendingRead(device, staging, {"data": (0, into)}, lambda: self._give_back(staging))

    def _give_back(self, staging: wgpu.GPUBuffer) -> None:
        waiting = self._free.setdefault(staging.size, [])
        if len(waiting) < _KEPT:
            waiting.append(staging)
        else:
            staging.destroy()
