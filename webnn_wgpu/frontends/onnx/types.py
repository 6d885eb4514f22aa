"""The data types of ONNX as numpy dtypes, and their storage on the device."""

from __future__ import annotations

import numpy as np
import onnx_ir

from ..common.held import BFLOAT16, BOOL, FLOAT32, HELD, INT64, Array, DType, decode, encode, is_float

__all__ = ["BFLOAT16", "BOOL", "FLOAT32", "HELD", "INT64", "Array", "DType", "decode", "encode", "is_float", "logical"]


def logical(data_type: onnx_ir.DataType) -> DType | None:
    """Return ONNX's data type as a numpy dtype, or None for strings, complex numbers and undefined types."""
    try:
        dtype = np.dtype(data_type.numpy())
    except (TypeError, ValueError):
        return None
    return dtype if dtype in HELD else None
