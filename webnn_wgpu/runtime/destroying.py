"""Destroying devices and buffers, which others may do at any time, while nobody uses them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_TIMEOUT_S = 5.0
"""How long destroying something waits for a thread that uses it: one that waits for a device which never answers keeps on."""


def destroy_under(lock: Any, thing: Any, first: Callable[[], None] = lambda: None) -> None:
    """Have a device or a buffer not be destroyed by anybody while a lock is held, and something be called right before that.

    A submit of what was destroyed since it was recorded ends the process inside wgpu-native.
    """
    weak = weakref.ref(thing)

    def destroy() -> None:
        found = weak()
        held = lock.acquire(timeout=_TIMEOUT_S)
        try:
            first()
            if found is not None:
                type(found).destroy(found)
        finally:
            if held:
                lock.release()

    thing.destroy = destroy
