"""The weight store: constants on the device, shared by all graphs of a device that use the same bytes in the same form."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..kernels.spec import Packing
from .device import Buffer, Device


class Weight:
    """One constant on the device: a buffer, or a texture with its view. Freed when the last user releases it."""

    def __init__(self, store: WeightStore, key: Any, resource: Buffer | wgpu.GPUTexture) -> None:
        self._store, self._key, self._users = store, key, 0
        self.resource = resource
        self.view: Any = None if isinstance(resource, Buffer) else resource.create_view()

    @property
    def size_bytes(self) -> int:
        """Bytes on the device."""
        if isinstance(self.resource, Buffer):
            return self.resource.size_bytes
        width, height, _ = self.resource.size
        return width * height * 16

    def acquire(self) -> Weight:
        """Count one more user and return the weight."""
        self._users += 1
        return self

    def release(self) -> None:
        """Count one user less; the last one frees the memory."""
        self._users -= 1
        if self._users == 0:
            self._store.forget(self._key)
            self.resource.destroy()


class WeightStore:
    """The constants of one device by content and packing."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._weights: dict[Any, Weight] = {}

    @classmethod
    def of(cls, device: Device) -> WeightStore:
        """Return the store of a device."""
        with device.lock:
            return device.shared.setdefault("weights", cls(device))

    @property
    def size_bytes(self) -> int:
        """Bytes of all constants on the device."""
        return sum(weight.size_bytes for weight in self._weights.values())

    def acquire(self, array: Array, packing: Packing | None, label: str = "") -> Weight:
        """Return a constant on the device, uploading it unless the same bytes are there in the same form.

        Raises:
            OutOfMemoryError: the device cannot hold it.
        """
        key = (array.dtype.str, array.shape, _digest(array), packing)
        with self._device.lock:
            found = self._weights.get(key)
            if found is None:
                found = self._weights[key] = Weight(self, key, self._upload(array, packing, label))
            return found.acquire()

    def forget(self, key: Any) -> None:
        """Drop a constant whose last user is gone."""
        self._weights.pop(key, None)

    def _upload(self, array: Array, packing: Packing | None, label: str) -> Buffer | wgpu.GPUTexture:
        packed: Array = np.ascontiguousarray(array if packing is None else packing.pack(array))
        if packing is not None and packing.texture:
            height, width, _ = packed.shape
            gpu = self._device.gpu
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
            return texture
        buffer = self._device.create_buffer(packed.nbytes, label)
        buffer.write(packed)
        return buffer


def _digest(array: Array) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.blake2b(flat.data, digest_size=16).digest()
