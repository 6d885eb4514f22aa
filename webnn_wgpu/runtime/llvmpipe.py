"""What Mesa's software driver llvmpipe is told when it is loaded."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

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
    """Have llvmpipe, if it is loaded within, compute with two threads more than there are processors.

    By itself it takes one for each. It wakes all of them for every kernel, and where Linux puts two on one processor, they stay
    there run after run while another is idle: runs of some 50 ms and more take 1.2 to 1.4 times as long. With two more
    that was not seen; runs of many small kernels take up to 15% longer. What the user has set stays. On a single processor
    llvmpipe computes without threads of its own.
    """
    if _asked.is_set() or not sys.platform.startswith("linux") or THREADS in os.environ or processors() == 1:
        yield
        return
    os.environ[THREADS] = str(processors() + SPARE_THREADS)
    try:
        yield
    finally:
        os.environ.pop(THREADS, None)
        _asked.set()
