"""Objects that hold more than memory, and are garbage in cycles of references, which are looked for too seldom for them."""

from __future__ import annotations

import gc
import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class Scarce(Generic[T]):
    """Objects of which a process can have a limited number alive, such as open files and devices.

    Python looks for garbage once many objects were made. These come with few, and hold much.

    Args:
        few: how many may be alive before garbage is looked for.
    """

    def __init__(self, few: int) -> None:
        self.alive: weakref.WeakSet[T] = weakref.WeakSet()
        self._few = self._most = few

    def add(self, each: T) -> None:
        """Count an object as long as it lives."""
        self.alive.add(each)

    def make_room(self) -> None:
        """Free the unreferenced objects if there are many. Call this before another one is created."""
        if len(self.alive) >= self._most:
            gc.collect()
            self._most = max(self._few, 2 * len(self.alive))  # those in use are not looked through again and again
