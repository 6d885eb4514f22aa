"""The factors of matrix products, and the forms in which kernels read them: row-major, or parts of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.data_types import DATA_TYPES
from ..kernels.packing import Chain, Columns, Permuted, Transposed
from ..kernels.spec import KernelCall, Operand, Packed, Packing, Temp
from ._def import Lowering
from ._shapes import strides_of
from ._strided_copy import strided_call


@dataclass(frozen=True)
class Factor:
    """One factor: the matrices in the last two dimensions of a value, transposed or not.

    The matrices of the last `heads` leading dimensions lie beside each other in rows, as attention's heads do. The value then
    has the dimensions [..., rows, *heads, columns]. `shape` has them in the order of other factors.

    Scratch memory and packed constants hold their matrices row by row: they are not transposed. The kernel subtracts the zero
    point from each element.
    """

    value: Operand
    data_type: str
    shape: tuple[int, ...]
    transposed: bool = False
    zero_point: int = 0
    heads: int = 0

    @classmethod
    def of(cls, low: Lowering, index: int, transposed: bool = False, *, heads: int = 0) -> Factor:
        """Return an operand of a node as a factor."""
        type_ = low.input(index)
        shape = heads_first(type_.shape, heads)
        return cls(low.value(index), type_.data_type, shape, transposed, low.zero_point(index), heads)

    @property
    def rows(self) -> int:
        """Rows of a matrix, once transposed."""
        return self.shape[-1 if self.transposed else -2]

    @property
    def columns(self) -> int:
        """Columns of a matrix, once transposed."""
        return self.shape[-2 if self.transposed else -1]

    @property
    def size_bytes(self) -> int:
        """The size of all matrices."""
        return math.prod(self.shape) * DATA_TYPES[self.data_type].size_bytes

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of `shape` in memory."""
        return heads_first(strides_of(rows_first(self.shape, self.heads)), self.heads)

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading dimensions."""
        return self.shape[:-2]


def rows_first(dims: Sequence[int], heads: int) -> tuple[int, ...]:
    """Return [..., rows, *heads, columns] for [..., *heads, rows, columns]."""
    outer = len(dims) - 2 - heads
    return (*dims[:outer], dims[-2], *dims[outer:-2], dims[-1])


def heads_first(dims: Sequence[int], heads: int) -> tuple[int, ...]:
    """Return [..., *heads, rows, columns] for [..., rows, *heads, columns]."""
    outer = len(dims) - 2 - heads
    return (*dims[:outer], *dims[outer + 1 : -1], dims[outer], dims[-1])


@dataclass(frozen=True)
class ColumnRange:
    """Columns first..end-1 of a product that is `width` columns wide."""

    first: int
    end: int
    width: int

    @property
    def columns(self) -> int:
        """How many there are."""
        return self.end - self.first

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return self.columns == self.width


def steps_of(low: Lowering, factor: Factor, side: str, first: int, end: int, calls: list[KernelCall]) -> Factor:
    """Return the columns (of `a`) or rows (of `b`) of a factor that are steps first..end-1 of the sums: a copy."""
    *batch, rows, columns = factor.strides
    if factor.transposed:
        rows, columns = columns, rows
    shape = (*factor.batch, factor.rows, end - first) if side == "a" else (*factor.batch, end - first, factor.columns)
    temp = Temp(f"{side} {first}", math.prod(shape) * DATA_TYPES[factor.data_type].size_bytes)
    base = first * (columns if side == "a" else rows)
    reason = f"steps {first} to {end} of {side}"
    calls.append(strided_call(factor.value, factor.data_type, base, shape, (*batch, rows, columns), temp, low.target, reason))
    return replace(factor, value=temp, shape=shape, transposed=False, heads=0)


def is_constant(low: Lowering, operand: Operand) -> bool:
    """Return whether an operand is a constant that may be packed at build time."""
    return isinstance(operand, Packed) or (isinstance(operand, int) and low.is_constant(operand))


def packed(low: Lowering, factor: Factor, packing: Packing) -> Packed:
    """Return a constant factor with a packing of its matrices. A packed operand receives the packing on top of its own.

    Packings take the matrices from the dimensions of the array. A constant whose dimensions are others than the factor's, such
    as the image of a pointwise convolution, is therefore reshaped first.
    """
    value, shape = factor.value, factor.shape
    held = value.packing if isinstance(value, Packed) else None
    constant = value.value if isinstance(value, Packed) else value
    assert isinstance(constant, int)
    dims = low.graph.type(constant).shape
    if (held.packed_shape(dims) if held else dims)[-2:] != shape[-2:]:
        reshaped = Permuted(shape, tuple(range(len(shape))))
        held = Chain(held, reshaped) if held else reshaped
    return Packed(constant, Chain(held, packing) if held else packing)


def columns_of(low: Lowering, factor: Factor, block: ColumnRange, calls: list[KernelCall]) -> Operand:
    """Return a block of a factor's columns in row-major order: a copy, made at build time if it is a single constant."""
    *batch, rows, columns = factor.strides
    if factor.transposed:
        rows, columns = columns, rows
    if is_constant(low, factor.value) and math.prod(factor.batch) == 1:
        return packed(low, factor, Columns(block.first, block.end, factor.rows, factor.transposed))
    dims = (*factor.batch, factor.rows, block.columns)
    temp = Temp(f"columns {block.first} of {dims}", math.prod(dims) * DATA_TYPES[factor.data_type].size_bytes)
    base, steps = block.first * columns, (*batch, rows, columns)
    reason = f"columns {block.first} to {block.end} of b"
    calls.append(strided_call(factor.value, factor.data_type, base, dims, steps, temp, low.target, reason))
    return temp


def row_major(low: Lowering, factor: Factor, key: str, calls: list[KernelCall]) -> Operand:
    """Return the factor's matrices in row-major order: a copy of those that are not, at build time if it is a constant."""
    if not factor.transposed and not factor.heads:
        return factor.value
    if is_constant(low, factor.value) and not factor.heads:
        return packed(low, factor, Transposed())
    *batch, rows, columns = factor.strides
    steps = (*batch, columns, rows) if factor.transposed else factor.strides
    temp = Temp(key, factor.size_bytes)
    dims = (*factor.batch, factor.rows, factor.columns)
    reason = f"{key} transposed" if factor.transposed else f"heads of {key}"
    calls.append(strided_call(factor.value, factor.data_type, 0, dims, steps, temp, low.target, reason))
    return temp
