"""A caller's buffers as memory of tensors: the checks, and the preservation of the bytes around the tensor."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError, MLTypeError
from ..kernels.element import WORD_BYTES, whole_words
from .buffer import FREED, Buffer
from .device import Device
from .messages import usage_names
from .recorder import Recorder, make_recorder
from .transfers import put_last_word


class WrappedBuffer(Buffer):
    """The part of a caller's buffer that a tensor takes up: its bytes, and no byte more.

    Args:
        device: the buffer's device.
        gpu: the buffer.
        offset_bytes: the offset of the tensor.
        data_bytes: the size of the tensor. It need not fill its last word: the other bytes there belong to the caller.
    """

    def __init__(self, device: Device, gpu: wgpu.GPUBuffer, offset_bytes: int, data_bytes: int) -> None:
        super().__init__(device, gpu, offset_bytes, whole_words(data_bytes), borrowed=True)
        self.data_bytes = data_bytes
        self.reach_bytes = (gpu.size - offset_bytes) // WORD_BYTES * WORD_BYTES
        self._last_word: tuple[Buffer, Recorder] | None = None

    @classmethod
    def of(cls, device: Device, gpu: Any, offset_bytes: int, size_bytes: int | None) -> WrappedBuffer:
        """Return the part of a caller's buffer that a tensor of `size_bytes` takes up, or all of it.

        Raises:
            MLTypeError: the buffer belongs to another device or lacks the usage STORAGE, or the tensor does not fit into it
                there.
            InvalidStateError: the buffer is mapped, or was destroyed in a way that can be known.
            DeviceLostError: the device is gone.
        """
        if not isinstance(gpu, wgpu.GPUBuffer):
            raise MLTypeError("buffer must be a wgpu.GPUBuffer", got=type(gpu).__name__)
        label = gpu.label
        if gpu._device is not device.gpu:
            raise MLTypeError(
                "the buffer belongs to another device",
                label=label,
                got=f"a buffer of {gpu._device!r}",
                hint="Create it with the context's device, context.device",
            )
        if not gpu.usage & wgpu.BufferUsage.STORAGE:
            raise MLTypeError(
                "the buffer must have the usage STORAGE", label=label, got=usage_names(wgpu.BufferUsage, gpu.usage)
            )
        alignment = device.caps.limit("min-storage-buffer-offset-alignment")
        if offset_bytes < 0 or offset_bytes % alignment:
            raise MLTypeError(
                "the offset must be one that the device can bind",
                label=label,
                got=f"offset={offset_bytes}",
                allowed=f"multiples of min-storage-buffer-offset-alignment {alignment}",
            )
        size = gpu.size if size_bytes is None else size_bytes
        end = offset_bytes + whole_words(size)
        if end > gpu.size:
            raise MLTypeError(
                f"the buffer must hold the tensor, rounded up to whole words of {WORD_BYTES} bytes",
                label=label,
                got=f"a tensor of {size} bytes at offset {offset_bytes} of a buffer of {gpu.size} bytes",
                allowed=f"a buffer of at least {end} bytes",
            )
        device.check()
        unknown = FREED not in gpu.__dict__
        made = cls(device, gpu, offset_bytes, size)
        made.check()
        if unknown:
            with device.lock, device.translated("wrapping a buffer"):
                _check_not_destroyed(device, gpu)
        return made

    def write(self, data: Array, at: int = 0) -> None:
        """Queue a write of a C-contiguous array at a byte offset that is a multiple of 4.

        The caller may change the array at once.

        The queue writes whole words. A kernel writes the bytes at the beginning of a last word that the tensor does not fill.
        """
        flat = data.reshape(-1).view(np.uint8)
        rest = flat.nbytes % WORD_BYTES
        with self.device.lock:
            if flat.nbytes > rest:
                super().write(flat[: flat.nbytes - rest], at)
            if rest:
                self.check()
                self._write_last_word(flat[flat.nbytes - rest :])

    def _write_last_word(self, data: Array) -> None:
        device = self.device
        with device.translated("a write"):
            if self._last_word is None:
                word = device.create_buffer(WORD_BYTES, "last word")
                self._last_word = word, make_recorder([put_last_word(device, word, self)])
            word, recorder = self._last_word
            word.write(data)
        device.submit_by(partial(recorder.submit, device.gpu), (self, word))


def _check_not_destroyed(device: Device, gpu: Any) -> None:
    """Raise InvalidStateError if a buffer was destroyed before it was watched: wgpu then refuses to bind it.

    Copying from it would end the process.
    """
    layout = device.shared.get("bindable")
    if layout is None:
        binding = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}
        layout = device.shared["bindable"] = device.gpu.create_bind_group_layout(entries=[binding])
    resource = {"buffer": gpu, "offset": 0, "size": WORD_BYTES}
    try:
        device.gpu.create_bind_group(layout=layout, entries=[{"binding": 0, "resource": resource}])
    except wgpu.GPUValidationError as error:
        device.check()  # a lost device cannot bind either
        gpu.__dict__[FREED].set()
        raise InvalidStateError("the buffer was destroyed", label=gpu.label, hint="Wrap a live buffer") from error
