"""The elements of constant tensors: in the file, behind it, in files beside it, packed or sparse."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np

from webnn_wgpu import NotSupportedError

from ..common.held import Array
from .contents import Sparsity, TensorRecord, TfliteFile

BITS = {
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.uint4): 4,
    np.dtype(ml_dtypes.int2): 2,
    np.dtype(ml_dtypes.uint2): 2,
}
"""Types with several elements to a byte."""

MOST_EXPANDED = 1 << 28
"""The maximum number of elements of a sparse tensor."""


class Constants:
    """The constant tensors of a file, each read when it is first used.

    Args:
        file: the file.
    """

    def __init__(self, file: TfliteFile) -> None:
        self._file = file
        self._arrays: dict[tuple[int, int], Array] = {}

    def has(self, record: TensorRecord) -> bool:
        """Return whether a tensor is a constant."""
        if record.is_variable:
            return False
        if record.is_empty:
            return True
        return bool(record.external) or (record.buffer > 0 and self._file.buffers[record.buffer][1] > 0)

    def array(self, subgraph: int, record: TensorRecord) -> Array:
        """Return the elements of a constant tensor.

        Raises:
            NotSupportedError: the number of bytes does not fit the shape, or a file beside the model is missing.
        """
        key = (subgraph, record.index)
        if key not in self._arrays:
            array = self._read(record)
            array.flags.writeable = False
            self._arrays[key] = array
        return self._arrays[key]

    def forget(self) -> None:
        """Release the arrays that were read. The next use of a constant reads it again."""
        self._arrays.clear()

    def check(self, record: TensorRecord) -> None:
        """Check the number of bytes of a constant that is stored whole.

        Raises:
            NotSupportedError: the bytes do not fit the shape.
        """
        if record.sparsity is None and not record.external and record.dtype is not None and record.shape is not None:
            self._require_bytes(record, self._file.buffers[record.buffer][1])

    def _require_bytes(self, record: TensorRecord, count: int) -> None:
        assert record.dtype is not None
        assert record.shape is not None
        bits = BITS.get(record.dtype)
        needed = record.size * record.dtype.itemsize if bits is None else -(-record.size * bits // 8)
        if count != needed:
            raise self._fail(record, f"has {count} bytes, but {record.type_name}{list(record.shape)} takes {needed}")

    def _fail(self, record: TensorRecord, fault: str) -> NotSupportedError:
        return NotSupportedError(f"{self._file.name}: tensor {record.index} ('{record.name}') {fault}")

    def _read(self, record: TensorRecord) -> Array:
        if record.dtype is None or record.shape is None:
            raise self._fail(record, f"is a constant of type {record.type_name}, which is not supported")
        data = self._external(record) if record.external else self._file.bytes_of(record.buffer)
        if record.sparsity is not None:
            return self._expanded(record, record.sparsity, data)
        self._require_bytes(record, len(data))
        bits = BITS.get(record.dtype)
        if bits is not None:
            return unpacked(np.frombuffer(data, np.uint8), bits, record.size).astype(record.dtype).reshape(record.shape)
        return np.frombuffer(data, record.dtype).reshape(record.shape)

    def _external(self, record: TensorRecord) -> memoryview:
        buffer = self._file.external[record.external]
        name = buffer.file
        if not self._file.folder or os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
            raise self._fail(record, f"is in the file {name!r}, which must be beside the model")
        path = os.path.join(self._file.folder, name)
        try:
            size = os.path.getsize(path)
        except OSError as error:
            raise self._fail(record, f"is in the file {name!r}, which cannot be read: {error}") from error
        if buffer.offset + buffer.length > size:
            raise self._fail(
                record, f"has bytes {buffer.offset} to {buffer.offset + buffer.length} of {name!r}, beyond its end"
            )
        if not buffer.length:
            return memoryview(b"")
        mapped: Any = np.memmap(path, np.uint8, "r", buffer.offset, (buffer.length,))
        return memoryview(mapped)

    def _expanded(self, record: TensorRecord, sparsity: Sparsity, data: memoryview) -> Array:
        """Return a sparse tensor with all its elements."""
        assert record.shape is not None
        assert record.dtype is not None
        if record.size > MOST_EXPANDED:
            raise self._fail(record, f"is sparse and has {record.size} elements; at most {MOST_EXPANDED} are allowed")
        bits = BITS.get(record.dtype)
        count = len(data) // record.dtype.itemsize if bits is None else len(data) * 8 // bits
        values = (
            np.frombuffer(data, record.dtype, count)
            if bits is None
            else unpacked(np.frombuffer(data, np.uint8), bits, count).astype(record.dtype)
        )
        rank = len(record.shape)
        places = [np.zeros(1, np.int64)]  # of each level so far, the index of every stored path
        parents = np.zeros(1, np.int64)
        for level in sparsity.levels:
            if level.segments is None or level.indices is None:
                if level.size < 0 or len(parents) * level.size > max(count, record.size):
                    raise self._fail(record, f"is sparse with a dimension of {level.size}")
                new = np.tile(np.arange(level.size), len(parents))
                repeats = np.full(len(parents), level.size)
                parents = np.arange(len(parents) * level.size)
            else:
                segments = level.segments.astype(np.int64)
                if len(parents) and int(parents.max()) + 1 >= len(segments):
                    raise self._fail(record, "is sparse with too few segments")
                starts, ends = segments[parents], segments[parents + 1]
                repeats = ends - starts
                total = int(repeats.sum())
                if (repeats < 0).any() or (ends > len(level.indices)).any() or total > max(count, record.size):
                    raise self._fail(record, "is sparse with segments that do not fit its indices")
                offsets = np.cumsum(repeats) - repeats
                parents = np.repeat(starts - offsets, repeats) + np.arange(total)
                new = level.indices.astype(np.int64)[parents]
            places = [np.repeat(p, repeats) for p in places] + [new]
        if len(parents) != count or (count and int(parents.max()) >= count):
            raise self._fail(record, f"is sparse with {len(parents)} places for {count} elements")
        found = dict(zip(sparsity.order, places[1:], strict=True))
        sizes = dict(zip(sparsity.order, (level.size for level in sparsity.levels), strict=True))
        index = [found[d] for d in range(rank)]
        for i, dimension in enumerate(sparsity.blocked):
            index[dimension] = index[dimension] * sizes[rank + i] + found[rank + i]
        if any(len(i) and (int(i.max()) >= d or int(i.min()) < 0) for i, d in zip(index, record.shape, strict=True)):
            raise self._fail(record, f"is sparse with elements outside its shape {list(record.shape)}")
        result = np.zeros(record.shape, record.dtype)
        result[tuple(index)] = values[parents]
        return result


def unpacked(data: Array, bits: int, count: int) -> Array:
    """Return elements of 2 or 4 bits, the first in the lowest bits of a byte, as bytes.

    Example:
        >>> unpacked(np.array([0x21, 0x03], np.uint8), 4, 3)
        array([1, 2, 3], dtype=uint8)
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)[:count]
