"""Memory that invocations share: buffers and workgroup variables, with a shadow that records their accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.data_types import Array
from .types import (
    ArrayType,
    Leaf,
    Numeric,
    StructType,
    Type,
    leaves,
    map_tree,
    scalar_bytes,
    size_of,
    smallest_number,
    stride_of,
)
from .values import POISON, Value, data_of, of_data
from .wave import Wave


class BufferBytes:
    """Bytes that outlive a kernel.

    Attributes:
        data: the bytes.
        written: whether each byte was written. None if all were.
    """

    def __init__(self, data: Array, written: Array | None = None) -> None:
        self.data, self.written = data, written

    @classmethod
    def of(cls, array: Array, size_bytes: int = 0) -> BufferBytes:
        """Return a buffer that holds an array, with zeros behind it up to a size."""
        flat: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        data: Array = np.zeros(-(-max(flat.size, size_bytes) // 8) * 8, np.uint8)
        data[: flat.size] = flat
        return cls(data)

    @classmethod
    def unwritten(cls, size_bytes: int) -> BufferBytes:
        """Return a buffer without any write: zeros, as WebGPU requires."""
        size = -(-size_bytes // 8) * 8
        return cls(np.zeros(size, np.uint8), np.zeros(size, np.bool_))

    def fill(self, array: Array) -> None:
        """Write an array at its beginning."""
        flat: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.data[: flat.size] = flat
        if self.written is not None:
            self.written[: flat.size] = True

    def copy(self) -> BufferBytes:
        """Return a buffer of the same content."""
        return BufferBytes(self.data.copy(), None if self.written is None else self.written.copy())


class Clock:
    """When barriers last made the accesses of invocations to one address space visible to each other."""

    def __init__(self, workgroups: int, per_workgroup: int, subgroup_size: int) -> None:
        self._per_workgroup, self._subgroup_size = per_workgroup, subgroup_size
        self._subgroups = -(-per_workgroup // subgroup_size)
        self.now = 0
        self._workgroups: Array = np.zeros(workgroups, np.int64)
        self._of_subgroups: Array = np.zeros(workgroups * self._subgroups, np.int64)

    def subgroup(self, ids: Array) -> Array:
        """Return the numbers of the subgroups of invocations."""
        group, index = np.divmod(ids, self._per_workgroup)
        return group * self._subgroups + index // self._subgroup_size

    def barrier(self, ids: Array, *, subgroup: bool) -> None:
        """Order earlier accesses of these invocations before their later ones."""
        self.now += 1
        if subgroup:
            self._of_subgroups[self.subgroup(ids)] = self.now
        else:
            self._workgroups[ids // self._per_workgroup] = self.now

    def unordered(self, before: Array, when: Array, ids: Array) -> Array:
        """Return where an access of `before` at a time is not ordered before one of `ids` now. -1 stands for no invocation."""
        group = ids // self._per_workgroup
        ordered: Array = (before == ids) | (before < 0)
        ordered |= (before // self._per_workgroup == group) & (when < self._workgroups[group])
        subgroup = self.subgroup(ids)
        ordered |= (self.subgroup(np.maximum(before, 0)) == subgroup) & (when < self._of_subgroups[subgroup])
        return ~ordered


@dataclass(frozen=True, eq=False, kw_only=True)
class Conflict:
    """Unordered accesses of the same memory by several invocations, at least one of them a write.

    Attributes:
        unit: the first word of the conflict.
        ids, others: the invocations of the current access, and those of the earlier access.
        line: the line of the earlier access.
        wrote: whether the earlier access was a write.
    """

    unit: int
    ids: Array
    others: Array
    line: int
    wrote: bool


class _Access:
    """The last access of each word: invocation, time and line."""

    def __init__(self, units: int) -> None:
        self.id: Array = np.full(units, -1, np.int64)
        self.time: Array = np.zeros(units, np.int64)
        self.line: Array = np.zeros(units, np.int32)

    def set(self, units: Array, ids: Array, time: int | Array, line: int | Array) -> None:
        self.id[units], self.time[units], self.line[units] = ids, time, line

    def conflict(self, clock: Clock, units: Array, ids: Array, wrote: bool) -> Conflict | None:
        before = self.id[units]
        bad = clock.unordered(before, self.time[units], ids)
        if not bad.any():
            return None
        first = int(np.argmax(bad))
        return Conflict(
            unit=int(units[first]), ids=ids[bad], others=before[bad], line=int(self.line[units[first]]), wrote=wrote
        )


class Shadow:
    """The accesses to a memory since its kernel began. Of the readers of a word the last two are known."""

    def __init__(self, units: int, clock: Clock) -> None:
        self._clock = clock
        self._writer, self._reader, self._former = _Access(units), _Access(units), _Access(units)

    def read(self, units: Array, ids: Array, line: int) -> Conflict | None:
        """Record reads, and return the conflicting access, if any."""
        found = self._writer.conflict(self._clock, units, ids, True)
        reader = self._reader
        other = (reader.id[units] != ids) & (reader.id[units] >= 0)
        where = units[other]
        self._former.set(where, reader.id[where], reader.time[where], reader.line[where])
        reader.set(units, ids, self._clock.now, line)
        # Of several invocations that read a word at once one is left: another of them is kept too.
        lost = reader.id[units] != ids
        self._former.set(units[lost], ids[lost], self._clock.now, line)
        return found

    def write(self, units: Array, ids: Array, line: int) -> Conflict | None:
        """Record writes, and return the conflicting access, if any."""
        found = None
        for access in (self._writer, self._reader, self._former):
            found = found or access.conflict(self._clock, units, ids, access is self._writer)
        self._writer.set(units, ids, self._clock.now, line)
        lost = self._writer.id[units] != ids
        if found is None and lost.any():
            first = units[lost][0]
            found = Conflict(unit=int(first), ids=ids[lost], others=self._writer.id[units[lost]], line=line, wrote=True)
        return found


class MemoryVariable:
    """A variable in storage, uniform or workgroup memory.

    Attributes:
        name: the name of the variable.
        type: the type of the variable.
        space: the address space.
        size: the size in bytes. For workgroup memory, the size in one workgroup.
        writable: whether kernels may write it.
        shadow: the recorded accesses. None if no kernel may write it.
    """

    def __init__(
        self,
        name: str,
        type_: Type,
        space: str,
        buffer: BufferBytes,
        offset: int,
        size: int,
        wave_copies: int,
        clock: Clock | None,
    ) -> None:
        self.name, self.type, self.space, self.size = name, type_, space, size
        self.writable = clock is not None
        end = offset + size * wave_copies
        self.data = buffer.data[offset:end]
        self.written = None if buffer.written is None else buffer.written[offset:end]
        if self.written is not None and self.written.all():
            self.written = None
        self.grain = smallest_number(type_)
        self.shadow = None if clock is None else Shadow(-(-self.data.size // self.grain), clock)
        self._views: dict[Any, Array] = {}

    @property
    def count(self) -> int:
        """Elements of the runtime-sized array that it is, or ends with."""
        type_, start = self.type, 0
        if isinstance(type_, StructType):
            start, type_ = type_.members[-1].offset, type_.members[-1].type
        assert isinstance(type_, ArrayType)
        return max(0, self.size - start) // stride_of(type_)

    def of_lanes(self, wave: Wave) -> Array | None:
        """Return the byte offset of each lane's copy, or None if there is only one copy."""
        if self.space == "workgroup" and len(wave.workgroups) > 1:
            return wave.workgroup * self.size
        return None

    def load(self, type_: Type, offsets: Array) -> Value:
        """Return the values of a type at the byte offset of each lane. Offsets outside are clamped."""

        def get(leaf: Leaf) -> Array:
            view = self._view(leaf.type)
            found = view.take((leaf.offsets[..., None] + offsets) // scalar_bytes(leaf.type), mode="clip")
            return found != 0 if leaf.type.scalar == "bool" else found

        return of_data(type_, map_tree(get, leaves(type_)))

    def store(self, type_: Type, offsets: Array, value: Value) -> None:
        """Store values of a type, one for each of `offsets`, the last of those that have the same place."""

        def put(leaf: Leaf, numbers: Array) -> None:
            self._view(leaf.type)[(leaf.offsets[..., None] + offsets) // scalar_bytes(leaf.type)] = numbers

        map_tree(put, leaves(type_), data_of(value))

    def poison(self) -> None:
        """Fill uninitialized memory with a value that differs from 0."""
        if self.written is not None:
            self.data[~self.written] = POISON

    def unwritten(self, units: Array) -> Array:
        """Return whether each of some words lacks a write."""
        if self.written is None:
            return np.zeros(units.shape, np.bool_)
        return np.logical_not(self._written_words()[units].all(axis=-1))

    def mark_written(self, units: Array) -> None:
        """Take note that words were written."""
        if self.written is not None:
            self._written_words()[units] = True

    def _written_words(self) -> Array:
        assert self.written is not None
        return self.written[: self.written.size // self.grain * self.grain].reshape(-1, self.grain)

    def units(self, type_: Type, offsets: Array) -> Array:
        """Return the numbers of the words that values of a type take, `[words, lanes]`."""
        return _words(type_, self.grain)[:, None] + offsets // self.grain

    def name_of(self, unit: int) -> str:
        """Return the element of the variable that a word belongs to, for people."""
        byte = unit * self.grain % max(self.size, 1)
        if isinstance(self.type, ArrayType):
            return f"{self.name}[{byte // stride_of(self.type)}]"
        if isinstance(self.type, StructType):
            member = [m for m in self.type.members if m.offset <= byte][-1]
            inner = f"[{(byte - member.offset) // stride_of(member.type)}]" if isinstance(member.type, ArrayType) else ""
            return f"{self.name}.{member.name}{inner}"
        return self.name

    def _view(self, type_: Numeric) -> Array:
        dtype = np.dtype(np.uint32) if type_.scalar == "bool" else type_.dtype
        if dtype not in self._views:
            self._views[dtype] = self.data[: self.data.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return self._views[dtype]


def _words(type_: Type, grain: int) -> Array:
    """Return the numbers of the words, each of `grain` bytes, of a value from its first byte on."""
    found: list[Array] = []

    def add(leaf: Leaf) -> None:
        flat = leaf.offsets.reshape(-1) // grain
        found.append((flat[:, None] + np.arange(scalar_bytes(leaf.type) // grain)).reshape(-1))

    map_tree(add, leaves(type_))
    return np.concatenate(found)


def of_workgroups(name: str, type_: Type, workgroups: int, clock: Clock) -> MemoryVariable:
    """Return a workgroup variable of zeros, as WGSL requires, that counts as uninitialized."""
    size = -(-size_of(type_) // 8) * 8
    total = size * workgroups
    return MemoryVariable(
        name, type_, "workgroup", BufferBytes(np.zeros(total, np.uint8), np.zeros(total, np.bool_)), 0, size, workgroups, clock
    )
