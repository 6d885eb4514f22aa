"""Operators with results that depend on shapes alone, and conversions of data types."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from webnn_wgpu.typing import MLOperandDataType

from ..call import NodeCall
from ..rounding import rounded, width
from ..tensors import OnnxTensor
from ..types import BOOL, HELD, DType, is_float
from ._registry import Result, lowers


@lowers("Shape", empty=True)
def shape(call: NodeCall) -> Result:
    """Sizes, or a range of them."""
    sizes = call.tensor(0).shape
    return OnnxTensor.known(np.array(sizes[slice(call.attribute("start", 0), call.attribute("end"))], np.int64))


@lowers("Size", empty=True)
def size(call: NodeCall) -> Result:
    """Number of elements."""
    return OnnxTensor.known(np.array(call.tensor(0).size, np.int64))


@lowers("Identity", "Dropout", empty=True, moves=True)
def identity(call: NodeCall) -> Result:
    """The input itself. Dropout, outside training, with a mask of ones."""
    tensor = call.tensor(0)
    if call.node.op_type == "Identity":
        return tensor
    if call.has(2) and call.number(2) and call.number(1, 0.5):
        call.on_host("dropout in training mode is random")
    if not call.wants(1):
        return tensor
    mask = call.filled(tensor.shape, 1, np.dtype(bool) if call.version >= 10 else tensor.dtype)
    return [tensor, mask]


@lowers("ConstantOfShape", empty=True)
def constant_of_shape(call: NodeCall) -> Result:
    """One number repeated."""
    value = call.attribute("value", np.zeros(1, np.float32))
    sizes = tuple(call.ints(0) or ())
    if value.size != 1 or min(sizes, default=0) < 0:
        call.fail(f"{value.size} values for the shape {sizes}")
    result = call.filled(sizes, value.reshape(-1)[0], value.dtype)
    return result if isinstance(result, OnnxTensor) else OnnxTensor(shape=sizes, dtype=value.dtype, operand=result)


@lowers("EyeLike", ranks={0: (2,)})
def eye_like(call: NodeCall) -> Result:
    """Ones on a diagonal."""
    x = call.tensor(0)
    rows, columns = x.shape
    diagonal = max(-rows, min(call.attribute("k", 0), columns))
    return OnnxTensor.known(np.eye(rows, columns, k=diagonal).astype(call.dtype("dtype") or x.dtype))


@lowers("Cast", "CastLike", empty=True)
def cast(call: NodeCall) -> Result:
    """Another type."""
    x = call.tensor(0)
    dtype = _wanted(call) if call.node.op_type == "Cast" else call.tensor(1).dtype
    if dtype == x.dtype:
        return x
    if not x.size:
        return OnnxTensor.known(np.zeros(x.shape, dtype))
    operand = call.operand(0)
    if dtype == BOOL:
        operand = call.build.not_equal(operand, call.like(0, operand))
    else:
        if is_float(x.dtype) and HELD[dtype] in WIDER:
            operand = call.cast(operand, WIDER[HELD[dtype]])
        operand = call.cast(operand, HELD[dtype])
        if x.dtype != BOOL:
            operand = rounded(call, operand, dtype, bool(call.attribute("saturate", 1)))
    return OnnxTensor(shape=x.shape, dtype=dtype, operand=operand)


WIDER: Mapping[MLOperandDataType, MLOperandDataType] = {"int8": "int32", "uint8": "int32", "uint32": "int64"}
"""The intermediate types of casts from floats to narrower integers. As in C, values out of range lose their highest bits."""


@lowers("BitCast", empty=True)
def bit_cast(call: NodeCall) -> Result:
    """The same bits, read as another type."""
    x, dtype = call.tensor(0), _wanted(call)
    if dtype == x.dtype:
        return x
    if not x.size:
        return OnnxTensor.known(np.zeros(x.shape, dtype))
    if x.dtype.name == HELD[x.dtype] and dtype.name == HELD[dtype] and x.dtype.itemsize == dtype.itemsize:
        return OnnxTensor(shape=x.shape, dtype=dtype, operand=call.build.ext.bitcast(call.operand(0), HELD[dtype]))
    whole = not is_float(x.dtype) and not is_float(dtype) and dtype != BOOL
    if not whole or width(x.dtype) != width(dtype):
        call.on_host(f"no operator reads the bits of {x.dtype} as {dtype}")
    return OnnxTensor(shape=x.shape, dtype=dtype, operand=rounded(call, call.cast(call.operand(0), HELD[dtype]), dtype))


def _wanted(call: NodeCall) -> DType:
    return call.dtype("to", 1) or call.fail("to names no type")
