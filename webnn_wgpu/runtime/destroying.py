"""The destruction of devices and buffers while no run uses them, although the application may destroy them at any time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_TIMEOUT_S = 5.0
"""The maximum wait for a thread that uses the object. A thread that waits for a hung device does not return."""


def destroy_under(lock: Any, thing: Any, first: Callable[[], None] = lambda: None) -> None:
    """Delay the destruction of a device or buffer while a lock is held, and call a function right before the destruction.

    A submit of recorded work over a destroyed object ends the process inside wgpu-native.
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
