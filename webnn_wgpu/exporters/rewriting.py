"""Documents rewritten before they are written: dynamic dimensions, and operands by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from webnn_wgpu.core.errors import NotSupportedError
from webnn_wgpu.formats.document import (
    Document,
    DynamicDimension,
    OperandReference,
    Statement,
    TensorDeclaration,
)

Sizes: TypeAlias = Mapping[str, int]

SHAPES = frozenset({"newShape"})
"""Options that may have dynamic dimensions."""


def with_indices(document: Document) -> Document:
    """Return a document whose options name operands by number, as pywebnn 0.5 reads them.

    Inputs are counted first, then constants, both sorted by name, then results in the order of the statements.
    """
    names = sorted(d.name for d in document.inputs)
    names += sorted(c.declaration.name for c in document.constants)
    names += [name for statement in document.statements for name in statement.results]
    numbers = {name: i for i, name in enumerate(names)}

    def numbered(statement: Statement) -> Statement:
        options = {
            name: numbers[value.name] if isinstance(value, OperandReference) else value
            for name, value in statement.options.items()
        }
        return replace(statement, options=options)

    return replace(document, statements=tuple(map(numbered, document.statements)))


def with_dynamic(document: Document, dynamic: Sizes, document_of_sizes: Callable[[Sizes], Document]) -> Document:
    """Return a document with dynamic dimensions.

    Args:
        document: the document for the largest sizes.
        dynamic: names of the dimensions, with these sizes.
        document_of_sizes: returns the document for other sizes.

    Raises:
        NotSupportedError: the graph has other operators, or an argument other than a shape differs, for other sizes. The
            message names dimension, operator and argument.
    """
    for name, size in dynamic.items():
        if size == 1:
            continue
        other = document_of_sizes({**dynamic, name: size - 1})
        document = _Comparison(name, size).compared(document, other)
    return replace(document, version=2)


class _Comparison:
    """The comparison of a document with that of another size of one dimension."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.dimension = DynamicDimension(name, size)

    def refuse(self, what: str, label: str = "") -> NotSupportedError:
        return NotSupportedError(
            f"the dimension '{self.name}' cannot stay dynamic: {what} depends on its size", operator="save", label=label
        )

    def compared(self, largest: Document, other: Document) -> Document:
        if len(largest.statements) != len(other.statements):
            raise self.refuse("the number of operators")
        if largest.constants != other.constants:
            for a, b in zip(largest.constants, other.constants, strict=False):
                if a != b:
                    raise self.refuse(f"the constant '{a.declaration.name}'")
            raise self.refuse("the number of constants")
        return replace(
            largest,
            inputs=tuple(self.input(a, b) for a, b in zip(largest.inputs, other.inputs, strict=True)),
            statements=tuple(self.statement(a, b) for a, b in zip(largest.statements, other.statements, strict=True)),
        )

    def input(self, largest: TensorDeclaration, other: TensorDeclaration) -> TensorDeclaration:
        sizes = (self.size_of(a, b) for a, b in zip(largest.shape, other.shape, strict=True))
        shape = tuple(sizes)
        if None in shape:
            raise self.refuse(f"the shape of input '{largest.name}'")
        return replace(largest, shape=shape)

    def size_of(self, largest: Any, other: Any) -> Any:
        """Return the size in the document: as it is, the dimension, or None where it depends on that otherwise."""
        if largest == other or isinstance(largest, DynamicDimension):
            return largest
        return self.dimension if (largest, other) == (self.size, self.size - 1) else None

    def statement(self, largest: Statement, other: Statement) -> Statement:
        if (largest.operator, largest.arguments) != (other.operator, other.arguments) or largest.results != other.results:
            raise self.refuse("the operators", largest.results[0])
        options = dict(largest.options)
        for option, value in largest.options.items():
            if value == other.options.get(option):
                continue
            if option not in SHAPES:
                raise self.refuse(f"{option} of {largest.operator}", largest.results[0])
            pairs = zip(cast("list[Any]", value), cast("list[Any]", other.options[option]), strict=True)
            sizes = [self.size_of(a, b) for a, b in pairs]
            if None in sizes:
                raise self.refuse(f"{option} of {largest.operator}", largest.results[0])
            options[option] = sizes
        return replace(largest, options=options)
