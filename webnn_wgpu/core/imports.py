"""Importing packages that make a great many objects."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from .process import process_options


@contextmanager
def uncollected() -> Generator[None]:
    """Import without garbage collection, if the application allows that: see `optimize_process`.

    Nearly all objects that modules create stay alive, and the collector would scan them several times in vain. Afterwards they
    count as old without any scan, so that only a full collection scans them.
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
