"""The targets of assignments: variables of an invocation and their parts, and places in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...core.data_types import Array
from .memory import MemoryVariable
from .types import ArrayType, Numeric, StructType, Type, column_stride, map_tree, scalar_bytes, stride_of
from .values import Composite, Fault, Value, data_of, describe, merged, of_data
from .wave import Mask

COMPONENTS = {name: i for names in ("xyzw", "rgba") for i, name in enumerate(names)}

Access: TypeAlias = "str | Array"
"""A member by name, or an element by index."""


@dataclass(slots=True, eq=False)
class InvocationVariable:
    """A variable of each invocation.

    Attributes:
        value: the value.
        scope: the lanes that have the variable. None if all have it.
    """

    value: Value
    scope: Mask | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LocalPlace:
    """A variable of each invocation, or a part of one."""

    variable: InvocationVariable
    steps: tuple[Access, ...] = ()

    def load(self) -> Value:
        """Return the value at the place."""
        value = self.variable.value
        for step in self.steps:
            value = part(value, step)
        return value

    def store(self, value: Value, mask: Mask) -> None:
        """Store a value at the place, in the lanes of a mask."""
        whole = mask.full or mask is self.variable.scope
        self.variable.value = _updated(self.variable.value, self.steps, value, None if whole else mask.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPlace:
    """A place in memory that invocations share, one for each lane.

    Attributes:
        memory: the variable.
        type: the type of the value.
        offsets: the byte offset of each lane.
        outside: the lanes whose place is outside of the variable. None if there are none.
    """

    memory: MemoryVariable
    type: Type
    offsets: Array
    outside: Array | None = None

    def at(self, step: Access, outside: Array | None = None) -> MemoryPlace:
        """Return the place of a part."""
        type_, offset = _part_in_memory(self.type, step)
        both = outside if self.outside is None or outside is None else outside | self.outside
        return MemoryPlace(self.memory, type_, self.offsets + offset, both if both is not None else self.outside)


Place: TypeAlias = LocalPlace | MemoryPlace


@dataclass(frozen=True, slots=True, eq=False)
class Pointer:
    """A place as a value."""

    place: Place


def _part_in_memory(type_: Type, step: Access) -> tuple[Type, Any]:
    if isinstance(step, str):
        member = type_.member(step) if isinstance(type_, StructType) else None
        if member is None:
            raise Fault(f"{type_} has no member {step}")
        return member.type, member.offset
    index = step.astype(np.int64)
    match type_:
        case ArrayType():
            return type_.element, index * stride_of(type_)
        case Numeric(shape=(_,)):
            return Numeric(type_.scalar), index * scalar_bytes(type_)
        case Numeric(shape=(_, rows)):
            return Numeric(type_.scalar, (rows,)), index * column_stride(type_)
        case _:
            raise Fault(f"{type_} has no elements")


def length_of(type_: Type, memory: MemoryVariable | None = None) -> int:
    """Return the number of elements of an array, vector or matrix."""
    if isinstance(type_, ArrayType):
        if type_.count is not None:
            return type_.count
        assert memory is not None
        return memory.count
    if isinstance(type_, Numeric):
        for length in type_.shape:
            return length
    raise Fault(f"{type_} has no elements")


def part(value: Value, step: Access) -> Value:
    """Return a member, element, component or column of a value. An index outside is clamped."""
    if isinstance(step, str):
        if isinstance(value, Composite) and isinstance(value.type, StructType) and (member := value.type.member(step)):
            members: Any = value.data
            return of_data(member.type, members[step])
        raise Fault(f"{describe(value)} has no member {step}")
    if isinstance(value, Composite):
        if not isinstance(value.type, ArrayType):
            raise Fault(f"{describe(value)} has no elements")
        return of_data(value.type.element, map_tree(lambda leaf: _picked(leaf, step), value.data))
    if value.ndim < 2:
        raise Fault(f"{describe(value)} has no elements")
    return _picked(value, step)


def swizzled(value: Value, names: str) -> Value:
    """Return components of a vector by their letters."""
    if isinstance(value, tuple):
        picked: tuple[Any, ...] = tuple(value[COMPONENTS[name]] for name in names)
        return picked[0] if len(picked) == 1 else picked
    places = [COMPONENTS.get(name, 9) for name in names]
    if not isinstance(value, np.ndarray) or value.ndim != 2 or len(places) > 4 or max(places) >= len(value):
        raise Fault(f"{describe(value)} has no {names}")
    return value[places[0]] if len(places) == 1 else value[places]


def _picked(leaf: Array, index: Array) -> Array:
    """Return an element of each lane, or the same of all lanes."""
    last = len(leaf) - 1
    if index.size == 1:
        return leaf[min(max(int(index[0]), 0), last)]
    return np.take_along_axis(leaf, _by_lane(leaf, index), 0)[0] if leaf.shape[-1] > 1 else _from_one(leaf, index)


def _from_one(leaf: Array, index: Array) -> Array:
    """Return elements, by lane, of an array that is the same in all lanes."""
    found = leaf[..., 0].take(np.clip(index, 0, len(leaf) - 1), axis=0)
    return np.moveaxis(found, 0, -1)


def _by_lane(leaf: Array, index: Array) -> Array:
    return np.clip(index, 0, len(leaf) - 1).astype(np.int64).reshape(*[1] * (leaf.ndim - 1), -1)


def _updated(old: Value, steps: tuple[Access, ...], new: Value, mask: Array | None) -> Value:
    """Return a value with a part of it replaced in the lanes of a mask."""
    if not steps:
        return new if mask is None else merged(mask, new, old)
    step, *rest = steps
    inner = _updated(part(old, step), tuple(rest), new, mask)
    if isinstance(step, str):
        assert isinstance(old, Composite)
        assert isinstance(old.data, dict)
        return Composite(old.type, {**old.data, step: data_of(inner)})
    data = map_tree(lambda leaf, made: _replaced(leaf, step, made), data_of(old), data_of(inner))
    return Composite(old.type, data) if isinstance(old, Composite) else data


def _replaced(leaf: Array, index: Array, made: Array) -> Array:
    lanes = max(leaf.shape[-1], made.shape[-1], index.size)
    result = np.broadcast_to(leaf, (*leaf.shape[:-1], lanes)).copy()
    if index.size == 1:
        result[min(max(int(index[0]), 0), len(leaf) - 1)] = made
    else:
        wanted = np.broadcast_to(made, (*made.shape[:-1], lanes))[None]
        np.put_along_axis(result, _by_lane(result, index), wanted, 0)
    return result
