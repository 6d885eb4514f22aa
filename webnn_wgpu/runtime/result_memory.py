"""The memory of a program's results on the host, which later runs use again once the application has dropped the results.

The allocator returns the memory of large arrays to the system when they are freed. For the next run, the system then clears
each page again at its first access. For results of megabytes that takes longer than the copy from the device.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..core.data_types import Array

Form: TypeAlias = tuple[tuple[int, ...], "np.dtype[Any]"]
"""The shape and the data type of an array."""

_LARGE_BYTES = 1 << 16
"""Bytes from which on an array has memory to use again. The allocator keeps the memory of smaller ones itself."""

_MOST_KEPT_BYTES = 64 << 20
"""The maximum number of bytes that a program keeps while the application uses none of its results."""


class ResultMemory:
    """Arrays for the outputs of a program. The memory of one array per large output is kept between runs."""

    def __init__(self, forms: Mapping[str, Form]) -> None:
        self._forms = forms
        self._free: dict[str, deque[Array]] = {}
        kept_bytes = 0
        for name, (shape, dtype) in forms.items():
            size_bytes = prod(shape) * dtype.itemsize
            if size_bytes >= _LARGE_BYTES and kept_bytes + size_bytes <= _MOST_KEPT_BYTES:
                self._free[name] = deque(maxlen=1)
                kept_bytes += size_bytes

    def array(self, name: str) -> Array:
        """Return an array for an output, with undefined content, which no other object uses."""
        free = self._free.get(name)
        try:
            memory = free.pop() if free else None
        except IndexError:  # another thread was faster
            memory = None
        if memory is None:
            memory = np.empty(*self._forms[name])
        return memory if free is None else np.asarray(_Loan(memory, free))


class _Loan:
    """The owner of the memory of an array that the application uses, and of all views of it."""

    __slots__ = ("__array_interface__", "_free", "_memory")

    def __init__(self, memory: Array, free: deque[Array]) -> None:
        self.__array_interface__: dict[str, Any] = memory.__array_interface__
        self._memory, self._free = memory, free

    def __del__(self) -> None:
        self._free.append(self._memory)
