"""Quantization: between floats, and integers that count steps of a scale from a zero point.

Scale and zero point have the input's rank, and sizes that divide the input's: each of their elements serves a block of it. So
one size per dimension tells per tensor (all 1), per axis (one dimension whole) and block-wise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import DATA_TYPES, FLOATS, PACKED_TYPES
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS
from ..kernels.expression import ExpressionBuilder, Formula, formula
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE, Source, elementwise_call
from ._rows import lower_elementwise, scalar_uniform, to_type, wide
from ._shapes import strides_of
from .gradients import quantization as quantization_gradients
from .interfaces.bounds import EXACT, ulp
from .interfaces.cost import PER_RESULT, per_element
from .interfaces.documentation import QUANTIZATION, Documentation
from .interfaces.elementwise import ElementWise
from .interfaces.family import Family
from .interfaces.layout import BROADCAST, LED_BROADCAST
from .interfaces.precision import DISCRETE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.graph import Array, Attrs
    from ..kernels.spec import KernelCall, UniformType

QUANTIZED = ("uint8", "int8", "uint32", "int32")
"""Data types of quantized tensors. Constants may also have one of `PACKED_TYPES`."""

_OPERANDS = ("x", "scale", "zero_point")


def _check_blocks(call: OpCall) -> tuple[int, ...]:
    """Check that scale and zero point serve blocks of the input, and return the input's shape."""
    x, scale, zero_point = (call.input(i) for i in range(3))
    for name, other in (("scale", scale), ("zeroPoint", zero_point)):
        call.require(
            other.rank == x.rank,
            f"Incompatible shapes: {name} must have the rank of input",
            got=f"input {x}, {name} {other}",
            allowed=f"rank {x.rank}",
        )
    call.require(
        scale.shape == zero_point.shape,
        "Incompatible shapes: scale and zeroPoint must have the same shape",
        got=f"scale {scale}, zeroPoint {zero_point}",
        allowed=f"zeroPoint of shape {list(scale.shape)}",
    )
    for d, (size, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
        call.require(
            size % blocks == 0,
            f"Incompatible shapes: scale.shape[{d}] must divide input.shape[{d}]",
            got=f"input {x}, scale {scale}",
            allowed=f"divisors of {size}",
        )
    return x.shape


def _blocks(shape: Sequence[int], blocks: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shape with the dimensions of blocks told from those within, and the strides of a tensor of `blocks` in it.

    >>> _blocks((4, 6, 5), (2, 6, 1))
    ((2, 2, 6, 5), (6, 0, 1, 0))
    """
    dims: list[int] = []
    strides: list[int] = []
    for size, count, stride in zip(shape, blocks, strides_of(blocks), strict=True):
        if count == size:
            dims.append(size)
            strides.append(stride)
        elif count == 1:
            dims.append(size)
            strides.append(0)
        else:
            dims += (count, size // count)
            strides += (stride, 0)
    return tuple(dims), tuple(strides)


def _lower_with(formula_for: Callable[[str], Formula], quantized: int) -> Callable[[Lowering], list[KernelCall]]:
    """Return a `lower` for the formula of the data type that operand number `quantized` has."""

    def lower(low: Lowering) -> list[KernelCall]:
        x, out = low.input(), low.output()
        dims, strides = _blocks(x.shape, low.input(1).shape)
        builder = ExpressionBuilder()
        operands = [builder.argument(low.input(i).data_type) for i in range(3)]
        result = builder.apply(formula_for(low.input(quantized).data_type), operands, out.data_type)
        steps = (strides_of(dims), strides, strides)
        sources = [Source(low.value(i), low.input(i), own) for i, own in enumerate(steps)]
        expression = builder.finish(result)
        output = TensorType(out.data_type, dims)
        return elementwise_call(expression, builder.uniforms, sources, low.node.outputs[0], output, low.target, "block-wise")

    return lower


def _expanded(arrays: Sequence[Array | None]) -> tuple[Array, Array, Array]:
    """Return input, scale and zero point, the latter two repeated over their blocks."""
    x, scale, zero_point = arrays
    assert x is not None
    assert scale is not None
    assert zero_point is not None
    for d, (size, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
        scale, zero_point = (np.repeat(a, size // blocks, axis=d) for a in (scale, zero_point))
    return x, scale, zero_point


# quantizeLinear -------------------------------------------------------------------------------------------------------


def _infer_quantize(call: OpCall) -> tuple[TensorType, ...]:
    return (call.output(call.input(2).data_type, _check_blocks(call)),)


def _quantize_formula(data_type: str) -> Formula:
    if data_type in ("int32", "uint32"):
        return formula("quantize_T(div_f32(x, scale), zero_point)", _OPERANDS, type_=ELEMENTS[data_type].value)
    low, high = DATA_TYPES[data_type].limits
    code = f"quantize_quotient(x, scale, i32(zero_point), {low}i, {high}i)"
    return formula(code if DATA_TYPES[data_type].kind == "int" else f"u32({code})", _OPERANDS)


def _quantize_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, scale, zero_point = _expanded(arrays)
    low, high = DATA_TYPES[out[0].data_type].limits
    with np.errstate(all="ignore"):
        # The quotient is one of float32 numbers, so it is rounded to float32: halves arise from that too.
        quotient = (wide(x) / wide(scale)).astype(np.float32).astype(np.float64)
        # Sums of a float32 and a 32-bit integer that stay within the limits are exact in float64.
        sums = np.clip(np.rint(quotient) + zero_point, low, high)
    return [np.where(np.isnan(quotient), 0, sums).astype(out[0].numpy)]


# dequantizeLinear -----------------------------------------------------------------------------------------------------


def _infer_dequantize(call: OpCall) -> tuple[TensorType, ...]:
    return (call.output(call.input(1).data_type, _check_blocks(call)),)


def _dequantize_formula(data_type: str) -> Formula:
    if data_type in ("int32", "uint32"):
        return formula("(difference_T(x, zero_point) * scale)", _OPERANDS, type_=ELEMENTS[data_type].value)
    return formula("(f32(i32(x) - i32(zero_point)) * scale)", _OPERANDS)


def _dequantize_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, scale, zero_point = _expanded(arrays)
    with np.errstate(all="ignore"):
        return [to_type((x.astype(np.int64) - zero_point.astype(np.int64)) * wide(scale), out[0])]


# Both at once ---------------------------------------------------------------------------------------------------------


def _round_trip_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    low, high = DATA_TYPES[attrs["data_type"]].limits
    # Products of quantized numbers are scaled to steps of 1 before.
    divided = attrs["scale"] != 1 or attrs["scaled"]
    quantized = "quantize_quotient(x, scale" if divided else "quantize_narrow(x"
    steps = f"f32({quantized}, zero_point, {low}i, {high}i) - zero_point)"
    zero_point: tuple[str, UniformType, int] = ("zero_point", "i32", attrs["zero_point"])
    scale = (scalar_uniform("scale", attrs["scale"], inputs[0]),) if divided else ()
    uniforms = (*scale, zero_point)
    return formula(f"({steps} * scale)" if attrs["scaled"] else steps, uniforms=uniforms)


def _round_trip_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, quantized = arrays[0], out[0].with_data_type(attrs["data_type"])
    assert x is not None
    scale = np.full((1,) * x.ndim, attrs["scale"], x.dtype)
    zero_point = np.full((1,) * x.ndim, attrs["zero_point"], quantized.numpy)
    (steps,) = _quantize_reference((x, scale, zero_point), attrs, (quantized,))
    return _dequantize_reference((steps, scale if attrs["scaled"] else np.ones_like(scale), zero_point), attrs, out)


# Less the zero point --------------------------------------------------------------------------------------------------


def _infer_centered(call: OpCall) -> tuple[TensorType, ...]:
    x, *numbers = (call.input(i) for i in range(3))
    call.require(all(n.num_elements == 1 and n.rank <= x.rank for n in numbers), "scale and zeroPoint must be one number each")
    return (x,)


def _centered_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    low, high = DATA_TYPES[inputs[2]].limits
    return formula(f"f32(quantize_quotient(x, scale, i32(zero_point), {low}i, {high}i) - i32(zero_point))", _OPERANDS)


def _centered_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, scale, zero_point = arrays
    assert x is not None
    assert scale is not None
    assert zero_point is not None
    ones = (1,) * x.ndim
    given = (x, scale.reshape(ones), zero_point.reshape(ones))
    (steps,) = _quantize_reference(given, attrs, (out[0].with_data_type(str(zero_point.dtype)),))
    return [(steps.astype(np.float32) - zero_point.reshape(ones).astype(np.float32)).astype(np.float32)]


QUANTIZE_DEQUANTIZE = OpDef(
    name="quantizeDequantize",
    operands=(Operand(name="input", data_types=FLOATS),),
    infer=lambda call: (call.input(),),
    reference=_round_trip_reference,
    lower=lower_elementwise,
    attrs=(
        Attr("scale", "float"),
        Attr("zero_point", "int"),
        Attr("data_type", "enum", allowed=("int8", "uint8")),
        Attr("scaled", "bool", True),
    ),
    templates=(ELEMENTWISE,),
    elementwise=ElementWise(_round_trip_formula),
    family=Family.QUANTIZATION,
    without=("epilogue", "movement", "precision", "gradient"),
    layout=BROADCAST,
    cost=PER_RESULT,
    bounds=ulp(1),
    internal=True,
)
"""Element-wise form of quantizeLinear to 8 bits and dequantizeLinear with the same numbers, which only passes make.

The result counts steps from the zero point unless it is `scaled`.
"""

QUANTIZE_CENTERED = OpDef(
    name="quantizeCentered",
    operands=(
        Operand(name="input", data_types=("float32",)),
        Operand(name="scale", data_types=("float32",)),
        Operand(name="zeroPoint", data_types=("int8", "uint8")),
    ),
    infer=_infer_centered,
    reference=_centered_reference,
    lower=lower_elementwise,
    templates=(ELEMENTWISE,),
    elementwise=ElementWise(_centered_formula),
    family=Family.QUANTIZATION,
    without=("epilogue", "movement", "precision", "gradient"),
    layout=BROADCAST,
    cost=PER_RESULT,
    bounds=EXACT,
    internal=True,
)
"""Element-wise form of quantizeLinear to 8 bits less the zero point, as floats, which only passes make."""

QUANTIZE_LINEAR = OpDef(
    name="quantizeLinear",
    operands=(
        Operand(name="input", data_types=FLOATS),
        Operand(name="scale", data_types=FLOATS, same_as="input"),
        Operand(name="zeroPoint", data_types=QUANTIZED),
    ),
    infer=_infer_quantize,
    reference=_quantize_reference,
    lower=_lower_with(_quantize_formula, 2),
    templates=(ELEMENTWISE,),
    spec="#api-mlgraphbuilder-quantizelinear",
    family=Family.QUANTIZATION,
    without=("elementwise", "epilogue", "movement", "gradient"),
    layout=LED_BROADCAST,
    precision=DISCRETE,
    cost=per_element(4),
    bounds=EXACT,
    output_types=QUANTIZED,
    documentation=Documentation(
        group=QUANTIZATION,
        summary=(
            "Turn floats into quantized integers: round_even(input / scale) + zero_point, limited to the data type's range."
        ),
        arguments={
            "input": "{types}, with any shape.",
            "scale": (
                "The input's data type and rank. Each size must divide the input's size in that dimension, and each "
                "element serves a block of the input. Sizes of 1 in all dimensions give one scale for all elements. The "
                "input's own size in one dimension gives a scale per channel. Other sizes give block-wise scales."
            ),
            "zero_point": "{types}, with the shape of `scale`.",
        },
        returns="An operand with the data type of `zero_point` and the input's shape.",
        raises=(
            "A data type is not allowed, a rank differs from the input's, a size does not divide the input's, the shapes "
            "of `scale` and `zero_point` differ"
        ),
        numerics=(
            "The quotient is rounded to float32, then to the nearest integer, halves to even. Adding and limiting are "
            "exact. NaN becomes 0. A negative scale follows the formula too."
        ),
        example="""
            >>> one = b.constant(np.float32([[0.1]]))
            >>> levels = b.quantize_linear(x, one, b.constant(np.array([[128]], np.uint8)))
            >>> levels.data_type, levels.shape
            ('uint8', (2, 3))
        """,
    ),
)

DEQUANTIZE_LINEAR = OpDef(
    name="dequantizeLinear",
    operands=(
        Operand(name="input", data_types=(*QUANTIZED, *PACKED_TYPES)),
        Operand(name="scale", data_types=FLOATS),
        Operand(name="zeroPoint", data_types=(*QUANTIZED, *PACKED_TYPES), same_as="input"),
    ),
    infer=_infer_dequantize,
    reference=_dequantize_reference,
    lower=_lower_with(_dequantize_formula, 0),
    templates=(ELEMENTWISE,),
    spec="#api-mlgraphbuilder-dequantizelinear",
    family=Family.QUANTIZATION,
    without=("elementwise", "epilogue", "movement", "precision"),
    layout=LED_BROADCAST,
    cost=per_element(2),
    # For 32-bit integers the difference is rounded to float32 before the product is.
    bounds=ulp(1),
    output_types=FLOATS,
    documentation=Documentation(
        group=QUANTIZATION,
        summary="Turn quantized integers into floats: (input - zero_point) * scale.",
        arguments={
            "input": "{types}, with any shape.",
            "scale": (
                "{types}, with the input's rank. Each size must divide the input's size in that dimension, and each "
                "element serves a block of the input. Sizes of 1 in all dimensions give one scale for all elements. The "
                "input's own size in one dimension gives a scale per channel. Other sizes give block-wise scales."
            ),
            "zero_point": "The input's data type and the shape of `scale`.",
        },
        returns="An operand with the data type of `scale` and the input's shape.",
        raises=(
            "A data type is not allowed, a rank differs from the input's, a size does not divide the input's, the shapes "
            "of `scale` and `zero_point` differ"
        ),
        numerics=(
            "The difference is exact. It is then rounded to float32, which changes differences of 32-bit integers beyond "
            "2^24. The product is rounded once."
        ),
        example="""
            >>> levels = b.constant(np.array([[0, 128, 255], [1, 2, 3]], np.uint8))
            >>> per_row = b.constant(np.float32([[0.5], [2]]))
            >>> b.dequantize_linear(levels, per_row, b.constant(np.array([[128], [0]], np.uint8))).shape
            (2, 3)
        """,
    ),
    gradient=quantization_gradients.dequantize_linear,
)

OPS = (QUANTIZE_DEQUANTIZE, QUANTIZE_CENTERED, QUANTIZE_LINEAR, DEQUANTIZE_LINEAR)
