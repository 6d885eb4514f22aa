"""The storage of data types that WebNN does not have.

WebNN has eight data types. The others are stored in the narrowest one that represents all their values, except float64, which
is computed in float32. A value's *logical* type is the model's, as a numpy dtype. Its *held* type is WebNN's.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from webnn_wgpu.typing import MLOperandDataType

Array = npt.NDArray[Any]
DType = np.dtype[Any]

Shape = tuple[int, ...]

BOOL, FLOAT32, INT64 = np.dtype(bool), np.dtype(np.float32), np.dtype(np.int64)
COMPLEX64 = np.dtype(np.complex64)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

HELD: dict[DType, MLOperandDataType] = {
    np.dtype(np.float32): "float32",
    np.dtype(np.float16): "float16",
    np.dtype(np.int64): "int64",
    np.dtype(np.uint64): "uint64",
    np.dtype(np.int32): "int32",
    np.dtype(np.uint32): "uint32",
    np.dtype(np.int8): "int8",
    np.dtype(np.uint8): "uint8",
    np.dtype(bool): "uint8",
    np.dtype(np.float64): "float32",
    np.dtype(np.int16): "int32",
    np.dtype(np.uint16): "int32",
    BFLOAT16: "float32",
    np.dtype(ml_dtypes.int4): "int8",
    np.dtype(ml_dtypes.uint4): "uint8",
    np.dtype(ml_dtypes.int2): "int8",
    np.dtype(ml_dtypes.uint2): "uint8",
    np.dtype(ml_dtypes.float8_e4m3fn): "float32",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "float32",
    np.dtype(ml_dtypes.float8_e5m2): "float32",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "float32",
    np.dtype(ml_dtypes.float8_e8m0fnu): "float32",
    np.dtype(ml_dtypes.float4_e2m1fn): "float32",
}
"""Logical type -> data type of the operand that holds it, element for element."""


def is_held(dtype: DType) -> bool:
    """Return whether an operand can hold a logical type. Strings are not supported."""
    return dtype in HELD or dtype == COMPLEX64


def held_type(dtype: DType) -> MLOperandDataType:
    """Return the WebNN data type that holds a logical type. Complex numbers are pairs of floats."""
    return "float32" if dtype == COMPLEX64 else HELD[dtype]


def held_shape(shape: Shape, dtype: DType) -> Shape:
    """Return the shape of the operand of a tensor: complex numbers have a last dimension of 2."""
    return (*shape, 2) if dtype == COMPLEX64 else shape


def encode(array: Array) -> Array:
    """Convert an array from its logical to its held type."""
    if array.dtype == COMPLEX64:
        return np.ascontiguousarray(array)[..., None].view(np.float32)
    held = HELD[array.dtype]
    if array.dtype == BOOL:
        return array.view(np.uint8)
    return array if array.dtype.name == held else array.astype(held)


def decode(array: Array, dtype: DType) -> Array:
    """Convert an array that the device computed to its logical type."""
    if dtype == COMPLEX64:
        return np.ascontiguousarray(array).view(np.complex64)[..., 0]
    if dtype == BOOL:
        return array.view(bool) if array.dtype == np.uint8 else array.astype(bool)
    return array if array.dtype == dtype else array.astype(dtype)


def is_float(dtype: DType) -> bool:
    """Return whether a logical type is a floating-point type of any width."""
    return dtype.kind == "f" or HELD.get(dtype) in ("float32", "float16")
