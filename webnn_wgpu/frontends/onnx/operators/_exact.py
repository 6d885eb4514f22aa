"""Quantized tensors as the factors of exact sums."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ...common.exact import exact_sums
from ..call import NodeCall
from ..tensors import OnnxTensor

__all__ = ["centered", "exact_sums"]

BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def centered(call: NodeCall, x: OnnxTensor, zero_point: MLOperand | None) -> tuple[MLOperand, int]:
    """Return a quantized tensor minus its zero point as float32, and the number of bits of its magnitude.

    Args:
        call: the node.
        x: a tensor of a data type of at most 16 bits.
        zero_point: the zero point, in a shape that broadcasts to the tensor's. None means 0.
    """
    bits = BITS.get(x.dtype.name) or call.fail(f"{x.dtype} is no quantized type of 16 bits at most")
    values = call.cast(call.hold(x), "float32")
    if zero_point is None:
        return values, bits - x.dtype.name.startswith("int")
    return call.build.sub(values, call.cast(zero_point, "float32")), bits
