"""The data types of WebNN operands: names as the specification spells them, sizes, numpy types, number conversion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""An array of any element type."""

MLOperandDataType: TypeAlias = Literal["float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8"]
"""The names of the specification's data types."""

MAX_RANK = 8
"""The maximum rank of an operand. The specification has no bound. The index arithmetic of the shaders has one."""

MAX_DIMENSION = 2**31 - 1
"""Largest valid dimension and element count (specification, "valid dimension")."""


@dataclass(frozen=True)
class DataType:
    """One data type: its specification name, bits of an element in tensors, numpy type and kind."""

    name: str
    bits: int
    numpy: np.dtype[np.generic]
    kind: Literal["float", "int", "uint"]

    @property
    def size_bytes(self) -> int:
        """The size of an element in bytes, for types of whole bytes alone."""
        assert self.bits % 8 == 0, f"{self.name} elements share bytes"
        return self.bits // 8

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest number of an integer type."""
        return (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) if self.kind == "int" else (0, (1 << self.bits) - 1)


def _row(name: str, kind: Literal["float", "int", "uint"]) -> tuple[str, DataType]:
    dtype: np.dtype[np.generic] = np.dtype(name)
    return name, DataType(name, 8 * dtype.itemsize, dtype, kind)


DATA_TYPES = MappingProxyType(
    dict(
        (
            _row("float32", "float"),
            _row("float16", "float"),
            _row("int32", "int"),
            _row("uint32", "uint"),
            _row("int64", "int"),
            _row("uint64", "uint"),
            _row("int8", "int"),
            _row("uint8", "uint"),
        )
    )
)
"""All data types of the specification by name, in its order."""

PACKED_TYPES = MappingProxyType(
    {
        "int4": DataType("int4", 4, np.dtype(ml_dtypes.int4), "int"),
        "uint4": DataType("uint4", 4, np.dtype(ml_dtypes.uint4), "uint"),
    }
)
"""Extension types for constants alone: two elements to a byte, the first in the low half. Arrays hold one to a byte."""

CONSTANT_TYPES = MappingProxyType({**DATA_TYPES, **PACKED_TYPES})
"""The data types that constants may have."""

ANY = tuple(DATA_TYPES)
FLOATS = ("float32", "float16")


def numpy_dtype(data_type: str) -> np.dtype[np.generic]:
    """Return the numpy dtype of a data type name."""
    return CONSTANT_TYPES[data_type].numpy


def byte_length(data_type: str, num_elements: int) -> int:
    """Return the bytes of a tensor's elements.

    >>> byte_length("float16", 3), byte_length("int4", 3)
    (6, 2)
    """
    return -(-num_elements * CONSTANT_TYPES[data_type].bits // 8)


def tensor_bytes(array: Array) -> Array:
    """Return an array in the form of a tensor's memory: packed if its data type is, else unchanged.

    >>> tensor_bytes(np.array([1, -2, 3], ml_dtypes.int4))
    array([225,   3], dtype=uint8)
    """
    if array.dtype.name not in PACKED_TYPES:
        return array
    halves: Array = np.zeros(2 * byte_length(array.dtype.name, array.size), np.uint8)
    halves[: array.size] = array.reshape(-1).view(np.uint8) & 0xF
    return halves[::2] | halves[1::2] << 4


def of_tensor_bytes(memory: Array, data_type: str, num_elements: int) -> Array:
    """Return the elements of a packed data type that bytes hold, one to a byte.

    >>> of_tensor_bytes(np.array([225, 3], np.uint8), "int4", 3)
    array([1, -2, 3], dtype=int4)
    """
    halves: Array = np.stack([memory & 0xF, memory >> 4], axis=1).reshape(-1)[:num_elements]
    low, high = PACKED_TYPES[data_type].limits
    return np.where(halves > high, halves.astype(np.int8) + 2 * low, halves.astype(np.int8)).astype(numpy_dtype(data_type))


def cast_number(value: float | int, data_type: str) -> float | int:
    """Cast a plain number to a data type as options and scalar constants are cast.

    Args:
        value: any int, or any float including NaN and infinities.
        data_type: name of the data type.

    Returns:
        A Python float that the float type can hold exactly (too large becomes infinity), or an int clamped to the integer
        type's range after rounding half to even. NaN becomes 0.

    Spec: section "Casting" of the draft. The `cast` operator follows other rules.

    >>> cast_number(300, "uint8"), cast_number(2.5, "int8"), cast_number(0.1, "float16")
    (255, 2, 0.0999755859375)
    """
    info = CONSTANT_TYPES[data_type]
    if info.kind == "float":
        with np.errstate(over="ignore"):
            return float(info.numpy.type(value if isinstance(value, float) else _wide_float(value)))
    low, high = info.limits
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return high if value > 0 else low
        value = round(value)
    return max(low, min(high, value))


def _wide_float(value: int) -> float:
    # Truncated to float64's 53 bits, with the last bit set if any bit was cut off ("round to odd"). Another rounding to a
    # narrower type then gives the result of a single rounding of the whole number.
    cut = max(0, abs(value).bit_length() - 53)
    head = abs(value) >> cut
    head |= int(head << cut != abs(value))
    try:
        return math.copysign(math.ldexp(head, cut), value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
