"""The inputs and outputs of an ONNX model."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir

from webnn_wgpu import NotSupportedError

from ..description import ValueInfo
from .types import logical

LARGEST = 2**48
"""No tensor has as many elements."""


def value_info(value: onnx_ir.Value, name: str, declared: bool = True) -> ValueInfo:
    """Return a value's name, shape and type. Values other than tensors of numbers are refused.

    Args:
        value: an input or output.
        name: the model's name in messages.
        declared: whether its type must be.
    """
    if value.type is None and not declared:
        return ValueInfo(value.name or "", None, np.dtype(np.void))
    dtype = logical(value.dtype) if value.dtype is not None else None
    if dtype is None or not isinstance(value.type, onnx_ir.TensorType):
        kind = value.type if value.dtype is None else value.dtype.name
        raise NotSupportedError(f"{name}: '{value.name}' is {kind}, not a tensor of numbers")
    if value.shape is None:
        return ValueInfo(value.name or "", None, dtype)
    sizes = [d if isinstance(d, int) else d.value for d in value.shape]
    for d in sizes:
        if isinstance(d, int) and not 0 <= d < LARGEST:
            raise NotSupportedError(f"{name}: '{value.name}' has a size of {d}")
    if math.prod(d for d in sizes if isinstance(d, int) and d) >= LARGEST:
        raise NotSupportedError(f"{name}: '{value.name}' has sizes of {sizes}")
    return ValueInfo(value.name or "", tuple(sizes), dtype)
