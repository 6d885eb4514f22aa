"""Numbers of 2, 4 or 8 bits in bytes, the first in the low bits, of which blocks share a scale and a zero point.

The shader side is `shaders/lib/nbits.wgsl.j2`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.graph import Array
from ..kernels.element import QUAD, WORD_BYTES
from ..kernels.spec import Packing
from ._def import OpCall
from ._rows import wide
from .interfaces.documentation import Parameter

BITS = (2, 4, 8)
"""Bits that a number may have."""

BITS_PARAMETER = Parameter("bits", f"Literal[{', '.join(map(str, BITS))}]", "4")
"""The option `bits` in the signatures of methods."""


def zero_point_bytes(blocks: int, bits: int) -> int:
    """Return the bytes of the packed zero points of one row, which start at a whole byte.

    >>> zero_point_bytes(3, 4)
    2
    """
    return -(-blocks * bits // 8)


def unpacked(packed: Array, bits: int) -> Array:
    """Return the numbers that bytes hold along the last dimension.

    >>> unpacked(np.array([[0x21, 0x43]], np.uint8), 4)
    array([[1, 2, 3, 4]], dtype=uint8)
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[..., None] >> shifts & np.uint8(2**bits - 1)).reshape(*packed.shape[:-1], -1)


def zeros_of(zero_points: Array | None, rows: int, blocks: int, bits: int) -> Array:
    """Return the zero point of every block as float64 [rows, blocks]. An absent zero point is half of the range."""
    if zero_points is None:
        return np.full((rows, blocks), 2.0 ** (bits - 1))
    if zero_points.dtype == np.uint8:
        return unpacked(zero_points.reshape(rows, -1), bits)[:, :blocks].astype(np.float64)
    return wide(zero_points.reshape(rows, blocks))


def _columns_beside_each_other(rows: Array) -> Array:
    """Return the transpose of a matrix, whose rows are padded to whole quads with zeros."""
    return np.pad(rows, ((0, -len(rows) % QUAD), (0, 0))).T


@dataclass(frozen=True)
class NbitsWords(Packing):
    """The words of columns of numbers, [N, blocks, bytes], as quads of columns: [words of a column, N padded to quads].

    Example:
        >>> NbitsWords().pack(np.array([[[1, 0, 0, 0, 2, 0, 0, 0]]], np.uint8))
        array([[1, 0, 0, 0],
               [2, 0, 0, 0]], dtype=uint32)
    """

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the words."""
        return math.prod(shape[1:]) // WORD_BYTES, -(-shape[0] // QUAD) * QUAD

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the words."""
        return math.prod(self.packed_shape(shape)) * WORD_BYTES

    def pack(self, array: Any) -> Any:
        """Return the words."""
        return _columns_beside_each_other(np.ascontiguousarray(array).reshape(len(array), -1).view(np.uint32))


@dataclass(frozen=True)
class NbitsBlocks(Packing):
    """The scales or zero points of columns, [N, blocks], as quads of columns: [blocks, N padded to quads].

    Attributes:
        columns: N.
        blocks: blocks of a column.
        bits: the bits of a zero point. A byte holds several of them, and each becomes a byte. 0 stands for floats.

    Example:
        >>> NbitsBlocks(2, 3, 4).pack(np.array([[0x21, 0x03], [0x54, 0x06]], np.uint8))
        array([[1, 4, 0, 0],
               [2, 5, 0, 0],
               [3, 6, 0, 0]], dtype=uint8)
    """

    columns: int
    blocks: int
    bits: int = 0

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the scales or zero points."""
        return self.blocks, -(-self.columns // QUAD) * QUAD

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the scales or zero points."""
        return math.prod(self.packed_shape(shape)) * element_bytes

    def pack(self, array: Any) -> Any:
        """Return the scales or zero points."""
        rows = np.reshape(array, (self.columns, -1))
        return _columns_beside_each_other(unpacked(rows, self.bits)[:, : self.blocks] if self.bits else rows)


def check_bits(call: OpCall) -> tuple[int, int]:
    """Check and return the attributes `bits` and `block_size`."""
    bits, size = call.attrs["bits"], call.attrs["block_size"]
    call.require(bits in BITS, "bits is not allowed", got=f"bits={bits}", allowed=", ".join(map(str, BITS)))
    call.require(size >= 16 and size & (size - 1) == 0, "block_size must be a power of 2, 16 or more", got=f"block_size={size}")
    return bits, size
