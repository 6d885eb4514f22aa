"""Buffers between guard regions, whose bytes show accesses outside of a tensor."""

from __future__ import annotations

import numpy as np

from ..core.data_types import Array
from ..runtime.buffer import Buffer
from ..runtime.device import BUFFER_USAGE, Device
from ..runtime.readback import StagingPool

GUARD_BYTES = 1024
"""The minimum size of the guard regions before and behind a tensor in bytes, a multiple of every device's alignment."""

FILL_PATTERN = 0xA5
"""The byte that fills guard regions: small numbers as float32 and float16, large ones as integers."""


class GuardedBuffer:
    """A buffer with a tensor between two guard regions.

    Args:
        device: the device of the buffer.
        size_bytes: the size of the tensor, a multiple of 4.
        label: a name for messages.
        behind_bytes: the size of the guard region behind the tensor, a multiple of 4.
        guard_pattern: the byte that fills the guard regions.
        content_pattern: the byte that fills the tensor.
    """

    def __init__(
        self,
        device: Device,
        size_bytes: int,
        label: str = "",
        *,
        behind_bytes: int = GUARD_BYTES,
        guard_pattern: int = FILL_PATTERN,
        content_pattern: int = FILL_PATTERN,
    ) -> None:
        self.label, self._size, self._guard_pattern = label, size_bytes, guard_pattern
        content = np.full(GUARD_BYTES + size_bytes + behind_bytes, guard_pattern, np.uint8)
        content[GUARD_BYTES : GUARD_BYTES + size_bytes] = content_pattern
        self._whole = Buffer(device, device.create_gpu_buffer(content.nbytes, BUFFER_USAGE, label))
        self._whole.write(content)
        self.tensor = Buffer(device, self._whole.gpu, GUARD_BYTES, size_bytes, borrowed=True)
        """The tensor alone."""
        self.open = Buffer(device, self._whole.gpu, GUARD_BYTES, size_bytes + behind_bytes, borrowed=True)
        """The tensor and the guard region behind it: a kernel with this binding can leave the tensor."""

    def read(self) -> tuple[Array, str]:
        """Read the whole buffer, and return the bytes of the tensor and a message about writes outside of it.

        The message is "" if there are none.
        """
        buffer = self._whole
        content = StagingPool.of(buffer.device).read(buffer, np.empty(buffer.size_bytes, np.uint8)).result()["data"]
        tensor = content[GUARD_BYTES : GUARD_BYTES + self._size]
        changed = np.flatnonzero(content != self._guard_pattern) - GUARD_BYTES
        outside = changed[(changed < 0) | (changed >= self._size)]
        if not outside.size:
            return tensor, ""
        first = int(outside[0])
        where = f"{-first} bytes before its beginning" if first < 0 else f"{first - self._size} bytes behind its end"
        return tensor, f"{outside.size} bytes outside {self.label} were written, the first {where}"

    def destroy(self) -> None:
        """Free the memory."""
        self._whole.destroy()
