"""Settings that the package makes before Mesa's software driver llvmpipe is loaded, if the application allows that."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

from ..core.process import process_options

THREADS = "LP_NUM_THREADS"
"""The environment variable of llvmpipe's number of threads."""

SPARE_THREADS = 2
"""Measured on two processors, where one spare thread was not enough."""

_asked = threading.Event()
"""Set once adapters were listed. A loaded driver stays loaded."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def spare_threads() -> Generator[None]:
    """Let llvmpipe, if it is loaded within, compute with two threads more than processors, if the application allows that.

    By default llvmpipe starts one thread for each processor and wakes all of them for every kernel. If Linux puts two threads
    on one processor, they stay there run after run while another processor is idle. Runs of 50 ms and more then take 1.2 to 1.4
    times as long. With two more threads the measurements did not show this, but runs of many small kernels take up to 15%
    longer. The function does not change a user's setting. On a single processor llvmpipe computes without threads of its own.
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
