"""Where random choices come from: a seed, for speed, or hypothesis, for shrinking."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Source(ABC):
    """Random choices. The first item, the lowest number and no are the simplest: hypothesis shrinks towards them."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """Choose a number, both ends included."""

    def choice(self, items: Sequence[T]) -> T:
        """Choose an item."""
        return items[self.integer(0, len(items) - 1)]

    def chance(self, one_in: int) -> bool:
        """Say yes once in so many times."""
        return self.integer(0, one_in - 1) == one_in - 1

    def flags(self, count: int) -> list[bool]:
        """Choose yes or no, so many times."""
        return [self.chance(2) for _ in range(count)]

    def subset(self, items: Sequence[T]) -> list[T]:
        """Choose some of the items, in their order."""
        return [item for item in items if self.chance(2)]

    def permutation(self, items: Sequence[T]) -> list[T]:
        """Choose an order."""
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in items]

    def divisor(self, number: int, most: int = 8) -> int:
        """Choose a divisor, frequently not 1."""
        return self.choice([d for d in (2, 3, 4, 5, 7, 8, 1) if d <= most and number % d == 0])

    def generator(self) -> np.random.Generator:
        """Return a generator for the elements of an array: those need not shrink."""
        return np.random.default_rng(self.integer(0, 2**20))


class Seeded(Source):
    """Choices that follow from a seed."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


class Drawn(Source):
    """Choices of hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))
