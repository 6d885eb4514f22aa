"""`CoreCall`: one operator of a graph while it is written as operations of MIL, Core ML's language of programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu.core.errors import NotSupportedError

# coremltools has no types, and makes the methods of its builder when it is imported.
mb: Any = import_module("coremltools.converters.mil").Builder
types: Any = import_module("coremltools.converters.mil.mil").types

Array: TypeAlias = NDArray[Any]
Var: TypeAlias = Any
"""A value of a program."""

EXACT_INTEGERS = 2**24
"""Integers below this are exact in float32."""

HELD: Mapping[str, str] = {"float32": "fp32", "float16": "fp16"}
"""Types of MIL. All integers are int32."""


def held(data_type: str) -> str:
    """Return the type of MIL that holds a data type."""
    return HELD.get(data_type, "int32")


def held_array(array: Array, what: str) -> Array:
    """Return a constant as MIL holds it."""
    if array.dtype.kind == "f" and array.dtype.itemsize in (2, 4):
        return array
    wide = array.astype(np.int64)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    if wide.size and ((array.dtype == np.uint64 and int(array.max()) > high) or wide.min() < low or wide.max() > high):
        raise NotSupportedError("a constant has integers that int32 cannot hold", operator="to_coreml", label=what)
    return wide.astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class CoreCall:
    """One operator of a graph while it is written.

    Attributes:
        operator: the operator.
        label: its label.
        attrs: its canonical attributes.
        operands: its operands, None for absent ones.
        types: WebNN's data types of the operands.
        arrays: the arrays of operands that are constants.
        results: data types and shapes of its results.
    """

    operator: str
    label: str
    attrs: Mapping[str, Any]
    operands: Sequence[Var]
    types: Sequence[str]
    arrays: Sequence[Array | None]
    results: Sequence[tuple[str, tuple[int, ...]]]

    @property
    def x(self) -> Var:
        """The first operand."""
        return self.operands[0]

    @property
    def data_type(self) -> str:
        """The data type of the first operand."""
        return self.types[0]

    @property
    def is_float(self) -> bool:
        """Whether the first operand has floats."""
        return self.data_type.startswith("float")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.results[0][1]

    def refuse(self, why: str) -> NotSupportedError:
        """Return the error of an operator that Core ML does not have."""
        return NotSupportedError(f"{self.operator} cannot be written as Core ML: {why}", operator="to_coreml", label=self.label)

    def number(self, value: float, like: Var | None = None) -> Any:
        """Return a number of an operand's type."""
        kind = dtype_of(self.x if like is None else like)
        return {"fp32": np.float32, "fp16": np.float16}.get(kind, np.int32)(value)


def dtype_of(value: Var) -> str:
    """Return MIL's name of a value's type."""
    return types.builtin_to_string(value.dtype)


def cast(value: Var, kind: str) -> Var:
    """Return a value in another type of MIL."""
    return value if dtype_of(value) == kind else mb.cast(x=value, dtype=kind)


Writer: TypeAlias = Callable[[CoreCall], "Var | list[Var]"]
WRITERS: dict[str, Writer] = {}
"""How each operator is written."""


def writes(*operators: str) -> Callable[[Writer], Writer]:
    """Register a function that writes operators."""

    def register(writer: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(operators, writer))
        return writer

    return register
