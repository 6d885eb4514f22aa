"""The types of WGSL, and the layout of their values in memory (section "Memory Layout")."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...core.data_types import Array

SCALARS: MappingProxyType[str, np.dtype[Any]] = MappingProxyType(
    {
        "bool": np.dtype(np.bool_),
        "i32": np.dtype(np.int32),
        "u32": np.dtype(np.uint32),
        "f32": np.dtype(np.float32),
        "f16": np.dtype(np.float16),
        "i64": np.dtype(np.int64),
        "u64": np.dtype(np.uint64),
        "f64": np.dtype(np.float64),
    }
)
SCALAR_OF: MappingProxyType[np.dtype[Any], str] = MappingProxyType({dtype: name for name, dtype in SCALARS.items()})

BOOL_BYTES = 4
"""The size of a bool in workgroup memory. No WGSL can observe it."""


@dataclass(frozen=True)
class Numeric:
    """A scalar (shape `()`), vector (`(n,)`) or matrix (`(columns, rows)`), or an atomic scalar.

    >>> print(Numeric("f32", (4,)), Numeric("f16", (2, 3)), Numeric("u32", atomic=True))
    vec4<f32> mat2x3<f16> atomic<u32>
    """

    scalar: str
    shape: tuple[int, ...] = ()
    atomic: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its numbers in numpy."""
        return SCALARS[self.scalar]

    def __str__(self) -> str:
        if self.atomic:
            return f"atomic<{self.scalar}>"
        return (
            "".join(["", "vec", "mat"][len(self.shape)] + "x".join(map(str, self.shape)) + f"<{self.scalar}>")
            if (self.shape)
            else self.scalar
        )


@dataclass(frozen=True)
class ArrayType:
    """An array. The count of a runtime-sized one is None."""

    element: Type
    count: int | None

    def __str__(self) -> str:
        return f"array<{self.element}>" if self.count is None else f"array<{self.element}, {self.count}>"


@dataclass(frozen=True)
class MemberType:
    """A member of a structure, and its first byte in it."""

    name: str
    type: Type
    offset: int


@dataclass(frozen=True)
class StructType:
    """A structure."""

    name: str
    members: tuple[MemberType, ...]
    align: int
    size: int

    def member(self, name: str) -> MemberType | None:
        """Return a member by name, if there is one."""
        return next((m for m in self.members if m.name == name), None)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PointerType:
    """A pointer. Its target is checked at each use."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TextureType:
    """A texture that is read by `textureLoad`."""

    name: str

    def __str__(self) -> str:
        return self.name


Type: TypeAlias = Numeric | ArrayType | StructType | PointerType | TextureType


def align_of(type_: Type) -> int:
    """Return the alignment of a type in bytes."""
    match type_:
        case Numeric(shape=shape):
            rows = shape[-1] if shape else 1
            return scalar_bytes(type_) * (4 if rows == 3 else rows)
        case ArrayType():
            return align_of(type_.element)
        case StructType():
            return type_.align
        case _:
            return 1


def size_of(type_: Type) -> int:
    """Return the size of a type in bytes. For a runtime-sized array, return the size of one element."""
    match type_:
        case Numeric(shape=(columns, _)):
            return columns * column_stride(type_)
        case Numeric():
            return scalar_bytes(type_) * math.prod(type_.shape)
        case ArrayType():
            return stride_of(type_) * (type_.count or 1)
        case StructType():
            return type_.size
        case _:
            return 0


def stride_of(type_: ArrayType) -> int:
    """Return the bytes from one element of an array to the next."""
    return rounded_up(size_of(type_.element), align_of(type_.element))


def column_stride(type_: Numeric) -> int:
    """Return the bytes from one column of a matrix to the next."""
    return rounded_up(scalar_bytes(type_) * type_.shape[1], align_of(type_))


def scalar_bytes(type_: Numeric) -> int:
    """Return the bytes of one number of a type."""
    return BOOL_BYTES if type_.scalar == "bool" else type_.dtype.itemsize


def rounded_up(value: int, multiple: int) -> int:
    """Return the smallest multiple that is no smaller than `value`."""
    return -(-value // multiple) * multiple


def struct_type(name: str, members: Sequence[tuple[str, Type, int | None, int | None]]) -> StructType:
    """Return a structure of members with their types and the values of `@align` and `@size`.

    >>> str(
    ...     [
    ...         m.offset
    ...         for m in struct_type("S", [("a", Numeric("f32"), None, None), ("b", Numeric("f32", (3,)), None, None)]).members
    ...     ]
    ... )
    '[0, 16]'
    """
    placed: list[MemberType] = []
    end, largest = 0, 1
    for member, type_, said, size in members:
        align = said or align_of(type_)
        offset = rounded_up(end, align)
        placed.append(MemberType(member, type_, offset))
        end, largest = offset + (size or size_of(type_)), max(largest, align)
    return StructType(name, tuple(placed), largest, rounded_up(end, largest))


Tree: TypeAlias = "Array | dict[str, Tree]"
"""The numbers of a value: an array, or by member. Arrays of structures are structures of arrays."""


def map_tree(function: Callable[..., Any], *trees: Any) -> Any:
    """Return the tree of a function's results for the arrays at the same positions of several trees."""
    if isinstance(trees[0], dict):
        return {name: map_tree(function, *(tree[name] for tree in trees)) for name in trees[0]}
    return function(*trees)


@dataclass(frozen=True, eq=False)
class Leaf:
    """The numbers of one scalar type in a value: the first byte of each, by their place in the value."""

    type: Numeric
    offsets: Array


@lru_cache(None)
def leaves(type_: Type) -> Any:
    """Return a tree of `Leaf`s: the offsets of a value's numbers."""
    match type_:
        case Numeric(shape=shape):
            size = scalar_bytes(type_)
            if len(shape) == 2:
                offsets = np.arange(shape[0])[:, None] * column_stride(type_) + np.arange(shape[1]) * size
            else:
                offsets = np.arange(math.prod(shape)).reshape(shape) * size
            return Leaf(type_, offsets.astype(np.int64))
        case ArrayType(count=int(count)):
            steps = np.arange(count, dtype=np.int64) * stride_of(type_)

            def repeat(leaf: Leaf) -> Leaf:
                return Leaf(leaf.type, steps.reshape(-1, *[1] * leaf.offsets.ndim) + leaf.offsets)

            return map_tree(repeat, leaves(type_.element))
        case StructType():

            def moved(member: MemberType) -> Any:
                return map_tree(lambda leaf: Leaf(leaf.type, leaf.offsets + member.offset), leaves(member.type))

            return {member.name: moved(member) for member in type_.members}
        case _:
            raise TypeError(f"no value has the type {type_}")


def smallest_number(type_: Type) -> int:
    """Return the bytes of the smallest number in a type."""
    match type_:
        case Numeric():
            return scalar_bytes(type_)
        case ArrayType():
            return smallest_number(type_.element)
        case StructType():
            return min(smallest_number(member.type) for member in type_.members)
        case _:
            return 4
