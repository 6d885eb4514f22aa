"""`keras.ops`'s activations."""

from __future__ import annotations

import math as host_math
from typing import Any

import numpy as np

from . import core
from .dtypes import is_float
from .elementwise import chosen, floating, log1p, number, wide
from .movement import axis_of, ordered, reshape, split, take_along_axis, transpose
from .reductions import cumsum
from .reductions import sum as total
from .tensor import Tensor, call, cast, of_array


def _single(name: str, method: str, **options: Any) -> Any:
    def function(x: Any) -> Tensor:
        return call(method, floating(x), **options)

    function.__name__, function.__doc__ = name, f"The activation `{name}`."
    return function


def relu(x: Any) -> Tensor:
    """The activation `relu`."""
    found = core.convert_to_tensor(x)
    return call("max", found, number(0, found)) if not is_float(found.dtype) else call("relu", found)


sigmoid = _single("sigmoid", "sigmoid")
tanh = _single("tanh", "tanh")
softsign = _single("softsign", "softsign")


def _clamped(x: Tensor, low: float, high: float) -> Tensor:
    return call("clamp", x, min_value=low, max_value=high)


def relu6(x: Any) -> Tensor:
    """The activation `relu6`."""
    return _clamped(core.convert_to_tensor(x), 0, 6)


def sparse_sigmoid(x: Any) -> Tensor:
    """The activation `sparse_sigmoid`."""
    return _clamped((floating(x) + 1.0) * 0.5, 0, 1)


def tanh_shrink(x: Any) -> Tensor:
    """The activation `tanh_shrink`."""
    found = floating(x)
    return found - call("tanh", found)


def softplus(x: Any) -> Tensor:
    """The activation `softplus`."""
    found = floating(x)
    within = wide(found)
    return cast(call("relu", within) + log1p(call("exp", call("neg", call("abs", within)))), found.dtype)


def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """The activation `soft_shrink`."""
    found = floating(x)
    zero = number(0, found)
    return chosen(found > threshold, found - threshold, chosen(found < -threshold, found + threshold, zero))


def sparse_plus(x: Any) -> Tensor:
    """The activation `sparse_plus`."""
    found = floating(x)
    middle = (found + 1.0) * (found + 1.0) * 0.25
    return chosen(found <= -1.0, number(0, found), chosen(found < 1.0, middle, found))


def silu(x: Any) -> Tensor:
    """The activation `silu`."""
    found = floating(x)
    return found * call("sigmoid", found)


def squareplus(x: Any, b: float = 4) -> Tensor:
    """The activation `squareplus`."""
    found = floating(x)
    return (found + call("sqrt", found * found + b)) * 0.5


def log_sigmoid(x: Any) -> Tensor:
    """The activation `log_sigmoid`."""
    return call("neg", softplus(call("neg", floating(x))))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """The activation `leaky_relu`."""
    return call("leaky_relu", floating(x), alpha=float(negative_slope))


def hard_sigmoid(x: Any) -> Tensor:
    """The activation `hard_sigmoid`."""
    return call("hard_sigmoid", floating(x), alpha=1 / 6, beta=0.5)


def hard_silu(x: Any) -> Tensor:
    """The activation `hard_silu`."""
    found = floating(x)
    return found * hard_sigmoid(found)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """The activation `elu`."""
    return call("elu", floating(x), alpha=float(alpha))


def selu(x: Any) -> Tensor:
    """The activation `selu`."""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """The activation `gelu`, by tanh or exact."""
    found = floating(x)
    if not approximate:
        return call("gelu", found)
    within = wide(found)
    angle = (within + within * within * within * 0.044715) * host_math.sqrt(2 / host_math.pi)
    return cast(within * 0.5 * (call("tanh", angle) + 1.0), found.dtype)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """The activation `celu`."""
    found = floating(x)
    return call("relu", found) + call("elu", call("min", found, number(0, found)) / alpha, alpha=1.0) * alpha


def glu(x: Any, axis: int = -1) -> Tensor:
    """The activation `glu`: one half of a dimension, gated by the other."""
    found = floating(x)
    if found.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={found.shape} with axis={axis}")
    a, b = split(found, 2, axis)
    return a * call("sigmoid", b)


def hard_tanh(x: Any) -> Tensor:
    """The activation `hard_tanh`."""
    return _clamped(floating(x), -1, 1)


def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """The activation `hard_shrink`."""
    found = floating(x)
    return chosen(call("abs", found) > threshold, found, number(0, found))


def threshold(x: Any, threshold: float, default_value: float) -> Tensor:
    """The elements above a number, and another value in place of the others."""
    found = floating(x)
    return chosen(found > threshold, found, number(default_value, found))


def _softmax(name: str, method: str) -> Any:
    def function(x: Any, axis: Any = -1) -> Tensor:
        found = floating(x)
        if axis is None:
            return reshape(function(reshape(found, (-1,)), 0), found.shape)
        if isinstance(axis, (list, tuple)):
            axes = [axis_of(each, found.ndim) for each in axis]
            order = [*(n for n in range(found.ndim) if n not in axes), *axes]
            moved_x = transpose(found, order)
            flat = reshape(moved_x, [*moved_x.shape[: -len(axes)], -1])
            return transpose(reshape(function(flat, -1), moved_x.shape), [int(n) for n in np.argsort(order)])
        if not found.ndim:
            return reshape(function(reshape(found, (1,)), 0), ())
        return call(method, found, axis=axis_of(axis, found.ndim))

    function.__name__, function.__doc__ = name, f"`{name}` along a dimension."
    return function


softmax = _softmax("softmax", "softmax")
log_softmax = _softmax("log_softmax", "ext.log_softmax")


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """The nearest point of the simplex."""
    found = floating(x)
    axis = axis_of(axis, found.ndim)
    size = found.shape[axis]
    down = ordered(found, size, axis, largest=True)[0]
    sums = cumsum(down, axis)
    places = of_array(np.arange(1, size + 1).reshape([-1 if n == axis else 1 for n in range(found.ndim)]), found.dtype)
    support = places * down + 1.0 > sums
    count = total(cast(support, "int32"), axis, keepdims=True)
    # The sum of the elements in the support is the last of the running sums that it has.
    last = take_along_axis(sums, count - 1, axis)
    return call("relu", found - (last - 1.0) / cast(count, found.dtype))
