"""Memory between canaries: regions before and behind a tensor whose words tell who writes, or reads, outside of it."""

from __future__ import annotations

import numpy as np

from ..core.data_types import Array
from ..runtime.buffer import Buffer
from ..runtime.device import BUFFER_USAGE, Device
from ..runtime.readback import StagingPool

CANARY = 1024
"""Bytes before and, unless more are asked for, behind a tensor; a multiple of every device's alignment."""

SONG = 0xA5
"""What canaries are made of: as float32 and float16 small numbers, as integers large ones."""


class Cage:
    """A buffer with a tensor between canaries.

    Args:
        device: where it lies.
        size_bytes: how long the tensor is; a multiple of 4.
        label: a name for messages.
        behind: bytes of the canary behind it; a multiple of 4.
        song: the byte that canaries are made of.
        filling: the byte that the tensor is filled with.
    """

    def __init__(
        self, device: Device, size_bytes: int, label: str = "", *, behind: int = CANARY, song: int = SONG, filling: int = SONG
    ) -> None:
        self.label, self._size, self._song = label, size_bytes, song
        content = np.full(CANARY + size_bytes + behind, song, np.uint8)
        content[CANARY : CANARY + size_bytes] = filling
        self._whole = Buffer(device, device.create_gpu_buffer(content.nbytes, BUFFER_USAGE, label))
        self._whole.write(content)
        self.tensor = Buffer(device, self._whole.gpu, CANARY, size_bytes, borrowed=True)
        """The tensor alone."""
        self.open = Buffer(device, self._whole.gpu, CANARY, size_bytes + behind, borrowed=True)
        """The tensor and the canary behind it: a kernel that is bound this can get out."""

    def look(self) -> tuple[Array, str]:
        """Read the whole buffer: return the bytes of the tensor, and what was written outside of it, "" for nothing."""
        buffer = self._whole
        found = StagingPool.of(buffer.device).read(buffer, np.empty(buffer.size_bytes, np.uint8)).result()["data"]
        tensor = found[CANARY : CANARY + self._size]
        changed = np.flatnonzero(found != self._song) - CANARY
        outside = changed[(changed < 0) | (changed >= self._size)]
        if not outside.size:
            return tensor, ""
        first = int(outside[0])
        where = f"{-first} bytes before its beginning" if first < 0 else f"{first - self._size} bytes behind its end"
        return tensor, f"{outside.size} bytes outside {self.label} were written, the first {where}"

    def destroy(self) -> None:
        """Free the memory."""
        self._whole.destroy()
