"""Importing packages that make a great many objects."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """Import without looking for garbage: nearly all that modules make stays, and is looked through several times in vain.

    What was made counts as old afterwards, without having been looked through once: only a full collection looks at it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() == 0:  # what others have frozen stays so
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()
