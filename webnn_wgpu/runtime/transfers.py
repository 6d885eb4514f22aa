"""Copies between storage buffers by a compute kernel.

The copies of encoders move whole words, need the usages COPY_SRC and COPY_DST, and cannot be recorded into a compute pass. The
kernel needs the usage STORAGE alone, runs among the other dispatches of a pass, and can preserve some bytes of a word.
"""

from __future__ import annotations

from typing import Any

from ..kernels.element import WORD_BYTES, whole_words
from ..kernels.spec import Binding, KernelSpec
from ..kernels.templates import shader_root
from .buffer import Buffer
from .device import Device
from .pipelines import Pipeline, PipelineCache
from .recorder import Dispatch

_WORKGROUP_ITEMS = 256
"""The words, or vectors of four, that a workgroup copies if the grid has room for as many workgroups: four per invocation."""

_VECTORS_FROM = 16 * 1024
"""Bytes from which on two dispatches, of vectors and of the words behind them, take less time than one of words."""


def copy_bytes(device: Device, source: Buffer, destination: Buffer, size_bytes: int) -> list[Dispatch]:
    """Return dispatches that copy bytes from the beginning of a buffer to the beginning of another.

    The other bytes of the last word of the destination stay unchanged.

    Args:
        device: the device of both.
        source: a buffer of at least `size_bytes`, rounded up to whole words.
        destination: another one.
        size_bytes: the number of bytes to copy.
    """
    alignment = device.caps.limit("min-storage-buffer-offset-alignment")
    step = device.caps.limit("max-storage-buffer-binding-size") // alignment * alignment
    vectors = size_bytes // alignment * alignment if size_bytes >= _VECTORS_FROM else 0
    end = whole_words(size_bytes)
    found: list[Dispatch] = []
    for first, last, item in ((0, vectors, 4 * WORD_BYTES), (vectors, end, WORD_BYTES)):
        for start in range(first, last, step):
            size = min(step, last - start)
            bits = _bits_of_last_word(size_bytes) if start + size == end else 8 * WORD_BYTES
            found.append(_copy(device, _part(source, start, size), _part(destination, start, size), item, bits))
    return found


def put_last_word(device: Device, word: Buffer, destination: Buffer) -> Dispatch:
    """Return a dispatch that copies the first bytes of a word to the end of a buffer whose data ends within its last word.

    The other bytes of the last word of the destination stay unchanged.
    """
    alignment = device.caps.limit("min-storage-buffer-offset-alignment")
    start = (destination.size_bytes - WORD_BYTES) // alignment * alignment
    last = _part(destination, start, destination.size_bytes - start)
    return _copy(device, _part(word, 0, WORD_BYTES), last, WORD_BYTES, _bits_of_last_word(destination.data_bytes))


def _bits_of_last_word(size_bytes: int) -> int:
    return 8 * (size_bytes % WORD_BYTES or WORD_BYTES)


def _part(buffer: Buffer, start: int, size: int) -> dict[str, Any]:
    return {"buffer": buffer.gpu, "offset": buffer.offset_bytes + start, "size": size}


def _copy(device: Device, source: dict[str, Any], destination: dict[str, Any], item_bytes: int, bits: int) -> Dispatch:
    kernel = _kernel(device, item_bytes, bits)
    entries: list[Any] = [{"binding": 0, "resource": source}, {"binding": 1, "resource": destination}]
    group = device.gpu.create_bind_group(label="copy", layout=kernel.layout, entries=entries)
    workgroups = -(-source["size"] // (item_bytes * _WORKGROUP_ITEMS))
    return Dispatch(
        pipeline=kernel.pipeline,
        bind_group=group,
        grid=(min(workgroups, device.caps.limit("max-compute-workgroups-per-dimension")), 1, 1),
    )


def _kernel(device: Device, item_bytes: int, bits: int) -> Pipeline:
    """Return the pipeline that copies items and of the destination's last word changes the lowest bits."""
    item = "u32" if item_bytes == WORD_BYTES else "vec4<u32>"
    text = (shader_root() / "transfers" / "copy.wgsl").read_text(encoding="utf-8")
    source = f"alias Item = {item};\nconst LAST = Item({(1 << bits) - 1:#x}u);\n{text}"
    bindings = (
        Binding(name="source", access="read", element="uint32"),
        Binding(name="destination", access="write", element="uint32"),
    )
    return PipelineCache.of(device).get(KernelSpec(template="copy", params=(), bindings=bindings, source=source))
