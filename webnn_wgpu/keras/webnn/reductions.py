"""Functions of `keras.ops` that combine the elements of dimensions."""

from __future__ import annotations

import math as host_math
from typing import Any

from keras.src.backend.common.dtypes import result_type

from . import core, host
from .dtypes import FLOATS, canonical, is_float
from .elementwise import chosen, floating, isnan, logical_not, number, wide
from .movement import axes_of, axis_of, diagonal, ravel, reshape
from .tensor import Tensor, call, cast, moved, several


def _axes(x: Tensor, axis: Any) -> list[int]:
    return axes_of(axis, x.ndim)


def _reduced(name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Reduce a tensor of a type that the operator takes."""
    axes = _axes(x, axis)
    if not axes:
        return x
    (value,) = several(name, x, axes=axes, keep_dimensions=bool(keepdims))
    return Tensor(value, x.dtype)


def sum_type(dtype: str) -> str:
    """Return the data type of a sum."""
    if dtype in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if dtype in ("uint8", "uint16") else dtype


@host.unless_held("numpy")
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum."""
    found = core.convert_to_tensor(x)
    dtype = sum_type(found.dtype)
    within = "float32" if dtype in FLOATS else dtype
    return cast(_reduced("reduce_sum", cast(found, within), axis, keepdims), dtype)


@host.unless_held("numpy")
def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The product."""
    found = core.convert_to_tensor(x)
    wanted = sum_type(found.dtype) if dtype is None else canonical(core.standardize_dtype(dtype))
    within = "float32" if wanted in FLOATS else sum_type(wanted)
    return cast(_reduced("reduce_product", cast(found, within), axis, keepdims), wanted)


@host.unless_held("numpy")
def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean."""
    found = core.convert_to_tensor(x)
    dtype = found.dtype if is_float(found.dtype) else canonical(result_type(found.dtype, "float32"))
    return cast(_reduced("reduce_mean", cast(found, "float32"), axis, keepdims), dtype)


def _spread(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the variance of floats."""
    distance = x - mean(x, axis, keepdims=True)
    return mean(distance * distance, axis, keepdims)


@host.unless_held("numpy")
def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance."""
    found = core.convert_to_tensor(x)
    return cast(_spread(cast(found, "float32"), axis, keepdims), canonical(result_type(found.dtype, float)))


@host.unless_held("numpy")
def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation."""
    found = core.convert_to_tensor(x)
    return cast(call("sqrt", _spread(cast(found, "float32"), axis, keepdims)), canonical(result_type(found.dtype, float)))


def _extreme(name: str, method: str, combine: str) -> Any:
    @host.unless_held("numpy", name)
    def function(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
        found = core.convert_to_tensor(x)
        result = _reduced(method, found, axis, keepdims)
        if initial is None:
            return result
        return call(combine, result, core.convert_to_tensor(initial, found.dtype))

    function.__name__, function.__doc__ = name, f"The {name} of the elements of dimensions."
    return function


max = amax = _extreme("max", "reduce_max", "max")
min = amin = _extreme("min", "reduce_min", "min")


@host.unless_held("numpy")
def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not 0."""
    return _reduced("reduce_max", core.convert_to_tensor(x, "bool"), axis, keepdims)


@host.unless_held("numpy")
def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element is 0."""
    return _reduced("reduce_min", core.convert_to_tensor(x, "bool"), axis, keepdims)


@host.unless_held("numpy")
def count_nonzero(x: Any, axis: Any = None) -> Tensor:
    """The number of elements that are not 0."""
    return sum(core.convert_to_tensor(x, "bool"), axis)


@host.unless_held("numpy")
def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The distance between the largest and the smallest element."""
    found = core.convert_to_tensor(x)
    return max(found, axis, keepdims) - min(found, axis, keepdims)


def _place(name: str, method: str) -> Any:
    @host.unless_held("numpy", name)
    def function(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
        found = core.convert_to_tensor(x)
        flat, rank = axis is None, found.ndim
        if flat:
            found, axis = ravel(found), 0
        (value,) = several(
            method, found, axis=axis_of(axis or 0, found.ndim), keep_dimensions=keepdims and not flat, output_data_type="int32"
        )
        result = Tensor(value, "int32")
        return reshape(result, [1] * rank) if flat and keepdims else result

    function.__name__, function.__doc__ = name, f"The place of the {name[3:]} of a dimension."
    return function


argmax = _place("argmax", "arg_max")
argmin = _place("argmin", "arg_min")


@host.unless_held("numpy")
def average(x: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """The mean with weights."""
    found = core.convert_to_tensor(x)
    if weights is None:
        return mean(found, axis)
    given = core.convert_to_tensor(weights)
    dtype = canonical(result_type(found.dtype, given.dtype, float))
    found, given = wide(floating(found)), wide(floating(given))
    if found.shape != given.shape and axis is not None:
        place = axis_of(axis, found.ndim)
        given = reshape(given, [given.shape[0] if n == place else 1 for n in range(found.ndim)])
        given = moved("expand", given, new_shape=found.shape)
    return cast(sum(found * given, axis) / sum(given, axis), dtype)


def _running(name: str, method: str) -> Any:
    @host.unless_held("numpy", name)
    def function(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        found = core.convert_to_tensor(x)
        wanted = canonical(core.standardize_dtype(dtype or found.dtype))
        wanted = "int32" if wanted == "bool" else wanted
        if axis is None:
            found, axis = ravel(found), 0
        within = "float32" if wanted in FLOATS else sum_type(wanted)
        return cast(call(method, cast(found, within), axis=axis_of(axis, found.ndim)), wanted)

    function.__name__, function.__doc__ = name, f"`{name}` along a dimension."
    return function


cumsum = _running("cumsum", "cumulative_sum")
cumprod = _running("cumprod", "ext.cumulative_product")


@host.unless_held("numpy")
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal."""
    return sum(diagonal(x, offset, axis1, axis2), -1)


@host.unless_held("numpy")
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Differences of neighbors."""
    found = core.convert_to_tensor(a)
    axis = axis_of(axis, found.ndim)
    for _ in range(n):
        before, after = (found[(slice(None),) * axis + (part,)] for part in (slice(None, -1), slice(1, None)))
        if found.dtype == "bool":
            from .elementwise import not_equal

            found = not_equal(after, before)
        else:
            found = after - before
    return found


# Without what is no number ---------------------------------------------------------------------------------------------


def _filled(x: Tensor, filling: float) -> Tensor:
    return chosen(isnan(x), number(filling, x), x) if is_float(x.dtype) else x


@host.unless_held("numpy")
def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of numbers."""
    return sum(_filled(core.convert_to_tensor(x), 0.0), axis, keepdims)


@host.unless_held("numpy")
def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product of numbers."""
    return prod(_filled(core.convert_to_tensor(x), 1.0), axis, keepdims)


@host.unless_held("numpy")
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumsum` of numbers."""
    return cumsum(_filled(core.convert_to_tensor(x), 0.0), axis, dtype)


@host.unless_held("numpy")
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """`cumprod` of numbers."""
    return cumprod(_filled(core.convert_to_tensor(x), 1.0), axis, dtype)


def _nan_extreme(name: str, worst: float) -> Any:
    reduce = max if name == "nanmax" else min

    @host.unless_held("numpy", name)
    def function(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        found = core.convert_to_tensor(x)
        if not is_float(found.dtype):
            return reduce(found, axis, keepdims)
        empty = all(isnan(found), axis, keepdims)
        result = reduce(_filled(found, worst), axis, keepdims)
        return chosen(empty, number(host_math.nan, result), result)

    function.__name__, function.__doc__ = name, f"`{name}` of the elements of dimensions."
    return function


nanmax = _nan_extreme("nanmax", -host_math.inf)
nanmin = _nan_extreme("nanmin", host_math.inf)


@host.unless_held("numpy")
def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of numbers."""
    found = core.convert_to_tensor(x)
    if not is_float(found.dtype):
        return mean(found, axis, keepdims)
    counts = sum(cast(logical_not(isnan(found)), "float32"), axis, keepdims)
    return cast(sum(wide(_filled(found, 0.0)), axis, keepdims) / counts, found.dtype)


@host.unless_held("numpy")
def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance of numbers."""
    found = core.convert_to_tensor(x)
    if not is_float(found.dtype):
        return var(found, axis, keepdims)
    distance = wide(found) - nanmean(wide(found), axis, keepdims=True)
    return cast(nanmean(distance * distance, axis, keepdims), found.dtype)


@host.unless_held("numpy")
def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation of numbers."""
    found = nanvar(x, axis, keepdims)
    return cast(call("sqrt", wide(found)), found.dtype)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are equal within limits."""
    from .elementwise import isclose

    return all(isclose(x1, x2, rtol, atol, equal_nan))
