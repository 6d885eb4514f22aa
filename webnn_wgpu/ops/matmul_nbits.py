"""Matrix product with a right factor whose elements have 2, 4 or 8 bits, as language models keep their weights.

The numbers are taken out of their words inside the kernels: no wider copy of the right factor is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..core.errors import OperationError
from ..costs import Choice, ProductSize
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels import select
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, grid_1d
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._nbits import BITS_PARAMETER, NbitsBlocks, NbitsWords, check_bits, unpacked, zero_point_bytes, zeros_of
from ._product import FORCED, HIGHEST_BLOCK, declare_subgroups
from ._product_kernel import Addend, ProductKernel, finish
from ._rows import to_type, wide
from .gradients import products as products_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import Cost
from .interfaces.documentation import QUANTIZED_EXTENSIONS, Documentation, Method
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .matmul import product_operations

VARIANTS = ("subgroup", "tiled", "gemv", "plain")
"""The kernels. `subgroup` and `plain` share a template."""

_COMMON = ("bits", "c_read", "expression", "extra_reads")
_REGISTERS = KernelTemplate("matmul_nbits.registers", ("lanes", "rows", *_COMMON))
_TILED = KernelTemplate("matmul_nbits.tiled", ("tile", "packed", "whole", *_COMMON))
_GEMV = KernelTemplate("matmul_nbits.gemv", ("tile", "words", "packed", "whole", "subgroups", *_COMMON))

_WORDS_AT_ONCE = 4
"""Words of a column that the kernel for few rows reads at once, if its blocks are as large."""

_ROWS_OF_MANY_WORDS = 4
"""Rows up to which it does. For more rows, that takes so many registers that too few subgroups are resident."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    a, b, scales = (call.input(i) for i in range(3))
    bits, size = check_bits(call)
    K, (N, blocks, width) = a.shape[-1], b.shape
    wanted = -(-K // size), size * bits // 8
    call.require(
        (blocks, width) == wanted,
        "Incompatible shapes: b must be [N, blocks, block_size * bits / 8], as many blocks as the rows of a fill",
        allowed=f"[{N}, {wanted[0]}, {wanted[1]}]",
    )
    call.require(
        scales.shape in ((N, blocks), (N * blocks,)),
        "Incompatible shapes: scales must have one element per block of b",
        allowed=f"[{N}, {blocks}] or [{N * blocks}]",
    )
    zero_points, bias = call.inputs[3:]
    if zero_points is not None:
        call.require(
            zero_points.data_type in ("uint8", a.data_type),
            "zeroPoints data type is not allowed",
            allowed=f"uint8, {a.data_type}",
        )
        columns = zero_point_bytes(blocks, bits) if zero_points.data_type == "uint8" else blocks
        call.require(
            zero_points.shape in ((N, columns), (N * columns,)),
            "Incompatible shapes: zeroPoints must have one number per block of b, packed bytes starting anew with every column",
            allowed=f"[{N}, {columns}] or [{N * columns}]",
        )
    call.require(bias is None or bias.shape == (N,), "Incompatible shapes: bias must be [N]", allowed=f"[{N}]")
    return (call.output(a.data_type, (*a.shape[:-1], N)),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    a, b, scales, zero_points, bias = arrays
    assert a is not None
    assert b is not None
    assert scales is not None
    bits = attrs["bits"]
    N, blocks, _ = b.shape
    zeros = zeros_of(zero_points, N, blocks, bits)
    with np.errstate(all="ignore"):
        numbers = (unpacked(b, bits) - zeros[..., None]) * wide(scales.reshape(N, blocks, 1))
        result: Array = wide(a) @ numbers.reshape(N, -1)[:, : a.shape[-1]].T
        return [to_type(result if bias is None else result + wide(bias), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    a, (N, blocks, _) = low.input(), low.input(1).shape
    bits, block_size = low.attrs["bits"], low.attrs["block_size"]
    K = a.shape[-1]
    size = ProductSize(math.prod(a.shape[:-1]), N, K)
    choice = _choose(low, size)
    kernel = ProductKernel(params={"bits": bits})
    kernel.bind(Binding(name="a", access="read", element=a.data_type, quad=K % QUAD == 0), low.value(0))
    in_registers = choice.variant in ("subgroup", "plain")
    (_bind_rows if in_registers or not _is_constant(low) else _bind_columns)(kernel, low)
    template, (rows, columns) = _tile(kernel, low, size, choice.variant)
    tiles = -(-size.M // rows), -(-N // columns)
    kernel.uniforms(M=size.M, N=N, K=K, blocks=tiles[0], panels=tiles[1], tiles=math.prod(tiles))
    words = block_size * bits // 32
    if in_registers:
        del kernel.params["packed"]
        kernel.uniforms(block_size=block_size, block_words=words, row_words=blocks * words, scale_blocks=blocks)
    else:
        kernel.params["whole"] = K % block_size == 0
        kernel.uniforms(block_shift=block_size.bit_length() - 1, row_words=blocks * words, scale_blocks=blocks)
    addend = Addend(low.value(4), low.input(4).data_type, (N,), 1.0) if low.has(4) else None

    def read(shape: Sequence[int]) -> str:
        count = math.prod(shape)
        return "one" if count == 1 else "full" if count == size.M * N else "columns"

    finish(kernel, low, N % QUAD == 0, read, addend, row=N)
    return [kernel.call(template, grid_1d(math.prod(tiles), low.caps), choice.reason)]


def _is_constant(low: Lowering) -> bool:
    """Return whether the right factor can be packed at build time."""
    return all(low.is_constant(low.value(i)) for i in (1, 2, 3) if low.has(i))


def _bind_rows(kernel: ProductKernel, low: Lowering) -> None:
    """Bind the right factor as it is."""
    kernel.params["packed"] = False
    # Blocks are whole words.
    kernel.bind(Binding(name="b", access="read", element="uint32"), low.value(1))
    kernel.bind(Binding(name="scales", access="read", element=low.input(2).data_type), low.value(2))
    if low.has(3):
        kernel.bind(Binding(name="zero_points", access="read", element=low.input(3).data_type), low.value(3))
        if low.input(3).data_type == "uint8":
            kernel.uniforms(zero_bytes=zero_point_bytes(low.input(1).shape[1], low.attrs["bits"]))


def _bind_columns(kernel: ProductKernel, low: Lowering) -> None:
    """Bind the right factor, a constant, with columns beside each other: invocations read quads of them at once."""
    N, blocks, _ = low.input(1).shape
    kernel.params["packed"] = True
    kernel.uniforms(row_quads=-(-N // QUAD))
    packed = Packed(low.value(1), NbitsWords())
    kernel.bind(Binding(name="b", access="read", element="uint32", quad=True), packed)
    kernel.bind(
        Binding(name="scales", access="read", element=low.input(2).data_type, quad=True),
        Packed(low.value(2), NbitsBlocks(N, blocks)),
    )
    if low.has(3):
        data_type = low.input(3).data_type
        bits = low.attrs["bits"] if data_type == "uint8" else 0
        kernel.bind(
            Binding(name="zero_points", access="read", element=data_type, quad=True),
            Packed(low.value(3), NbitsBlocks(N, blocks, bits)),
        )


def _choose(low: Lowering, size: ProductSize) -> Choice:
    """Return the forced variant, the one measured to be the fastest, or the best by device and sizes.

    Raises:
        OperationError: a variant is forced that the device cannot run.
    """
    forced = low.forced_variant
    possible = [v for v in VARIANTS if select.supports(low.caps, v)]
    if forced is None:
        return low.measured(possible) or low.target.costs.products.choose(size, possible)
    if forced not in possible:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=low.ops[low.node.op].python_name,
            label=low.node.label,
            got=f"{forced}, subgroup size {low.caps.subgroup_size}",
            allowed=", ".join(possible),
        )
    return Choice(forced, FORCED)


def _tile(kernel: ProductKernel, low: Lowering, size: ProductSize, variant: str) -> tuple[KernelTemplate, tuple[int, int]]:
    """Declare the parameters of a variant, and return its template with the rows and columns of its tiles."""
    costs = low.target.costs.products
    if variant == "tiled":
        kernel.params["tile"] = tile = costs.tile_of_workgroup(Choice(variant, ""), size, most_rows=HIGHEST_BLOCK)
        return _TILED, (tile.rows, tile.columns)
    if variant == "gemv":
        words = min(_WORDS_AT_ONCE if size.M <= _ROWS_OF_MANY_WORDS else 2, low.attrs["block_size"] * low.attrs["bits"] // 32)
        steps = -(-size.K * low.attrs["bits"] // (32 * words))
        kernel.params |= {"tile": (tile := costs.row_tile(size, steps=steps)), "words": words}
        declare_subgroups(kernel, low.caps)
        return _GEMV, (tile.rows, tile.columns)
    lanes = low.caps.subgroup_size if variant == "subgroup" else 0
    # More rows share the work of unpacking numbers from words. Without subgroups, each row reads its own elements of `a`.
    most = 16 if lanes and low.attrs["bits"] > 2 else 8
    rows = next((r for r in (1, 2, 4, 8) if size.M <= r < most), most)
    kernel.params |= {"lanes": lanes, "rows": rows}
    if lanes:
        kernel.features.append("subgroup")
    return _REGISTERS, (rows, (lanes or 64) * QUAD)


OPS = (
    OpDef(
        name="x.matmul_nbits",
        operands=(
            Operand(name="a", data_types=FLOATS, min_rank=1),
            Operand(name="b", data_types=("uint8",), min_rank=3, max_rank=3),
            Operand(name="scales", same_as="a", min_rank=1, max_rank=2),
            Operand(name="zeroPoints", data_types=(*FLOATS, "uint8"), min_rank=1, max_rank=2, required=False),
            Operand(name="bias", same_as="a", min_rank=1, max_rank=1, required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("bits", "uint", 4), Attr("block_size", "uint", 32)),
        templates=(_REGISTERS, _TILED, _GEMV),
        family=Family.PRODUCT,
        without=("elementwise", "movement", "layout", "precision"),
        epilogue=TakesEpilogue(),
        cost=Cost(product_operations),
        bounds=CONDITIONED,
        variants=VARIANTS,
        documentation=Documentation(
            group=QUANTIZED_EXTENSIONS,
            summary="`a @ ((b - zero_points) * scales).T + bias` with 2, 4 or 8-bit numbers in `b`.",
            details=(
                "It is ONNX Runtime's MatMulNBits. The kernel takes the numbers out of their bytes itself: no wider copy "
                "is made."
            ),
            arguments={
                "a": "{types}, with the shape [..., K].",
                "b": (
                    "{types}, with the shape [N, blocks, block_size * bits / 8]. The number of blocks is K / block_size "
                    "rounded up. Numbers lie along K, the first in the low bits of a byte, and numbers beyond K do not "
                    "count."
                ),
                "scales": "The data type of `a`, with the shape [N, blocks] or [N * blocks].",
                "zero_points": (
                    "{types}. Floats must have the data type of `a` and the shape [N, blocks]. Numbers of uint8 have the "
                    "shape [N, blocks * bits / 8 rounded up] and are packed like `b`. The first two dimensions may be one. "
                    "The default is 2 to the power of (bits - 1)."
                ),
                "bias": "The data type of `a`, with the shape [N].",
                "bits": "2, 4 or 8.",
                "block_size": "Count of numbers that share a scale and a zero point: a power of 2, 16 or more.",
            },
            returns="An operand with the data type of `a` and the shape [..., N].",
            raises="A data type, shape, number of bits or block size is not allowed",
            example="""
                >>> packed = b.constant(np.zeros([8, 1, 16], np.uint8))
                >>> b.ext.matmul_nbits(x, packed, b.constant(np.ones([8, 1], np.float32)))
                MLOperand(float32[2, 8])
            """,
            method=Method(parameters=(BITS_PARAMETER,)),
        ),
        gradient=products_gradients.MATMUL_NBITS,
    ),
)
