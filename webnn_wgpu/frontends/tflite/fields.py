"""Fields of FlatBuffers tables that the package `tflite` has no accessors for, by their numbers."""

from __future__ import annotations

from typing import Any

import flatbuffers.number_types as _number_types  # pyright: ignore[reportMissingTypeStubs] - the package has none
import flatbuffers.table as _table  # pyright: ignore[reportMissingTypeStubs] - the package has none
import numpy as np

from ..common.held import Array

N: Any = _number_types
Table: Any = _table.Table


def table_of(record: Any) -> Any:
    """Return the table of a record that the package `tflite` made, which has no public name for it."""
    return getattr(record, "_tab")  # noqa: B009


def _offset(table: Any, number: int) -> int:
    return int(table.Offset(4 + 2 * number))


def integer(table: Any, number: int, default: int = 0, kind: str = "Int32") -> int:
    """Return a field that is an integer of a kind of FlatBuffers: "Int32", "Uint32", "Uint64", "Bool"."""
    at = _offset(table, number)
    return int(table.Get(getattr(N, f"{kind}Flags"), at + table.Pos)) if at else default


def text(table: Any, number: int) -> str:
    """Return a field that is a string, "" if it is absent."""
    at = _offset(table, number)
    return bytes(table.String(at + table.Pos)).decode("utf-8", "replace") if at else ""


def inner(table: Any, number: int) -> Any:
    """Return a field that is a table, None if it is absent."""
    at = _offset(table, number)
    return Table(table.Bytes, table.Indirect(at + table.Pos)) if at else None


def length(table: Any, number: int) -> int:
    """Return the length of a field that is a vector, 0 if it is absent."""
    at = _offset(table, number)
    return int(table.VectorLen(at)) if at else 0


def element(table: Any, number: int, index: int) -> Any:
    """Return an element of a field that is a vector of tables."""
    at = table.Vector(_offset(table, number)) + 4 * index
    return Table(table.Bytes, table.Indirect(at))


def integers(table: Any, number: int, dtype: str = "<i4") -> Array:
    """Return a field that is a vector of numbers, without a copy."""
    at = _offset(table, number)
    if not at:
        return np.zeros(0, dtype)
    return np.frombuffer(table.Bytes, dtype, int(table.VectorLen(at)), int(table.Vector(at)))
