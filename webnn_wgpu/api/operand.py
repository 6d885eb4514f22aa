"""`MLOperand`: a value of a graph under construction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

from ..display.html import facts_html, type_facts
from .options import camel_attribute

if TYPE_CHECKING:
    from ..ir.types import TensorType
    from .builder import MLGraphBuilder
    from .operators._base import OperatorMethods


class Shape(tuple[int, ...]):
    """The dimensions of an operand: a tuple that equals a list of the same numbers, and returns itself when called.

    The 2024 text has a method `shape()`, the draft an attribute, and pywebnn a list. A shape therefore equals a list and can be
    concatenated with lists, and so can its slices and copies.

    >>> shape = Shape((2, 3))
    >>> shape == (2, 3), shape == [2, 3], shape(), shape[0]
    (True, True, (2, 3), 2)
    >>> shape[1:] == [3], shape[:1] + [5], [1] + shape
    (True, (2, 5), (1, 2, 3))
    """

    __slots__ = ()

    def __call__(self) -> Shape:
        """Return the shape."""
        return self

    def copy(self) -> Shape:
        """Return the shape itself, which is immutable."""
        return self

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> Shape: ...
    def __getitem__(self, key: SupportsIndex | slice) -> int | Shape:
        found = super().__getitem__(key)
        return Shape(found) if isinstance(found, tuple) else found

    def __add__(self, other: Iterable[int]) -> Shape:  # pyright: ignore[reportIncompatibleMethodOverride] - ints stay ints
        return Shape((*self, *other)) if isinstance(other, list | tuple) else NotImplemented

    def __radd__(self, other: Iterable[int]) -> Shape:
        return Shape((*other, *self)) if isinstance(other, list | tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return super().__eq__(tuple(other) if isinstance(other, list) else other)  # pyright: ignore[reportUnknownArgumentType] - whatever the list holds

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()


class DataTypeName(str):
    """The name of a data type: a string that returns itself when called, as the 2024 text has a method `dataType()`.

    >>> name = DataTypeName("float32")
    >>> name == "float32", name()
    (True, 'float32')
    """

    __slots__ = ()

    def __call__(self) -> DataTypeName:
        """Return the name."""
        return self


class MLOperand:
    """A value of a graph under construction: an input, a constant or the output of an operator.

    Only a builder's methods create operands, and only that builder accepts them. Attributes also have camelCase names.

    Example:
        >>> x.data_type, x.shape, x.name
        ('float32', (2, 3), 'x')
        >>> x.dataType() == x.data_type, x.shape == [2, 3]
        (True, True)

    Spec: https://www.w3.org/TR/webnn/#api-mloperand
    """

    __slots__ = ("__weakref__", "_builder", "_data_type", "_name", "_shape", "_type", "_value")

    def __init__(self, builder: OperatorMethods, value: int, type: TensorType, name: str | None = None) -> None:
        self._builder, self._value, self._type, self._name = builder, value, type, name
        self._data_type, self._shape = DataTypeName(type.data_type), Shape(type.shape)

    @property
    def builder(self) -> MLGraphBuilder:
        """The builder the operand belongs to."""
        return cast("MLGraphBuilder", self._builder)

    @property
    def name(self) -> str | None:
        """The name of an input, None for other operands."""
        return self._name

    @property
    def data_type(self) -> DataTypeName:
        """The data type: "float32", "int8" and so on. `operand.data_type()` returns the same."""
        return self._data_type

    @property
    def shape(self) -> Shape:
        """The dimensions, outermost first, () for a scalar. `operand.shape()` returns the same."""
        return self._shape

    @property
    def dimensions(self) -> Shape:
        """The shape, under the name that 2024 descriptors have for it."""
        return self._shape

    @property
    def rank(self) -> int:
        """The number of dimensions, 0 for a scalar."""
        return len(self._shape)

    @property
    def type(self) -> TensorType:
        """The data type and the shape in the graph."""
        return self._type

    @property
    def value(self) -> int:
        """Number of the value in the builder's graph."""
        return self._value

    def _repr_html_(self) -> str:
        return facts_html("MLOperand", {"input": self._name or "", **type_facts(self._type)})

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        dataType = data_type
    else:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)

    def __repr__(self) -> str:
        name = "" if self._name is None else f"{self._name!r}, "
        return f"MLOperand({name}{self._type})"
