"""Functions of `keras.ops` that make tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend import config
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.dtypes import result_type

from . import core, host
from .dtypes import canonical
from .elementwise import dtype_of
from .movement import broadcast_to, empty_of
from .tensor import Tensor, of_array


def _dtype(dtype: Any, otherwise: str | None = None) -> str:
    return canonical(standardize_dtype(dtype or otherwise or config.floatx()))


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in (shape if isinstance(shape, (list, tuple)) else np.atleast_1d(np.asarray(shape))))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one value."""
    named = _dtype(dtype)
    sizes = _sizes(shape)
    if 0 in sizes or named in ("complex64", "string"):
        return of_array(np.full(sizes, np.asarray(fill_value)), named)
    value = core.convert_to_tensor(fill_value, named)
    return broadcast_to(value, sizes)


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of zeros."""
    return full(shape, 0, _dtype(dtype))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of ones."""
    return full(shape, 1, _dtype(dtype))


empty = zeros


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """A tensor of zeros of the shape of another."""
    found = core.convert_to_tensor(x)
    return zeros(found.shape, dtype or found.dtype)


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """A tensor of ones of the shape of another."""
    found = core.convert_to_tensor(x)
    return ones(found.shape, dtype or found.dtype)


empty_like = zeros_like


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """A tensor of one value of the shape of another."""
    found = core.convert_to_tensor(x)
    return full(found.shape, fill_value, dtype or found.dtype)


def array(x: Any, dtype: Any = None) -> Tensor:
    """Anything as a tensor."""
    return core.convert_to_tensor(x, dtype)


def _plain(x: Any) -> Any:
    """Return a number of Python or numpy for a tensor of one element."""
    return x if isinstance(x, (int, float, type(None))) else core.convert_to_numpy(x)[()]


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Numbers at equal distances."""
    if dtype is None:
        given = [dtype_of(x) for x in (start, stop, step) if x is not None]
        dtype = result_type(*given)
    named = _dtype(dtype)
    numbers = (
        np.arange(_plain(start), _plain(stop), _plain(1 if step is None else step))
        if stop is not None
        else np.arange(0, _plain(start), _plain(1 if step is None else step))
    )
    return of_array(numbers, named) if numbers.size else empty_of(numbers.shape, named)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """A matrix with ones on a diagonal."""
    return of_array(np.eye(int(N), None if M is None else int(M), int(k)), _dtype(dtype))


def identity(n: int, dtype: Any = None) -> Tensor:
    """The unit matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """A matrix with ones in its lower triangle."""
    return of_array(np.tri(int(N), None if M is None else int(M), int(k)), _dtype(dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Numbers at equal distances between two ends."""
    return host.fall_back("numpy", "linspace", start, stop, num, endpoint, retstep, dtype, axis)


def ndim(x: Any) -> Tensor:
    """The number of dimensions."""
    return of_array(core.convert_to_tensor(x).ndim, "int32")


def size(x: Any) -> Tensor:
    """The number of elements."""
    return of_array(core.convert_to_tensor(x).size, "int32")
