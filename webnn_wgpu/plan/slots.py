"""Assigning values to slots: buffers whose parts are used again over disjoint lifetimes.

Each value lives in a part of a slot from the dispatch that writes it to the last that reads it. One buffer may not be bound
for reading and writing in one dispatch, not even in disjoint ranges, so intermediate results cannot share one arena: what a
dispatch writes lies in another slot than what it reads.

Where values lie best depends on the order in which they are placed, so a few orders are tried. Each value goes where its slot
grows least, and there as low as it fits.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(frozen=True)
class Lifetime:
    """First and last dispatch that touches a value, and its size."""

    first: int
    last: int
    size_bytes: int

    def overlaps(self, other: Lifetime) -> bool:
        """Return whether a dispatch finds both."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Place:
    """Where a value lies: a slot by number, and the first byte."""

    slot: int
    offset_bytes: int


@dataclass
class _Slot:
    size_bytes: int = 0
    values: list[tuple[int, int, Lifetime]] = field(default_factory=list[tuple[int, int, Lifetime]])
    """Value, offset and lifetime of what has been placed, in order of the offsets."""

    def lowest(self, life: Lifetime, alignment: int) -> int:
        """Return the lowest offset at which nothing lies that lives at the same time."""
        offset = 0
        for _, start, other in self.values:
            if other.overlaps(life):
                if start - offset >= life.size_bytes:
                    break
                offset = max(offset, -(-(start + other.size_bytes) // alignment) * alignment)
        return offset


_TRIES, _PLACED = 30, 3000
"""Most orders that are tried, and most values that are placed in all of them together."""


def _orders(lifetimes: Mapping[int, Lifetime]) -> Iterator[list[tuple[int, Lifetime]]]:
    """Return the values in the orders that are tried: by size, by time, by both, and by sizes that are taken for others."""
    values = sorted(lifetimes.items(), key=lambda item: (item[1].first, -item[1].size_bytes, item[0]))
    yield sorted(values, key=lambda item: -item[1].size_bytes)
    yield values
    yield sorted(values, key=lambda item: -item[1].size_bytes * (item[1].last - item[1].first + 1))
    chance = random.Random(0)  # the same for every graph: plans must not differ from run to run
    for _ in range(min(_TRIES, _PLACED // max(1, len(values)))):
        yield sorted(values, key=lambda item: -item[1].size_bytes * chance.uniform(0.6, 1.6))


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
) -> tuple[dict[int, Place], list[int]]:
    """Place values in slots.

    Args:
        lifetimes: by value.
        apart: pairs of values that must not lie in one slot: one dispatch binds both, and writes one.
        alignment: what offsets are a multiple of.
        largest_bytes: what a slot of several values must not exceed.

    Returns:
        Value -> place, and the sizes of the slots.

    >>> assign_slots({1: Lifetime(0, 1, 64), 2: Lifetime(1, 2, 32), 3: Lifetime(2, 3, 64)}, [frozenset((1, 2))])
    ({1: Place(slot=0, offset_bytes=0), 3: Place(slot=0, offset_bytes=0), 2: Place(slot=1, offset_bytes=0)}, [64, 32])
    """
    strangers: dict[int, set[int]] = {value: set() for value in lifetimes}
    for one, other in apart:
        strangers[one].add(other)
        strangers[other].add(one)
    slots: list[_Slot] = []
    least, enough = 1 << 62, live_bytes(lifetimes.values())
    for order in _orders(lifetimes):
        found = _placed(order, strangers, alignment, largest_bytes)
        total = sum(slot.size_bytes for slot in found)
        if total < least:
            slots, least = found, total
        if least <= enough:
            break
    places = {value: Place(i, offset) for i, slot in enumerate(slots) for value, offset, _ in slot.values}
    return places, [slot.size_bytes for slot in slots]


def _placed(
    values: Sequence[tuple[int, Lifetime]], strangers: Mapping[int, set[int]], alignment: int, largest_bytes: int
) -> list[_Slot]:
    """Return the slots that hold the values when they are placed in this order."""
    slots: list[_Slot] = []
    home: dict[int, int] = {}
    for value, life in values:
        taken = {home[other] for other in strangers[value] if other in home}
        best, best_offset, best_growth = len(slots), 0, life.size_bytes
        for i, slot in enumerate(slots):
            if i in taken:
                continue
            offset = slot.lowest(life, alignment)
            growth = max(0, offset + life.size_bytes - slot.size_bytes)
            better = growth < best_growth or (best == len(slots) and growth == best_growth)
            if better and (not growth or offset + life.size_bytes <= largest_bytes):
                best, best_offset, best_growth = i, offset, growth
        if best == len(slots):
            slots.append(_Slot())
        slot = slots[best]
        slot.size_bytes = max(slot.size_bytes, best_offset + life.size_bytes)
        slot.values.append((value, best_offset, life))
        slot.values.sort(key=lambda placed: placed[1])
        home[value] = best
    return slots
