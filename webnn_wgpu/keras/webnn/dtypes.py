"""Keras's data types on a device that has those of WebNN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

STORAGE = {
    "bool": "uint8",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int32",
    "uint16": "int32",
    "int32": "int32",
    "uint32": "uint32",
    "float16": "float16",
    "bfloat16": "float32",
    "float8_e4m3fn": "float32",
    "float8_e5m2": "float32",
    "float32": "float32",
}
"""The WebNN data type that holds each data type. Narrow types are rounded or wrapped after each operator."""

CANONICAL = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
"""Types that become narrower, as on Keras's JAX backend."""

HOST = ("complex64", "string")
"""Types that no device holds: arrays of them stay on the host."""

FLOATS = ("bfloat16", "float16", "float32")


def canonical(dtype: str) -> str:
    """Return the data type that tensors of a data type have."""
    return CANONICAL.get(dtype, dtype)


def numpy_dtype(dtype: str) -> Any:
    """Return numpy's data type of a Keras data type."""
    named = getattr(ml_dtypes, dtype, None)
    return np.dtype(named) if named is not None else np.dtype("str" if dtype == "string" else dtype)


def is_float(dtype: str) -> bool:
    """Return whether elements are floats."""
    return dtype.startswith(("float", "bfloat"))


def is_integer(dtype: str) -> bool:
    """Return whether elements are integers. Truth values are none."""
    return dtype.startswith(("int", "uint"))
