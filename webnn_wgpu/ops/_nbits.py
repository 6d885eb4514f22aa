"""Numbers of 2, 4 or 8 bits in bytes, the first in the low bits, of which blocks share a scale and a zero point.

The shader side is `shaders/lib/nbits.wgsl.j2`.
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Array
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
    """Return the zero point of every block as float64 [rows, blocks]; absent ones are half of the range."""
    if zero_points is None:
        return np.full((rows, blocks), 2.0 ** (bits - 1))
    if zero_points.dtype == np.uint8:
        return unpacked(zero_points.reshape(rows, -1), bits)[:, :blocks].astype(np.float64)
    return wide(zero_points.reshape(rows, blocks))


def check_bits(call: OpCall) -> tuple[int, int]:
    """Check and return the attributes `bits` and `block_size`."""
    bits, size = call.attrs["bits"], call.attrs["block_size"]
    call.require(bits in BITS, "bits is not allowed", got=f"bits={bits}", allowed=", ".join(map(str, BITS)))
    call.require(size >= 16 and size & (size - 1) == 0, "block_size must be a power of 2, 16 or more", got=f"block_size={size}")
    return bits, size
