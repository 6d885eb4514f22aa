"""The conversion of computed values to the range and precision of data types that are stored in wider ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..common.calls import OnHost
from .types import BFLOAT16, BOOL, HELD, DType

if TYPE_CHECKING:
    from .call import NodeCall

BITS: dict[DType, tuple[int, bool]] = {
    np.dtype(np.int16): (16, True),
    np.dtype(np.uint16): (16, False),
    np.dtype(ml_dtypes.int4): (4, True),
    np.dtype(ml_dtypes.uint4): (4, False),
    np.dtype(ml_dtypes.int2): (2, True),
    np.dtype(ml_dtypes.uint2): (2, False),
}
"""Integers stored in wider types: their number of bits, and whether they are signed."""

FLOAT8: dict[DType, Literal["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"]] = {
    np.dtype(ml_dtypes.float8_e4m3fn): "e4m3fn",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "e4m3fnuz",
    np.dtype(ml_dtypes.float8_e5m2): "e5m2",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "e5m2fnuz",
}
FLOAT4 = np.dtype(ml_dtypes.float4_e2m1fn)


def width(dtype: DType) -> int:
    """Return the number of bits of an integer type."""
    return BITS[dtype][0] if dtype in BITS else 8 * dtype.itemsize


def rounded(call: NodeCall, operand: MLOperand, dtype: DType, saturate: bool = True) -> MLOperand:
    """Return an operand rounded to a data type: floats to the nearest even, integers to their lowest bits.

    Args:
        call: the node that computed them.
        operand: the computed value, in the type that stores `dtype`.
        dtype: the logical type.
        saturate: whether floats of 8 bits are clamped to their largest number, instead of infinity or NaN.

    Raises:
        OnHost: no operator rounds to this type.
    """
    if HELD[dtype] == dtype.name or dtype in (BOOL, np.dtype(np.float64)):
        return operand
    if dtype == BFLOAT16:
        return call.build.ext.round_bfloat16(operand)
    if dtype in BITS:
        bits, signed = BITS[dtype]
        wrapped = call.build.ext.wrap_integer(call.cast(operand, "int32"), bits=bits, signed=signed)
        return call.cast(wrapped, HELD[dtype])
    if dtype in FLOAT8:
        return call.build.ext.round_float8(operand, format=FLOAT8[dtype], saturate=saturate)
    if dtype == FLOAT4:
        return _float4(call, operand)
    raise OnHost(f"no operator rounds to {dtype}")


def _float4(call: NodeCall, x: MLOperand) -> MLOperand:
    """Round to 0, 0.5, 1, 1.5, 2, 3, 4 and 6: steps of a half below 2, of 1 below 4 and of 2 above."""
    build = call.build
    size = build.min(build.abs(x), call.like(6, x))
    step = call.like(2, x)
    fine = build.div(build.round_even(build.mul(size, step)), step)
    coarse = build.mul(build.round_even(build.div(size, step)), step)
    above = build.where(build.lesser(size, call.like(4, x)), build.round_even(size), coarse)
    value = build.where(build.lesser(size, step), fine, above)
    # The reciprocal has the sign of a zero.
    negative = build.lesser(build.where(build.equal(x, call.like(0, x)), build.reciprocal(x), x), call.like(0, x))
    # The format has no NaN.
    value = build.where(build.is_nan(x), call.like(0, x), value)
    return build.where(negative, build.neg(value), value)
