"""`Document`: the content of a graph file, with the place of everything in it.

The text and the JSON form are two notations of one document. A document is not validated beyond its syntax: operators,
operands and shapes are checked when a graph is built from it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from ..core.data_types import byte_length
from ..core.errors import MLTypeError, printable, quoted


@dataclass(frozen=True)
class Location:
    """A place in a file.

    Attributes:
        file: name of the file, as the caller gave it.
        position: line and column of a text, "3:14", or the path in a JSON file, "nodes[3].options.axis".
    """

    file: str
    position: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.position}" if self.position else self.file

    def at(self, member: str | int) -> Location:
        """Return the location of a member of a JSON value: of an item by its number, of an object's member by its name."""
        if isinstance(member, int):
            return Location(self.file, f"{self.position}[{member}]")
        return Location(self.file, f"{self.position}.{printable(member)}" if self.position else printable(member))


LONGEST_RULE = 400
"""Characters of a rule in a message, at most."""


class FileError(MLTypeError, OSError):
    """A graph file that is wrong. It is an OSError too, as in pywebnn.

    Attributes:
        location: the place of the fault.
        faults: all faults of the file that were found, this one first.
    """

    def __init__(self, location: Location, rule: str, *, got: str = "", allowed: str = "", hint: str = "") -> None:
        self.location = location
        if len(rule) > LONGEST_RULE:  # it quotes a name of the file
            rule = f"{rule[: LONGEST_RULE // 2]} ... {rule[-LONGEST_RULE // 4 :]}"
        self.faults: tuple[FileError, ...] = (self,)
        MLTypeError.__init__(self, rule, operator=str(location), got=got, allowed=allowed, hint=hint)


class Faults:
    """The faults of a file, collected so that one error reports all of them."""

    def __init__(self) -> None:
        self._found: list[FileError] = []

    @contextmanager
    def collected(self) -> Generator[None]:
        """Keep a `FileError` that the body raises."""
        try:
            yield
        except FileError as error:
            self._found += error.faults

    @property
    def count(self) -> int:
        """The number of faults that were found."""
        return len(self._found)

    def check(self) -> None:
        """Raise the first fault, with all of them in `faults`, if there is one."""
        if self._found:
            first = self._found[0]
            first.faults = tuple(self._found)
            raise first


@dataclass(frozen=True)
class DynamicDimension:
    """A dimension whose size is known when the graph is built.

    Attributes:
        name: its name. Equal names have equal sizes.
        max_size: the largest allowed size.
    """

    name: str
    max_size: int


Dimension: TypeAlias = int | DynamicDimension


@dataclass(frozen=True)
class OperandReference:
    """A use of an operand by its name.

    Attributes:
        name: the operand's name.
        location: the place of the use.
    """

    name: str
    location: Location


Value: TypeAlias = Any
"""An argument: None, bool, int, float, str, `OperandReference`, `DynamicDimension`, or a list or dict of them."""


@dataclass(frozen=True, kw_only=True)
class TensorDeclaration:
    """The declared type of an input or a constant.

    Attributes:
        name: its name.
        data_type: WebNN's name of the data type.
        shape: its dimensions. Only inputs have dynamic ones.
        location: the place of the declaration.
        binding: name of an input for users, if it is not the operand's.
    """

    name: str
    data_type: str
    shape: tuple[Dimension, ...]
    location: Location
    binding: str = ""

    @property
    def public_name(self) -> str:
        """The name by which users feed an input."""
        return self.binding or self.name


@dataclass(frozen=True)
class WeightsKey:
    """The content of a constant is the tensor of this key in a file of weights.

    Attributes:
        key: the key.
        explicit: whether the file names it. Otherwise it is the constant's own name.
    """

    key: str
    explicit: bool = True


@dataclass(frozen=True)
class ScalarFill:
    """Each element of a constant is this number.

    Attributes:
        value: the number. Integers are exact.
    """

    value: int | float


@dataclass(frozen=True)
class InlineBytes:
    """The content of a constant: its elements in row-major order, little-endian.

    Attributes:
        data: the bytes. Elements of 4 bits are two in a byte, or one in the low half of each.
    """

    data: bytes


Init: TypeAlias = WeightsKey | ScalarFill | InlineBytes


@dataclass(frozen=True)
class Constant:
    """A constant.

    Attributes:
        declaration: its name and type.
        init: its content.
    """

    declaration: TensorDeclaration
    init: Init

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which is static."""
        return cast("tuple[int, ...]", self.declaration.shape)

    @property
    def element_count(self) -> int:
        """The number of elements."""
        return element_count(self.shape, self.declaration.location)

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, two elements of 4 bits in a byte."""
        return byte_length(self.declaration.data_type, self.element_count)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The call of an operator.

    Attributes:
        operator: the operator as the file spells it, or "" for another name of an operand.
        arguments: arguments by position: operands are references.
        options: arguments by name.
        results: names of the results.
        bracketed: whether the results are written as a list. A single result may be.
        location: the place of the call.
    """

    operator: str
    arguments: tuple[Value, ...]
    options: Mapping[str, Value]
    results: tuple[str, ...]
    bracketed: bool
    location: Location


@dataclass(frozen=True)
class Output:
    """An output of the graph.

    Attributes:
        name: the output's name.
        operand: the operand.
    """

    name: str
    operand: OperandReference


@dataclass(frozen=True, kw_only=True)
class Document:
    """A graph file.

    Attributes:
        location: the file.
        name: name of the graph.
        version: version of the format: 1, or 2 if dimensions may be dynamic.
        quantized: the remark that the graph is quantized.
        inputs, constants, statements, outputs: the graph, in the file's order.
    """

    location: Location
    name: str
    version: int
    quantized: bool = False
    inputs: tuple[TensorDeclaration, ...] = ()
    constants: tuple[Constant, ...] = ()
    statements: tuple[Statement, ...] = ()
    outputs: tuple[Output, ...] = field(default=())


LIST_OPERATORS = frozenset({"gru", "lstm", "lstmCell", "split"})
"""Operators that return a list, also of one result. The JSON form does not say it of a statement."""

SHORT_TYPES: Mapping[str, str] = {
    "f32": "float32",
    "f16": "float16",
    "i4": "int4",
    "u4": "uint4",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "i8": "int8",
    "u8": "uint8",
}
"""The text's names of data types, and WebNN's."""


def checked_version(version: int, location: Location) -> int:
    """Return `version` if it is one that can be read."""
    if version not in (1, 2):
        raise FileError(location, f"version {version} of the format cannot be read", allowed="1, 2")
    return version


def checked_size(size: Any, location: Location) -> int:
    """Return `size` if it is a size that a dimension may have."""
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size < 2**31:
        raise FileError(location, "a dimension must be an integer", got=quoted(size, 40), allowed="1..2147483647")
    return size


MOST_ELEMENTS = 2**63 - 1
"""Elements of a tensor in a file, at most."""


def element_count(shape: Sequence[int], location: Location) -> int:
    """Return the number of elements of a shape.

    The product of a long shape takes minutes, and Python refuses to print it. A shape beyond `MOST_ELEMENTS` is refused first.
    """
    count = 1
    for size in shape:
        count *= size
        if count > MOST_ELEMENTS:
            allowed = f"at most {MOST_ELEMENTS}"
            raise FileError(location, "the shape has too many elements", got=quoted(list(shape)), allowed=allowed)
    return count


def checked_object(value: Any, location: Location) -> dict[str, Any]:
    """Return `value` if it is an object of JSON."""
    if not isinstance(value, dict):
        raise FileError(location, "an object is expected", got=quoted(value))
    return cast("dict[str, Any]", value)
