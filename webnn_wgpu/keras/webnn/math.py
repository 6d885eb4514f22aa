"""`keras.ops`'s functions of mathematics beyond numpy's."""

from __future__ import annotations

import math as host_math
from typing import Any

import numpy as np

from . import core, host
from .creation import full
from .dtypes import is_float
from .elementwise import chosen, equal, floating, number, wide
from .movement import expand_dims, ordered, reshape
from .reductions import any as any_of
from .reductions import max as largest
from .reductions import sum as total
from .tensor import Tensor, call, cast, moved, of_array


def _segment(name: str, reduction: str) -> Any:
    def function(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> Tensor:
        x, where = core.convert_to_tensor(data), core.convert_to_tensor(segment_ids, "int32")
        if num_segments is None or x.value is None:
            return host.fall_back("math", name, x, where, num_segments, sorted)
        count = int(num_segments)
        least = -host_math.inf if is_float(x.dtype) else int(np.iinfo(x.dtype).min)
        most = host_math.inf if is_float(x.dtype) else int(np.iinfo(x.dtype).max)
        start = {"add": 0, "mul": 1, "max": least, "min": most}[reduction]
        # Elements of negative segments go to a further segment, which is cut off.
        where = chosen(where < 0, number(count, where), where)
        base = full((count + 1, *x.shape[1:]), start, x.dtype)
        found = call("ext.scatter_nd", base, expand_dims(where, -1), x, reduction=reduction)
        return found[:count]

    function.__name__, function.__doc__ = name, f"`{name}`: elements of each segment, combined."
    return function


segment_sum = _segment("segment_sum", "add")
segment_prod = _segment("segment_prod", "mul")
segment_max = _segment("segment_max", "max")
segment_min = _segment("segment_min", "min")


@host.unless_held("math")
def top_k(x: Any, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The largest elements of the last dimension, and their places."""
    found = core.convert_to_tensor(x)
    return ordered(found, int(k), found.ndim - 1, largest=True)


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Whether the classes are among the likeliest."""
    wanted, found = core.convert_to_tensor(targets, "int32"), core.convert_to_tensor(predictions)
    best = top_k(found, k)[0]
    own = moved("gather_elements", found, expand_dims(wanted, -1), axis=found.ndim - 1)
    return any_of(own >= best, -1)


@host.unless_held("math")
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials."""
    found = floating(x)
    within = wide(found)
    peak = largest(within, axis, keepdims=True)
    peak = chosen(call("is_infinite", peak, dtype="bool"), number(0, peak), peak)
    sums = total(call("exp", within - peak), axis, keepdims=True)
    result = call("log", sums) + peak
    return cast(result if keepdims else reshape(result, total(within, axis).shape), found.dtype)


def cdist(x: Any, y: Any) -> Tensor:
    """The distances of all points of two sets."""
    a, b = floating(x), floating(y)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    distance = expand_dims(a, -2) - expand_dims(b, -3)
    return call("sqrt", total(distance * distance, -1))


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Windows of the last dimension."""
    found = core.convert_to_tensor(x)
    count = (found.shape[-1] - sequence_length) // sequence_stride + 1
    places = np.arange(count)[:, None] * sequence_stride + np.arange(sequence_length)
    return moved("gather", found, of_array(places.astype(np.int32), "int32"), axis=found.ndim - 1)


@host.unless_held("math")
def rsqrt(x: Any) -> Tensor:
    """One divided by the root."""
    found = floating(x)
    return cast(call("reciprocal", call("sqrt", wide(found))), found.dtype)


@host.unless_held("math")
def erf(x: Any) -> Tensor:
    """The error function."""
    return call("erf", floating(x))


_NEAR = (
    *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
    *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
)
_FAR = (
    *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
    *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
)
"""Coefficients of M. Giles, Approximating the erfinv function, GPU Computing Gems, 2010."""


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    found = number(coefficients[0], x)
    for coefficient in coefficients[1:]:
        found = found * x + coefficient
    return found


@host.unless_held("math")
def erfinv(x: Any) -> Tensor:
    """The inverse of the error function."""
    found = floating(x)
    within = wide(found)
    edge = equal(call("abs", within), 1.0)
    inner = chosen(edge, number(0, within), within)
    size = call("neg", call("log", (1.0 - inner) * (1.0 + inner)))
    near = size < 5.0
    close = _polynomial(chosen(near, size, number(2.5, size)) - 2.5, _NEAR)
    far = _polynomial(call("sqrt", chosen(near, number(9.0, size), size)) - 3.0, _FAR)
    result = chosen(near, close, far) * inner
    return cast(chosen(edge, within * host_math.inf, result), found.dtype)


globals().update(host.functions("math"))
