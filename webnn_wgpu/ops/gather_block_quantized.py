"""Gathering rows of a table whose numbers have 2, 4 or 8 bits, as language models keep their embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._nbits import BITS_PARAMETER, check_bits, unpacked, zero_point_bytes, zeros_of
from ._places import INDEX_TYPES, clamped_indices, index_binding
from ._quads import quad_launch
from ._rows import to_type, wide
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import PER_TAKEN
from .interfaces.documentation import QUANTIZED_EXTENSIONS, Documentation, Method
from .interfaces.family import Family

GATHER_BLOCK_QUANTIZED = KernelTemplate("gather_block_quantized", ("bits", "quad"))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, indices, scales = (call.input(i) for i in range(3))
    bits, size = check_bits(call)
    *rows, width = x.shape
    length = width * 8 // bits
    blocks = -(-length // size)
    call.require(
        scales.shape == (*rows, blocks),
        "Incompatible shapes: scales must have one element per block of the input's rows",
        allowed=str([*rows, blocks]),
    )
    zero_points, packed = call.inputs[3], (*rows, zero_point_bytes(blocks, bits))
    call.require(
        zero_points is None or zero_points.shape == packed,
        "Incompatible shapes: zeroPoints must have one number per block of the input's rows, packed like the input",
        allowed=str(list(packed)),
    )
    return (call.output(scales.data_type, (*indices.shape, *rows[1:], length)),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, indices, scales, zero_points = arrays
    assert x is not None
    assert indices is not None
    assert scales is not None
    bits, blocks = attrs["bits"], scales.shape[-1]
    rows = math.prod(x.shape[:-1])
    numbers = unpacked(x.reshape(rows, -1), bits)
    length, size = int(numbers.shape[1]), int(attrs["block_size"])
    block = np.arange(length) // size
    with np.errstate(all="ignore"):
        table = (numbers - zeros_of(zero_points, rows, blocks, bits)[:, block]) * wide(scales.reshape(rows, blocks))[:, block]
    table = table.reshape(*x.shape[:-1], -1)
    return [to_type(table[clamped_indices(indices, x.shape[0])], out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x, scales, output = low.input(), low.input(2), low.output()
    bits, length, blocks = low.attrs["bits"], output.shape[-1], scales.shape[-1]
    resources = [
        (Binding(name="input", access="read", element="uint32"), low.value(0)),
        (index_binding(low.input(1).data_type), low.value(1)),
        (Binding(name="scales", access="read", element=scales.data_type), low.value(2)),
    ]
    if low.has(3):
        resources.append((Binding(name="zero_points", access="read", element="uint8"), low.value(3)))
    resources.append((Binding(name="output", access="write", element=output.data_type, quad=True), low.node.outputs[0]))
    launch, grid = quad_launch(output.num_elements, low.target)
    sizes = {
        "row_length": length,
        "row_bytes": x.shape[-1],
        "inner": math.prod(x.shape[1:-1]),
        "size": x.shape[0],
        "block_size": low.attrs["block_size"],
        "scale_blocks": blocks,
        "zero_bytes": zero_point_bytes(blocks, bits),
    }
    fields: list[tuple[str, UniformType, int]] = list(launch)
    fields.extend((name, "u32", value) for name, value in sizes.items())
    spec = GATHER_BLOCK_QUANTIZED.spec(
        [binding for binding, _ in resources],
        [(name, type_) for name, type_, _ in fields],
        bits=bits,
        quad=length % QUAD == 0,
    )
    values = tuple(value for _, value in resources)
    return [
        KernelCall(
            spec=spec, operands=values, uniforms=tuple(v for _, _, v in fields), grid=grid, reason=f"numbers of {bits} bits"
        )
    ]


OPS = (
    OpDef(
        name="x.gather_block_quantized",
        operands=(
            Operand(name="input", data_types=("uint8",), min_rank=2),
            Operand(name="indices", data_types=INDEX_TYPES),
            Operand(name="scales", data_types=FLOATS, min_rank=2),
            Operand(name="zeroPoints", data_types=("uint8",), min_rank=2, required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("bits", "uint", 4), Attr("block_size", "uint", 128)),
        templates=(GATHER_BLOCK_QUANTIZED,),
        family=Family.QUANTIZATION,
        without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
        cost=PER_TAKEN,
        bounds=CONDITIONED,
        output_types=FLOATS,
        documentation=Documentation(
            group=QUANTIZED_EXTENSIONS,
            summary="Slices of a table of 2, 4 or 8-bit numbers along its first dimension, `(number - zero_point) * scale`.",
            details="It is ONNX Runtime's GatherBlockQuantized for bytes.",
            arguments={
                "input": (
                    "{types}, with the shape [size, ..., bytes]: rows of `8 / bits` numbers per byte, the first in the low "
                    "bits."
                ),
                "indices": (
                    "{types}, with any shape. Negative indices count from the end of the first dimension, and indices out "
                    "of range are clamped."
                ),
                "scales": (
                    "{types}, with the shape [size, ..., blocks]. The number of blocks is the numbers of a row divided by "
                    "`block_size`, rounded up."
                ),
                "zero_points": (
                    "{types}, with the shape [size, ..., blocks * bits / 8 rounded up], packed like `input`. The default "
                    "is 2 to the power of (bits - 1)."
                ),
                "bits": "2, 4 or 8.",
                "block_size": "Count of numbers that share a scale and a zero point: a power of 2, 16 or more.",
            },
            returns=(
                "An operand with the data type of `scales`. Its shape is `indices.shape`, followed by [..., numbers of a row]."
            ),
            raises="A data type, shape, number of bits or block size is not allowed",
            example="""
                >>> table, scales = b.constant(np.zeros([100, 32], np.uint8)), b.constant(np.ones([100, 2], np.float32))
                >>> b.ext.gather_block_quantized(table, b.constant(np.int32([3, 7])), scales, block_size=32)
                MLOperand(float32[2, 64])
            """,
            method=Method(parameters=(BITS_PARAMETER,)),
        ),
    ),
)
