"""What Mesa's software driver llvmpipe is told when it is loaded, where the program allows that."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

from ..core.process import process_options

THREADS = "LP_NUM_THREADS"
"""The variable in which it looks for how many threads are to compute."""

SPARE_THREADS = 2
"""Measured on two processors, where one was not enough."""

_asked = threading.Event()
"""Set once adapters were looked for: what is loaded stays loaded."""


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def spare_threads() -> Generator[None]:
    """Have llvmpipe, if it is loaded within, compute with two threads more than processors, where the program allows that.

    By itself it takes one for each. It wakes all of them for every kernel, and where Linux puts two on one processor, they stay
    there run after run while another is idle: runs of some 50 ms and more take 1.2 to 1.4 times as long. With two more
    that was not seen; runs of many small kernels take up to 15% longer. What the user has set stays. On a single processor
    llvmpipe computes without threads of its own.
    """
    wanted = process_options().driver_threads and sys.platform.startswith("linux") and processors() > 1
    ours = wanted and not _asked.is_set() and THREADS not in os.environ
    if ours:
        os.environ[THREADS] = str(processors() + SPARE_THREADS)
    try:
        yield
    finally:
        _asked.set()
        if ours:
            os.environ.pop(THREADS, None)
