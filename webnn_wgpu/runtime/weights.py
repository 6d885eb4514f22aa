"""The weight store: constants on the device, shared by all graphs of a device that use the same bytes in the same form."""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.mapped import release_pages
from ..kernels.packing import packed_array
from ..kernels.spec import TEXEL_FORMATS, Packing
from .buffer import Buffer
from .device import Device

_STAGED_BYTES = 8 * 1024 * 1024
"""The maximum number of bytes in staging memory: an upload takes that much again until the queue has copied it."""

TEXTURE_USAGE = wgpu.TextureUsage.STORAGE_BINDING | wgpu.TextureUsage.TEXTURE_BINDING
"""How kernels read textures: one each way, as a rule."""


class Weight:
    """One constant on the device: a buffer, or the view of a texture. Its memory is freed with the last user."""

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
        """Return a constant on the device, and upload it unless the same bytes are there in the same form.

        The memory of an array in a mapped file is freed. The system reads the file again when necessary.

        Raises:
            OutOfMemoryError: the device cannot hold it.
        """
        key = (array.dtype.str, array.shape, _digest(array), packing)
        with self._device.lock:
            found = self._weights.get(key)
            if found is None:
                found = self._weights[key] = self._upload(array, packing, label)
            release_pages(array)
            return found

    def _upload(self, array: Array, packing: Packing | None, label: str) -> Weight:
        packed = packed_array(array, packing)
        if packing is not None and packing.texture:
            height, width, _ = packed.shape
            texel_bytes = 4 * packed.itemsize
            gpu = self._device.gpu
            with self._device.translated(f"{label} of {packed.nbytes} bytes"):
                texture = gpu.create_texture(
                    label=label,
                    size=(width, height, 1),
                    format=TEXEL_FORMATS[packed.dtype.name],
                    usage=TEXTURE_USAGE | wgpu.TextureUsage.COPY_DST,
                )
                rows = max(1, _STAGED_BYTES // (width * texel_bytes))
                for top in range(0, height, rows):
                    part = packed[top : top + rows]
                    gpu.queue.write_texture(
                        {"texture": texture, "origin": (0, top, 0)},
                        part,
                        {"bytes_per_row": width * texel_bytes, "rows_per_image": len(part)},
                        (width, len(part), 1),
                    )
                    self._staged(part.nbytes)
            return Weight(texture, packed.nbytes)
        buffer = self._device.create_buffer(packed.nbytes, label)
        flat = packed.reshape(-1).view(np.uint8)
        for start in range(0, flat.nbytes, _STAGED_BYTES):
            part = flat[start : start + _STAGED_BYTES]
            buffer.write(part, start)
            self._staged(part.nbytes)
        return Weight(buffer, buffer.size_bytes)

    def _staged(self, size_bytes: int) -> None:
        """Count bytes as staged, and wait for the queue if there are many."""
        self._staged_bytes += size_bytes
        if self._staged_bytes >= _STAGED_BYTES:
            self._staged_bytes = 0
            self._device.check()
            self._device.gpu.queue.submit([])
            self._device.wait()


def _digest(array: Array) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).digest()
