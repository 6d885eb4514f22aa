"""The assignment of values to slots: buffers that values use in turn over disjoint lifetimes.

Each value occupies a part of a slot from its producer to its last consumer. WebGPU forbids a dispatch that binds one buffer for
reading and for writing, even in disjoint ranges. Intermediate results therefore cannot share one arena. The planner puts the
outputs of a dispatch in other slots than its inputs.

The total size depends on the order of the assignments, so the planner tries several orders. Each value gets the slot that grows
least, at the lowest free offset.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True)
class Lifetime:
    """First and last dispatch that touches a value, and its size."""

    first: int
    last: int
    size_bytes: int


@dataclass(frozen=True)
class Place:
    """The allocation of a value: the number of its slot, and the offset."""

    slot: int
    offset_bytes: int


_Part: TypeAlias = tuple[int, int, int]
"""The allocation of a value: the number of its slot, the first byte and the end."""


class _Value(NamedTuple):
    """A value that is to be placed.

    Attributes:
        size_bytes: its size.
        duration: the number of dispatches in its lifetime.
        strangers: the values that must not share its slot.
        others: the other values whose lifetimes overlap with its lifetime.
    """

    size_bytes: int
    duration: int
    strangers: set[int]
    others: list[int]

    @property
    def role(self) -> tuple[int, int, int, int]:
        """The key of values with the same purpose in layers of one kind."""
        return self.size_bytes, self.duration, len(self.strangers), len(self.others)


_TRIES, _PLACED = 60, 3000
"""The maximum number of orders to try, and the approximate maximum number of assignments in all of them together."""


def _orders(values: Mapping[int, _Value]) -> Iterator[list[int]]:
    """Yield the orders to try: by size, by time, by both, and by sizes that stand in for others.

    `values` come in order of time. All values of one role get the same size. In networks of many layers, a good order for one
    layer is good for all, and few such orders exist.
    """
    yield sorted(values, key=lambda value: -values[value].size_bytes)
    yield list(values)
    yield sorted(values, key=lambda value: -values[value].size_bytes * values[value].duration)
    players: dict[tuple[int, ...], list[int]] = {}
    for value, it in values.items():
        players.setdefault(it.role, []).append(value)
    sizes = {role: math.log2(role[0] or 1) for role in sorted(players)}
    chance = random.Random(4)  # the same for every graph: plans must not differ from run to run
    while True:
        most = chance.uniform(0.0, 4.0)
        taken_for = {role: size + chance.uniform(-most, most) for role, size in sizes.items()}
        yield [value for role in sorted(sizes, key=lambda role: -taken_for[role]) for value in players[role]]


def live_bytes(lifetimes: Collection[Lifetime]) -> int:
    """Return the most that lives at one time: no assignment takes less.

    >>> live_bytes([Lifetime(0, 1, 64), Lifetime(1, 2, 32), Lifetime(2, 3, 64)])
    96
    """
    changes: dict[int, int] = {}
    for life in lifetimes:
        changes[life.first] = changes.get(life.first, 0) + life.size_bytes
        changes[life.last + 1] = changes.get(life.last + 1, 0) - life.size_bytes
    return max(accumulate(changes[at] for at in sorted(changes)), default=0)


def assign_slots(
    lifetimes: Mapping[int, Lifetime],
    apart: Collection[frozenset[int]] = (),
    *,
    alignment: int = 32,
    largest_bytes: int = 1 << 62,
    below_bytes: int = 1 << 62,
) -> tuple[dict[int, Place], list[int]]:
    """Assign values to slots.

    Args:
        lifetimes: the lifetime of each value.
        apart: pairs of values that must not share a slot, because one dispatch binds both and writes one of them.
        alignment: the alignment of all offsets, in bytes.
        largest_bytes: the maximum size of a slot that several values share, in bytes.
        below_bytes: the exclusive upper bound on the total size of all slots, in bytes.

    Returns:
        Value -> place, and the sizes of the slots. Both are empty if no assignment stays below the bound.

    >>> assign_slots({1: Lifetime(0, 1, 64), 2: Lifetime(1, 2, 32), 3: Lifetime(2, 3, 64)}, [frozenset((1, 2))])
    ({1: Place(slot=0, offset_bytes=0), 3: Place(slot=0, offset_bytes=0), 2: Place(slot=1, offset_bytes=0)}, [64, 32])
    """
    values = _values(lifetimes, apart)
    enough, tried = live_bytes(lifetimes.values()), 0
    places: dict[int, Place] = {}
    slots: list[int] = []
    for order in islice(_orders(values), _TRIES):
        if enough >= below_bytes or tried > _PLACED:
            break
        parts, sizes = _placed(order, values, alignment, largest_bytes, below_bytes)
        tried += len(parts)
        if len(parts) == len(values):
            slots, below_bytes = sizes, sum(sizes)
            places = {value: Place(slot, start) for value, (slot, start, _) in parts.items()}
    return places, slots


def _values(lifetimes: Mapping[int, Lifetime], apart: Collection[frozenset[int]]) -> dict[int, _Value]:
    """Return the values to assign, in order of time."""
    values: dict[int, _Value] = {}
    living: list[int] = []
    for value, life in sorted(lifetimes.items(), key=lambda item: (item[1].first, item[0])):
        living = [other for other in living if lifetimes[other].last >= life.first]
        for other in living:
            values[other].others.append(value)
        values[value] = _Value(life.size_bytes, life.last - life.first + 1, set(), list(living))
        living.append(value)
    for one, other in apart:
        values[one].strangers.add(other)
        values[other].strangers.add(one)
    return values


def _placed(
    order: Sequence[int], values: Mapping[int, _Value], alignment: int, largest_bytes: int, below_bytes: int
) -> tuple[dict[int, _Part], list[int]]:
    """Return the parts and slot sizes for an order. The parts are incomplete once the slots reach `below_bytes`."""
    parts: dict[int, _Part] = {}
    sizes: list[int] = []
    total = 0
    for value in order:
        this = values[value]
        size, strangers = this.size_bytes, this.strangers
        taken = {parts[other][0] for other in strangers if other in parts}
        used: dict[int, list[_Part]] = {}
        for other in this.others:
            if other in parts and other not in strangers:
                used.setdefault(parts[other][0], []).append(parts[other])
        best, best_offset, best_growth = len(sizes), 0, size
        for slot, slot_size in enumerate(sizes):
            if slot in taken:
                continue
            offset = _lowest(used[slot], size, alignment) if slot in used else 0
            growth = max(0, offset + size - slot_size)
            better = growth < best_growth or (best == len(sizes) and growth == best_growth)
            if better and (not growth or offset + size <= largest_bytes):
                best, best_offset, best_growth = slot, offset, growth
                if not growth:
                    break
        total += best_growth
        if total >= below_bytes:
            break
        if best == len(sizes):
            sizes.append(0)
        sizes[best] += best_growth
        parts[value] = best, best_offset, best_offset + size
    return parts, sizes


def _lowest(used: list[_Part], size_bytes: int, alignment: int) -> int:
    """Return the lowest offset of so many bytes that meet none of the parts that are used."""
    offset = 0
    for _, start, end in sorted(used):
        if start - offset >= size_bytes:
            break
        offset = max(offset, -(-end // alignment) * alignment)
    return offset
