"""The contents of a TFLite file as plain data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..common.held import Array, DType

MANY = 1 << 62


@dataclass(frozen=True, kw_only=True)
class Quantization:
    """The mapping of a tensor's integers to numbers: scale * (integer - zero point).

    Attributes:
        scales: float32, one number, or one for each index of `axis`.
        zero_points: int64, as many as scales.
        axis: the dimension of the scales, if there are several.
        block_scales: the index of the tensor of scales of weights with a scale per block. It is -1 without blocks.
        block_zero_points: the index of the tensor of their zero points. It is -1 if these are 0.
        block_size: the number of elements of a block.
    """

    scales: Array
    zero_points: Array
    axis: int = 0
    block_scales: int = -1
    block_zero_points: int = -1
    block_size: int = 0

    @property
    def scale(self) -> float:
        """The scale of a tensor with one scale."""
        return float(self.scales[0])

    @property
    def zero_point(self) -> int:
        """The zero point of a tensor with one zero point."""
        return int(self.zero_points[0])

    @property
    def is_whole(self) -> bool:
        """Whether one scale and one zero point hold for the whole tensor."""
        return len(self.scales) == 1 and self.block_scales < 0

    def same_as(self, other: Quantization | None) -> bool:
        """Return whether both map each integer to the same number."""
        return (
            other is not None
            and self.is_whole
            and other.is_whole
            and self.scales[0] == other.scales[0]
            and self.zero_points[0] == other.zero_points[0]
        )


@dataclass(frozen=True, kw_only=True)
class SparseDimension:
    """One level of a sparse tensor: `size` elements if it is dense, otherwise segments with the indices of their elements."""

    size: int
    segments: Array | None = None
    indices: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """The storage of a sparse tensor.

    Attributes:
        order: the dimensions in the order of the storage. Inner dimensions of blocks count on behind the tensor's own.
        blocked: for each dimension of the blocks, the tensor's dimension that they divide.
        levels: the levels in the order of the storage.
    """

    order: tuple[int, ...]
    blocked: tuple[int, ...]
    levels: tuple[SparseDimension, ...]


@dataclass(frozen=True, kw_only=True)
class TensorRecord:
    """A tensor of a subgraph.

    Attributes:
        index: its number in the subgraph.
        name: its name, which need not be unique.
        type_name: its data type as the format spells it.
        dtype: its data type, None for strings and other types that cannot be held.
        shape: its sizes. None where the rank is unknown.
        signature: the sizes with -1 for each size that is open.
        buffer: the number of its buffer.
        external: the number of its external buffer, 0 without one.
        is_variable: whether it keeps its elements from run to run.
        is_empty: whether it is a constant without elements: nothing computes it.
        quantization: the mapping of its integers to numbers.
        sparsity: its storage, if it is sparse.
    """

    index: int
    name: str
    type_name: str
    dtype: DType | None
    shape: tuple[int, ...] | None
    signature: tuple[int, ...] | None
    buffer: int = 0
    external: int = 0
    is_variable: bool = False
    is_empty: bool = False
    quantization: Quantization | None = None
    sparsity: Sparsity | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for d in self.shape or ():
            count = min(count * d, MANY)
        return count


@dataclass(frozen=True, kw_only=True)
class OperatorRecord:
    """An operator of a subgraph.

    Attributes:
        index: its number in the subgraph.
        name: the operator's name, for custom operators as the file has it.
        custom: whether it is a custom operator.
        version: the version of the operator.
        inputs: tensor numbers, -1 for absent ones.
        outputs: tensor numbers.
        intermediates: tensor numbers of the operator's own.
        options: the accessor of its options, None without any.
        custom_options: the bytes of a custom operator's options.
    """

    index: int
    name: str
    custom: bool
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    options: Any = None
    custom_options: bytes = b""


@dataclass(frozen=True, kw_only=True)
class SubgraphRecord:
    """A subgraph: tensors, and operators in the order of their execution."""

    index: int
    name: str
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class SignatureRecord:
    """A named entry of a model: names of inputs and outputs, with the tensor numbers of its subgraph."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ExternalBuffer:
    """A range of a file beside the model."""

    file: str
    offset: int
    length: int


@dataclass(kw_only=True)
class TfliteFile:
    """A parsed TFLite file.

    Attributes:
        name: the name in messages, the file's name without suffix.
        path: the file's path. None for bytes.
        data: the bytes of the file, mapped.
        description: the file's description of itself.
        subgraphs: the subgraphs, the main one first.
        signatures: the named entries.
        metadata: names of metadata and numbers of their buffers.
        buffers: offset and size of each buffer in the file.
        external: external buffers by number.
    """

    name: str
    path: str | None
    data: memoryview
    description: str = ""
    subgraphs: Sequence[SubgraphRecord] = ()
    signatures: Sequence[SignatureRecord] = ()
    metadata: Mapping[str, int] = field(default_factory=dict[str, int])
    buffers: Sequence[tuple[int, int]] = ()
    external: Mapping[int, ExternalBuffer] = field(default_factory=dict[int, ExternalBuffer])

    def bytes_of(self, buffer: int) -> memoryview:
        """Return the bytes of a buffer."""
        offset, size = self.buffers[buffer]
        return self.data[offset : offset + size]

    def metadata_bytes(self, name: str) -> bytes | None:
        """Return the bytes of a metadata entry, or None if there is none of this name."""
        return bytes(self.bytes_of(self.metadata[name])) if name in self.metadata else None

    @cached_property
    def folder(self) -> str:
        """The folder of the file, in which external buffers are."""
        return os.path.dirname(os.path.abspath(self.path)) if self.path else ""


EMPTY = np.zeros(0, np.float32)
