"""Arrays in mapped files, whose pages need not stay in memory after they are read."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from .data_types import Array

_MAPPED_AROUND = 64 * 1024
"""Bytes of a file that Linux maps around one that is touched (fault_around_bytes)."""


def release_pages(array: Array) -> None:
    """Let go of the pages that an array keeps of a file mapped for reading only, and of those that Linux has mapped with them.

    Touching them loads them anew. Other arrays are left alone.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if not isinstance(owner, mmap.mmap) or not hasattr(owner, "madvise"):
        return
    whole: Array = np.frombuffer(owner, np.uint8)
    if whole.flags.writeable:
        return
    steps = [stride * (n - 1) for stride, n in zip(array.strides, array.shape, strict=True)]
    at = array.ctypes.data - whole.ctypes.data
    first, end = at + sum(min(step, 0) for step in steps), at + sum(max(step, 0) for step in steps) + array.itemsize
    begin = max(first - _MAPPED_AROUND, 0) // mmap.PAGESIZE * mmap.PAGESIZE
    owner.madvise(mmap.MADV_DONTNEED, begin, min(end + _MAPPED_AROUND, whole.nbytes) - begin)
