"""`keras.ops`'s functions of linear algebra. Decompositions run on the host. See `host.FUNCTIONS`."""

from __future__ import annotations

from typing import Any

from . import core, host
from .elementwise import floating
from .reductions import max as largest
from .reductions import sum as total
from .tensor import Tensor, call


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors, or of matrices where the host has it."""
    found = floating(core.convert_to_tensor(x))
    along = len(axis) if isinstance(axis, (list, tuple)) else 1
    euclidean = ord is None or (ord == 2 and axis is not None and along == 1)
    if euclidean and found.value is not None:
        return call("sqrt", total(found * found, axis, keepdims))
    if axis is not None and along == 1 and found.value is not None:
        if ord == 1:
            return total(call("abs", found), axis, keepdims)
        if ord == float("inf"):
            return largest(call("abs", found), axis, keepdims)
    return host.fall_back("linalg", "norm", found, ord, axis, keepdims)


globals().update(host.functions("linalg"))
