"""Assigning values to slots: whole buffers that are reused over disjoint lifetimes.

One buffer may not be bound for reading and writing in one dispatch, not even in disjoint ranges, so intermediate results
cannot share one arena. Instead each value lives in a slot from the dispatch that writes it to the last that reads it, and a
slot is free for the next value from then on. A value may take a slot only if the slot is free *before* its first dispatch, so
no dispatch ever reads and writes one slot.

The free slot that fits best is taken. If none is large enough the largest free one grows, which costs less than a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Lifetime:
    """First and last dispatch that touches a value, and its size."""

    first: int
    last: int
    size_bytes: int


def assign_slots(lifetimes: Mapping[int, Lifetime]) -> tuple[dict[int, int], list[int]]:
    """Place values in slots.

    Args:
        lifetimes: by value.

    Returns:
        Value -> slot number, and the sizes of the slots.

    >>> assign_slots({1: Lifetime(0, 1, 64), 2: Lifetime(1, 2, 32), 3: Lifetime(2, 3, 64)})
    ({1: 0, 2: 1, 3: 0}, [64, 32])
    """
    sizes: list[int] = []
    busy_until: list[int] = []
    placed: dict[int, int] = {}
    for value, life in sorted(lifetimes.items(), key=lambda item: (item[1].first, -item[1].size_bytes, item[0])):
        free = [s for s, until in enumerate(busy_until) if until < life.first]
        fitting = [s for s in free if sizes[s] >= life.size_bytes]
        if fitting:
            slot = min(fitting, key=lambda s: sizes[s])
        elif free:
            slot = max(free, key=lambda s: sizes[s])
            sizes[slot] = life.size_bytes
        else:
            slot = len(sizes)
            sizes.append(life.size_bytes)
            busy_until.append(life.last)
        busy_until[slot] = life.last
        placed[value] = slot
    return placed, sizes
