"""Forks of a process that uses wgpu: they lack the drivers' threads, so calls to a driver would never return."""

from __future__ import annotations

import functools
import os
import threading

FORKED = "the process was forked from one that uses wgpu, whose threads it has not"
FORK_HINT = 'Start processes by multiprocessing.get_context("spawn"), or before the first context is made'

forked = threading.Event()
"""Set in processes that were forked from one that used wgpu."""


@functools.cache
def watch_forks() -> None:
    """Mark forks of this process from its first use of wgpu on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked.set)
