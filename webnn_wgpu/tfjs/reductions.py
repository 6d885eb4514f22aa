"""Reductions, sums along axes, and statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from webnn_wgpu.eager import Tensor, cast, ops

from ._convert import Axes, TensorLike, as_floats, as_tensor, axes_of, checked_axis

Reduction: TypeAlias = Callable[..., Tensor]

_DOCUMENTATION = """Return {} along axes.

Args:
    x: a tensor.
    axis: the axes. None is all.
    keep_dims: whether the axes stay, with size 1.
"""


class Moments(NamedTuple):
    """Mean and variance.

    Attributes:
        mean: the means.
        variance: the variances.
    """

    mean: Tensor
    variance: Tensor


def _reduction(name: str, what: str, *, floats: bool = False, truths: bool = False) -> Reduction:
    """Return the function of a reduction.

    Args:
        name: the builder's method.
        what: the description.
        floats: whether integers become floats.
        truths: whether operands and results are truth values.
    """
    operator: Any = getattr(ops, name)

    def call(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
        given = as_floats(x) if floats else as_tensor(x, "bool" if truths else None)
        axes = axes_of(given, axis)
        given = cast(given, "int32") if given.dtype == "bool" else given
        result = operator(given, axes=axes, keep_dimensions=keep_dims)
        return cast(result, "bool") if truths else result

    call.__doc__ = _DOCUMENTATION.format(what[0].lower() + what[1:])
    return call


sum_ = _reduction("reduce_sum", "Sums")
mean = _reduction("reduce_mean", "Means", floats=True)
max_ = _reduction("reduce_max", "Largest elements")
min_ = _reduction("reduce_min", "Smallest elements")
prod = _reduction("reduce_product", "Products")
log_sum_exp = _reduction("reduce_log_sum_exp", "Logarithms of sums of powers of e", floats=True)
all_ = _reduction("reduce_min", "Whether all elements are true", truths=True)
any_ = _reduction("reduce_max", "Whether any element is true", truths=True)


def arg_max(x: TensorLike, axis: int = 0) -> Tensor:
    """Return the places of the largest elements along an axis.

    Args:
        x: a tensor.
        axis: the axis.
    """
    given = as_tensor(x)
    return ops.arg_max(given, checked_axis(given, axis, "arg_max"), output_data_type="int32")


def arg_min(x: TensorLike, axis: int = 0) -> Tensor:
    """Return the places of the smallest elements along an axis.

    Args:
        x: a tensor.
        axis: the axis.
    """
    given = as_tensor(x)
    return ops.arg_min(given, checked_axis(given, axis, "arg_min"), output_data_type="int32")


def moments(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Moments:
    """Return means and variances along axes.

    Args:
        x: a tensor.
        axis: the axes. None is all.
        keep_dims: whether the axes stay, with size 1.
    """
    given = as_floats(x)
    axes = axes_of(given, axis)
    kept = ops.reduce_mean(given, axes=axes, keep_dimensions=True)
    difference = given - kept
    variance = ops.reduce_mean(difference * difference, axes=axes, keep_dimensions=keep_dims)
    return Moments(kept if keep_dims else ops.reduce_mean(given, axes=axes), variance)


def cumsum(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the sum of all elements up to each element along an axis.

    Args:
        x: a tensor.
        axis: the axis.
        exclusive: whether an element's own value is left out.
        reverse: whether sums begin at the end.
    """
    given = as_tensor(x)
    return ops.cumulative_sum(given, checked_axis(given, axis, "cumsum"), exclusive=exclusive, reversed=reverse)


def cumprod(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the product of all elements up to each element along an axis.

    Args:
        x: a tensor.
        axis: the axis.
        exclusive: whether an element's own value is left out.
        reverse: whether products begin at the end.
    """
    given = as_tensor(x)
    return ops.ext.cumulative_product(given, checked_axis(given, axis, "cumprod"), exclusive=exclusive, reversed=reverse)


def softmax(logits: TensorLike, dim: int = -1) -> Tensor:
    """Return shares by powers of e, whose sum along an axis is 1.

    Args:
        logits: a tensor.
        dim: the axis.
    """
    given = as_floats(logits)
    return ops.softmax(given, checked_axis(given, dim, "softmax"))


def log_softmax(logits: TensorLike, axis: int = -1) -> Tensor:
    """Return logarithms of `softmax`.

    Args:
        logits: a tensor.
        axis: the axis.
    """
    given = as_floats(logits)
    return ops.ext.log_softmax(given, checked_axis(given, axis, "log_softmax"))
