"""The data types of WebNN operands: names as the specification spells them, sizes, numpy types, number conversion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""An array of any element type."""

MAX_RANK = 8
"""Highest rank of any operand; the specification sets no bound, index arithmetic in the shaders does."""

MAX_DIMENSION = 2**31 - 1
"""Largest valid dimension and element count (specification, "valid dimension")."""


@dataclass(frozen=True)
class DataType:
    """One data type: its specification name, element size, numpy type and kind."""

    name: str
    size_bytes: int
    numpy: np.dtype[np.generic]
    kind: Literal["float", "int", "uint"]


def _row(name: str, kind: Literal["float", "int", "uint"]) -> tuple[str, DataType]:
    dtype: np.dtype[np.generic] = np.dtype(name)
    return name, DataType(name, dtype.itemsize, dtype, kind)


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
"""All data types by name, in the specification's order."""

ANY = tuple(DATA_TYPES)
FLOATS = ("float32", "float16")


def numpy_dtype(data_type: str) -> np.dtype[np.generic]:
    """Return the numpy dtype of a data type name."""
    return DATA_TYPES[data_type].numpy


def cast_number(value: float | int, data_type: str) -> float | int:
    """Cast a plain number to a data type as options and scalar constants are cast.

    Args:
        value: any int, or any float including NaN and infinities.
        data_type: name of the data type.

    Returns:
        A Python float that the float type can hold exactly (too large becomes infinity), or an int clamped to the integer
        type's range after rounding half to even; NaN becomes 0.

    Spec: section "Casting" of the draft; the `cast` operator follows other rules.

    >>> cast_number(300, "uint8"), cast_number(2.5, "int8"), cast_number(0.1, "float16")
    (255, 2, 0.0999755859375)
    """
    info = DATA_TYPES[data_type]
    if info.kind == "float":
        with np.errstate(over="ignore"):
            return float(info.numpy.type(value if isinstance(value, float) else _wide_float(value)))
    limits = np.iinfo(info.name)
    low, high = int(limits.min), int(limits.max)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return high if value > 0 else low
        value = round(value)
    return max(low, min(high, value))


def _wide_float(value: int) -> float:
    # Cut to float64's 53 bits with the last bit set if anything was cut off ("rounded to odd"): so rounding once more, to a
    # narrower type, gives what rounding the whole number at once would.
    cut = max(0, abs(value).bit_length() - 53)
    head = abs(value) >> cut
    head |= int(head << cut != abs(value))
    try:
        return math.copysign(math.ldexp(head, cut), value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
