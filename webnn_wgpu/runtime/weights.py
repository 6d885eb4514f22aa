"""The weight store: constants on the device, shared by all graphs of a device that use the same bytes in the same form."""

from __future__ import annotations

import hashlib
import mmap
import weakref
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array, tensor_bytes
from ..kernels.spec import Packing
from .buffer import Buffer
from .device import Device

_STAGED_BYTES = 8 * 1024 * 1024
"""Bytes that may wait in staging memory: what is uploaded takes as much again until the queue has copied it."""


class Weight:
    """One constant on the device: a buffer, or the view of a texture. The memory goes with the last user."""

    def __init__(self, resource: Buffer | wgpu.GPUTexture, size_bytes: int) -> None:
        self.buffer = resource if isinstance(resource, Buffer) else None
        self.view = None if isinstance(resource, Buffer) else resource.create_view()
        self.size_bytes = size_bytes


class WeightStore:
    """The constants of one device by content and packing. It does not keep them: the programs that use them do."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._weights: weakref.WeakValueDictionary[Any, Weight] = weakref.WeakValueDictionary()
        self._staged_bytes = 0

    @classmethod
    def of(cls, device: Device) -> WeightStore:
        """Return the store of a device."""
        with device.lock:
            return device.shared.setdefault("weights", cls(device))

    def __len__(self) -> int:
        return len(self._weights)

    @property
    def size_bytes(self) -> int:
        """Bytes of all constants on the device."""
        return sum(weight.size_bytes for weight in list(self._weights.values()))

    def get(self, array: Array, packing: Packing | None, label: str = "") -> Weight:
        """Return a constant on the device, uploading it unless the same bytes are there in the same form.

        The memory of an array in a mapped file is given back: it is read again where it is needed again.

        Raises:
            OutOfMemoryError: the device cannot hold it.
        """
        key = (array.dtype.str, array.shape, _digest(array), packing)
        with self._device.lock:
            found = self._weights.get(key)
            if found is None:
                found = self._weights[key] = self._upload(array, packing, label)
                self._staged_bytes += found.size_bytes
                if self._staged_bytes > _STAGED_BYTES:
                    self._staged_bytes = 0
                    self._device.check()
                    self._device.gpu.queue.submit([])
                    self._device.wait()
            _release_pages(array)
            return found

    def _upload(self, array: Array, packing: Packing | None, label: str) -> Weight:
        packed: Array = np.ascontiguousarray(tensor_bytes(array) if packing is None else packing.pack(array))
        if packing is not None and packing.texture:
            height, width, _ = packed.shape
            gpu = self._device.gpu
            with self._device.translated(f"{label} of {packed.nbytes} bytes"):
                texture = gpu.create_texture(
                    label=label,
                    size=(width, height, 1),
                    format="rgba32float",
                    usage=wgpu.TextureUsage.STORAGE_BINDING | wgpu.TextureUsage.COPY_DST,
                )
                gpu.queue.write_texture(
                    {"texture": texture},
                    packed,
                    {"bytes_per_row": width * 16, "rows_per_image": height},
                    (width, height, 1),
                )
            return Weight(texture, packed.nbytes)
        buffer = self._device.create_buffer(packed.nbytes, label)
        buffer.write(packed)
        return Weight(buffer, buffer.size_bytes)


def _digest(array: Array) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).digest()


def _release_pages(array: Array) -> None:
    """Let go of the pages that an array keeps of a file mapped for reading only; touching them loads them anew."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if not isinstance(owner, mmap.mmap) or not hasattr(owner, "madvise") or not array.flags.c_contiguous:
        return
    whole: Array = np.frombuffer(owner, np.uint8)
    if whole.flags.writeable:
        return
    first = array.ctypes.data - whole.ctypes.data
    begin = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (first + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if end > begin:
        owner.madvise(mmap.MADV_DONTNEED, begin, end - begin)
