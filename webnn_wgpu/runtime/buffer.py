"""The memory of a tensor: a storage buffer of its own, or a part of one that the caller owns."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError
from .destroying import destroy_under

if TYPE_CHECKING:
    from .device import Device

FREED = "_webnn_wgpu_freed"
"""The attribute of a `wgpu.GPUBuffer` that holds the event `watched` returns, once it is watched."""


class Buffer:
    """A storage buffer, or a part of one, that knows whether it was destroyed.

    The use of a destroyed buffer would end the process.

    Args:
        device: the device of the buffer.
        gpu: the wgpu buffer.
        offset_bytes: the offset of the part in the buffer, in bytes.
        size_bytes: the size of the part in bytes. None extends the part to the end of the buffer.
        borrowed: whether the buffer is a caller's buffer, which the caller may destroy or map.

    Attributes:
        data_bytes: the number of the part's bytes that may change. Only a caller's buffer may have other bytes, in its last
            word.
        reach_bytes: the number of bytes, from the offset of the part, that a read-only binding may reach.
        in_doubt: whether `check` can fail. It cannot fail for a buffer that is private to the package and not destroyed.
    """

    def __init__(
        self,
        device: Device,
        gpu: wgpu.GPUBuffer,
        offset_bytes: int = 0,
        size_bytes: int | None = None,
        *,
        borrowed: bool = False,
    ) -> None:
        self.device, self.gpu = device, gpu
        self.offset_bytes = offset_bytes
        self.size_bytes: int = gpu.size if size_bytes is None else size_bytes
        self.data_bytes = self.reach_bytes = self.size_bytes
        self.borrowed = self.in_doubt = borrowed
        self._lent = borrowed
        self._destroyed = False
        self._freed = watched(gpu, device.lock) if borrowed else None

    @property
    def readable(self) -> bool:
        """Whether it may be copied from."""
        return bool(self.gpu.usage & wgpu.BufferUsage.COPY_SRC)

    @property
    def writable(self) -> bool:
        """Whether it may be copied into."""
        return bool(self.gpu.usage & wgpu.BufferUsage.COPY_DST)

    @property
    def destroyed(self) -> bool:
        """Whether the memory was freed."""
        return self._destroyed or (self._freed is not None and self._freed.is_set())

    @property
    def memory(self) -> Any:
        """The memory that several tensors can share: the whole buffer."""
        return self.gpu

    def write(self, data: Array, at: int = 0) -> None:
        """Queue a write of an array at a byte offset that is a multiple of 4.

        The caller may change the array at once.
        """
        flat = data.reshape(-1)
        if flat.nbytes % 4:  # The queue writes whole words. The extra bytes are padding of the buffer.
            flat = np.concatenate([flat.view(np.uint8), np.zeros(-flat.nbytes % 4, np.uint8)])
        with self.device.lock:
            self.check()
            with self.device.translated("a write"):
                self.device.queue_write(self.gpu, self.offset_bytes + at, flat)

    def lend(self) -> None:
        """Note that others may submit work over the buffer at any time: it is never freed under their hands any more."""
        self._lent = True

    def hand_out(self) -> wgpu.GPUBuffer:
        """Return the wgpu buffer to the caller, and observe whether the caller destroys it."""
        self.lend()
        if self._freed is None:
            self.in_doubt = True
            self._freed = watched(self.gpu, self.device.lock)
        return self.gpu

    def check(self) -> None:
        """Raise InvalidStateError if the buffer was destroyed, or if its owner has mapped it."""
        if self._destroyed or (self._freed is not None and self._freed.is_set()):
            raise InvalidStateError(
                "the buffer was destroyed",
                got=f"buffer '{self.gpu.label}' of {self.gpu.size} bytes",
                hint="Destroy a buffer after the tensors that use it",
            )
        if self.borrowed and self.gpu.map_state != "unmapped":
            raise InvalidStateError("the buffer is mapped", got=f"map_state '{self.gpu.map_state}'", allowed="'unmapped'")

    def destroy(self) -> None:
        """Free the memory after the queued work. The method is idempotent.

        If the application can still submit work over the buffer, its memory is freed with the application's last reference
        instead.
        """
        with self.device.lock:
            if not self._destroyed:
                self._destroyed = self.in_doubt = True
                if not self._lent:
                    self.gpu.destroy()


def watched(gpu: Any, lock: Any) -> threading.Event:
    """Return an event that is set when a buffer is destroyed. wgpu itself does not report the destruction."""
    with lock:
        known: threading.Event | None = gpu.__dict__.get(FREED)
        if known is not None:
            return known
        freed = threading.Event()
        destroy_under(lock, gpu, freed.set)
        gpu.__dict__[FREED] = freed
        return freed
