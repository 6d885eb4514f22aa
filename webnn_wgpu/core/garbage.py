"""Objects that hold more than memory, and are garbage in cycles of references, which are looked for too seldom for them."""

from __future__ import annotations

import gc
import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class Scarce(Generic[T]):
    """Objects of which only a limited number may be alive in a process, such as open files and devices.

    Python collects garbage after many allocations. These objects are few, but each one holds many resources.

    Args:
        few: the number of live objects that triggers a collection.
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
            self._most = max(self._few, 2 * len(self.alive))  # live objects are not scanned again and again
