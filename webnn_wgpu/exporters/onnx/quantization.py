"""Quantization as ONNX nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .call import OnnxCall, OnnxValue, Shape, writes

BLOCKS, FLOAT16, PACKED = 21, 19, 21
"""Versions of the operator set that have blocks, float16 and elements of 4 bits."""


def granularity(shape: Shape, scale: Shape) -> tuple[str, int, int]:
    """Return how a scale covers a tensor: "tensor", "axis" or "block" with axis and size of the block, or "other".

    Example:
        >>> granularity((4, 8), (1, 1)), granularity((4, 8), (4, 1)), granularity((4, 8), (4, 2))
        (('tensor', 0, 0), ('axis', 0, 0), ('block', 1, 4))
    """
    if math.prod(scale) == 1:
        return "tensor", 0, 0
    own = [i for i, n in enumerate(scale) if n != 1]
    if len(own) == 1 and scale[own[0]] == shape[own[0]]:
        return "axis", own[0], 0
    partial = [i for i, (n, m) in enumerate(zip(scale, shape, strict=True)) if n != m]
    if len(partial) == 1:
        axis = partial[0]
        return "block", axis, shape[axis] // scale[axis]
    return "other", 0, 0


def needed_opset(data_types: tuple[str, ...], shape: Shape, scale: Shape) -> int:
    """Return the version of the operator set that writes a quantization without decomposing it."""
    if any(t.endswith("int4") for t in data_types) or granularity(shape, scale)[0] == "block":
        return BLOCKS
    return FLOAT16 if "float16" in data_types else 1


@writes("dequantizeLinear")
def _dequantize(call: OnnxCall) -> OnnxValue:
    operand, scale, zero = call.given
    if operand.data_type in ("int32", "uint32"):
        centered = call.node("Sub", call.cast(operand, "int64"), call.cast(_expanded(call, zero, operand.shape), "int64"))
        return call.node("Mul", call.cast(centered, call.data_type), _expanded(call, scale, operand.shape))
    parameters, attributes = _parameters(call, operand.shape, scale, zero)
    if parameters:
        return call.node("DequantizeLinear", operand, *parameters, data_type=call.data_type, **attributes)
    wide = [call.cast(v, "int32") for v in (operand, _expanded(call, zero, operand.shape))]
    return call.node("Mul", call.cast(call.node("Sub", *wide), call.data_type), _expanded(call, scale, operand.shape))


@writes("quantizeLinear")
def _quantize(call: OnnxCall) -> OnnxValue:
    operand, scale, zero = call.given
    wide = call.data_type in ("int32", "uint32")
    parameters, attributes = ([], {}) if wide else _parameters(call, operand.shape, scale, zero)
    if parameters:
        return call.node("QuantizeLinear", operand, *parameters, data_type=call.data_type, **attributes)
    if call.data_type.endswith("int4"):
        raise call.refuse("ONNX has no quantization to 4 bits with such a scale")
    rounded = call.node("Round", call.node("Div", operand, _expanded(call, scale, operand.shape)))
    # float64 holds all values of int32 and uint32.
    moved = call.node("Add", call.cast(rounded, "float64"), call.cast(_expanded(call, zero, operand.shape), "float64"))
    limits = np.iinfo(call.data_type)
    clipped = call.node("Clip", moved, call.scalar(limits.min, "float64", "low"), call.scalar(limits.max, "float64", "high"))
    return call.cast(clipped, call.data_type)


def _parameters(call: OnnxCall, shape: Shape, scale: OnnxValue, zero: OnnxValue) -> tuple[list[OnnxValue], dict[str, Any]]:
    """Return scale and zero point as ONNX expects them, and attributes. Nothing where ONNX has no such granularity."""
    kind, axis, block = granularity(shape, scale.shape)
    if kind == "tensor":
        return [call.reshape(v, ()) for v in (scale, zero)], {}
    if kind == "axis":
        size = (shape[axis],)
        return [call.reshape(v, size) for v in (scale, zero)], {"axis": axis}
    if kind == "block" and call.opset >= BLOCKS:
        return [scale, zero], {"axis": axis, "block_size": block}
    return [], {}


def _expanded(call: OnnxCall, value: OnnxValue, shape: Shape) -> OnnxValue:
    """Return a scale or zero point with an element for each of the tensor."""
    if math.prod(value.shape) == 1 or all(n in (1, m) for n, m in zip(value.shape, shape, strict=True)):
        return call.expand(value, shape)
    parted = tuple(k for n in value.shape for k in (n, 1))
    spread = tuple(k for n, m in zip(value.shape, shape, strict=True) for k in (n, m // n))
    return call.reshape(call.expand(call.reshape(value, parted), spread), shape)
