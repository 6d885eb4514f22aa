"""Product of rows of 8-bit integers with a constant matrix of them, which passes make of products of quantized numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.wording import counted
from ..costs import ProductSize
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD, WORD_BYTES
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, Packing, grid_1d
from ..kernels.tiles import tile_uniforms
from ._def import Lowering, OpCall, OpDef, Operand
from ._product import ProductKernel, declare_subgroups, finish
from .interfaces.bounds import EXACT
from .interfaces.cost import Cost
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .matmul import product_operations

STEP = 16
"""Numbers that the kernel reads at once: K is a multiple of it."""

_TEMPLATE = KernelTemplate("integer_product", ("tile", "signed", "subgroups", "c_read", "expression", "extra_reads"))


@dataclass(frozen=True)
class IntegerColumns(Packing):
    """A matrix of whole numbers from -128 to 127 as words of four rows, whose columns are padded to quads: [K / 4, columns].

    Example:
        >>> words = IntegerColumns().pack(np.array([[1], [2], [3], [-1]], np.float32))
        >>> [hex(word) for word in words[0]]
        ['0xff030201', '0x0', '0x0', '0x0']
    """

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the words."""
        return shape[0] // WORD_BYTES, -(-shape[1] // QUAD) * QUAD

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the words."""
        return math.prod(self.packed_shape(shape)) * WORD_BYTES

    def pack(self, array: Any) -> Any:
        """Return the words."""
        columns = np.ascontiguousarray(_padded(array).astype(np.int8).T)
        return columns.view(np.uint32).T


@dataclass(frozen=True)
class ColumnSums(Packing):
    """The sums of a matrix's columns, which are whole numbers, as int32, padded to quads.

    Example:
        >>> ColumnSums().pack(np.array([[1], [2], [3], [-1]], np.float32))
        array([5, 0, 0, 0], dtype=int32)
    """

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the sums."""
        return (-(-shape[1] // QUAD) * QUAD,)

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the sums."""
        return math.prod(self.packed_shape(shape)) * WORD_BYTES

    def pack(self, array: Any) -> Any:
        """Return the sums."""
        return _padded(array).sum(0, dtype=np.float64).astype(np.int32)


def _padded(matrix: Any) -> Any:
    return np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % QUAD)))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, b, zero = (call.input(i) for i in range(3))
    call.require(a.shape[-1] == b.shape[0], "the last dimension of a must equal the first of b")
    call.require(a.shape[-1] % STEP == 0, f"sums must have a multiple of {STEP} terms")
    call.require(zero.num_elements == 1, "zeroPoint must be one number")
    return (call.output("float32", (*a.shape[:-1], b.shape[1])),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, b, zero = arrays
    assert a is not None
    assert b is not None
    assert zero is not None
    product = (a.astype(np.float64) - float(zero.reshape(-1)[0])) @ b.astype(np.float64)
    return [np.asarray(product.astype(np.float32))]


def _lower(low: Lowering) -> list[KernelCall]:
    a, (K, N) = low.input(), low.input(1).shape
    size = ProductSize(math.prod(a.shape[:-1]), N, K)
    tile = low.target.costs.products.row_tile(size, steps=K // STEP)
    kernel = ProductKernel(params={"tile": tile, "signed": a.data_type == "int8"})
    declare_subgroups(kernel, low.caps)
    kernel.bind(Binding(name="a", access="read", element="uint32", quad=True), low.value(0))
    kernel.bind(Binding(name="b", access="read", element="uint32", quad=True), Packed(low.value(1), IntegerColumns()))
    kernel.bind(Binding(name="b_sums", access="read", element="int32", quad=True), Packed(low.value(1), ColumnSums()))
    kernel.bind(Binding(name="zero_point", access="read", element=low.input(2).data_type), low.value(2))
    tiles = tile_uniforms(size, tile.rows, tile.columns)
    kernel.uniforms(M=size.M, N=N, **tiles, steps=K // STEP, row_quads=-(-N // QUAD))

    def read(shape: Sequence[int]) -> str:
        count = math.prod(shape)
        return "one" if count == 1 else "full" if count == size.M * N else "columns"

    finish(kernel, low, N % QUAD == 0, read, None, row=N)
    return [kernel.call(_TEMPLATE, grid_1d(tiles["tiles"], low.caps), f"{counted(size.M, 'row')} of integers: split sums")]


INTEGER_PRODUCT = OpDef(
    name="integerProduct",
    operands=(
        Operand(name="a", data_types=("int8", "uint8"), min_rank=2),
        Operand(name="b", data_types=("float32",), min_rank=2, max_rank=2),
        Operand(name="zeroPoint", same_as="a"),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    templates=(_TEMPLATE,),
    family=Family.PRODUCT,
    without=("elementwise", "movement", "layout", "precision", "gradient"),
    epilogue=TakesEpilogue(),
    cost=Cost(product_operations),
    bounds=EXACT,
    internal=True,
)
"""The sums of (a - zeroPoint) * b, where `b` is a constant of whole numbers from -128 to 127, which only passes make.

float32 must hold all sums exactly.
"""

OPS = (INTEGER_PRODUCT,)
