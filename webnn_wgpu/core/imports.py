"""Importing packages that make a great many objects."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from .process import process_options


@contextmanager
def uncollected() -> Generator[None]:
    """Import without garbage collection, where the program allows that: see `optimize_process`.

    Nearly all objects that modules make stay, and the collector would look through them several times in vain. They count as
    old afterwards without having been looked through once: only a full collection looks at them.
    """
    if not process_options().deferred_collection:
        yield
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_freeze_count() == 0:  # Objects that the application has frozen stay frozen.
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()
