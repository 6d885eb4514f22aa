"""Operators whose results follow from shapes alone, and those that only relabel."""

from __future__ import annotations

import numpy as np
import onnx_ir

from ..call import Call
from ..tensors import Tensor
from ..types import FLOAT32, HELD, logical
from ._registry import Result, lowers


@lowers("Shape", empty=True)
def shape(call: Call) -> Result:
    """Sizes, or a range of them."""
    sizes = call.tensor(0).shape
    return Tensor.known(np.array(sizes[slice(call.attribute("start", 0), call.attribute("end"))], np.int64))


@lowers("Size", empty=True)
def size(call: Call) -> Result:
    """Number of elements."""
    return Tensor.known(np.array(call.tensor(0).size, np.int64))


@lowers("Identity", "Dropout", empty=True, moves=True)
def identity(call: Call) -> Result:
    """The input itself. Dropout, outside training, with a mask of ones."""
    tensor = call.tensor(0)
    if call.node.op_type == "Identity":
        return tensor
    if call.has(2) and call.number(2):
        call.on_host("dropout in training mode is random")
    if not call.wants(1):
        return tensor
    mask = call.filled(tensor.shape, 1, np.dtype(bool) if call.version >= 10 else tensor.dtype)
    return [tensor, mask]


@lowers("ConstantOfShape", empty=True)
def constant_of_shape(call: Call) -> Result:
    """One number repeated."""
    value = call.attribute("value", np.zeros(1, np.float32))
    sizes = tuple(int(v) for v in call.value(0))
    result = call.filled(sizes, value.reshape(-1)[0], value.dtype)
    return result if isinstance(result, Tensor) else Tensor(sizes, value.dtype, operand=result)


@lowers("EyeLike")
def eye_like(call: Call) -> Result:
    """Ones on a diagonal."""
    x = call.tensor(0)
    wanted = call.attribute("dtype")
    dtype = x.dtype if wanted is None else logical(onnx_ir.DataType(wanted))
    if dtype is None:
        call.fail(f"dtype {onnx_ir.DataType(wanted).name} cannot be held")
    return Tensor.known(np.eye(*x.shape, k=call.attribute("k", 0)).astype(dtype))


@lowers("Cast", "CastLike", empty=True)
def cast(call: Call) -> Result:
    """Another type."""
    x = call.tensor(0)
    if call.node.op_type == "Cast":
        wanted = onnx_ir.DataType(call.attribute("to", 1))
        dtype = logical(wanted)
        if dtype is None:
            call.fail(f"type {wanted.name} cannot be held")
    else:
        dtype = call.tensor(1).dtype
    if dtype == x.dtype:
        return x
    if not x.size:
        return Tensor.known(np.zeros(x.shape, dtype))
    operand = call.operand(0)
    if dtype == np.dtype(bool):
        operand = call.build.not_equal(operand, call.like(0, operand))
    else:
        operand = call.cast(operand, HELD[dtype])
        if not (x.dtype == np.dtype(bool) or (x.dtype.itemsize < dtype.itemsize and dtype == FLOAT32)):
            operand = call.lowering.module.rounded(call, operand, dtype)
    return Tensor(x.shape, dtype, operand=operand)
