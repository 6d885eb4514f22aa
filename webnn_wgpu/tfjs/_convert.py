"""Conversions that all functions share: arguments to tensors, data types of results, axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from typing import cast as typed

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, cast, ops, tensor

TensorLike: TypeAlias = "Tensor | npt.ArrayLike"
Axes: TypeAlias = "int | Sequence[int] | None"

_ORDER = ("bool", "int32", "float32")
"""Data types, of which the later one is that of the result."""


def as_tensor(given: TensorLike, dtype: str | None = None) -> Tensor:
    """Return an argument as a tensor. Numbers are float32 as in JavaScript, and integers of numpy's arrays are int32.

    Args:
        given: a tensor, numbers or an array.
        dtype: the data type, or None for that of the argument.
    """
    if isinstance(given, Tensor):
        return given if dtype is None else cast(given, dtype)
    if dtype is None:
        kind = _kind(given)
        integers = isinstance(given, (np.ndarray, np.generic)) and kind in "iu"
        dtype = "bool" if kind == "b" else "int32" if integers else "float32"
    return tensor(typed("Any", given), dtype)


def _kind(given: TensorLike) -> str:
    """Return the kind of the elements in numpy's letters."""
    try:
        return np.asarray(typed("Any", given)).dtype.kind
    except ValueError:
        # `tensor` raises the error of lists of several lengths.
        return "f"


def as_floats(given: TensorLike) -> Tensor:
    """Return an argument as a tensor of floats."""
    found = as_tensor(given)
    return found if found.dtype.startswith("float") else cast(found, "float32")


def same_type(*given: TensorLike) -> list[Tensor]:
    """Return arguments in one data type: the widest of bool, int32 and float32."""
    tensors = [as_tensor(each) for each in given]
    if not tensors:
        raise MLTypeError("there must be tensors", operator="tfjs", got="none", allowed="one or more")
    if len({each.dtype for each in tensors}) == 1:
        return tensors
    for each in tensors:
        if each.dtype not in _ORDER:
            raise MLTypeError("tensors must have one data type", operator="tfjs", got=", ".join(map(repr, tensors)))
    widest = max((each.dtype for each in tensors), key=_ORDER.index)
    return [cast(each, widest) for each in tensors]


def axes_of(x: Tensor, axis: Axes) -> list[int]:
    """Return axes from 0 on. None stands for all."""
    if axis is None:
        return list(range(x.ndim))
    axes = [axis] if isinstance(axis, int) else list(axis)
    return [checked_axis(x, each) for each in axes]


def checked_axis(x: Tensor, axis: int, function: str = "axis") -> int:
    """Return an axis from 0 on."""
    if not -x.ndim <= axis < x.ndim:
        raise MLTypeError(
            "an axis must be one of the tensor", operator=function, got=str(axis), allowed=f"-{x.ndim} to {x.ndim - 1}"
        )
    return axis % x.ndim


def flat(x: Tensor) -> Tensor:
    """Return the elements without their gradient, as of functions that are constant almost everywhere."""
    return ops.stop_gradient(x) if x.dtype.startswith("float") else x


def broadcast(*given: Tensor) -> list[Tensor]:
    """Return tensors in the shape that they broadcast to."""
    try:
        shape = np.broadcast_shapes(*[each.shape for each in given])
    except ValueError:
        raise MLTypeError("shapes must broadcast", operator="tfjs", got=", ".join(map(repr, given))) from None
    return [each if each.shape == shape else ops.expand(each, shape) for each in given]


def with_batch(images: Tensor, function: Callable[[Tensor], Tensor], name: str, rank: int = 4) -> Tensor:
    """Return the result of a function of images. A single image, without the first dimension, stays a single one.

    Args:
        images: images of `rank` dimensions, or one with a dimension less.
        function: the function of images.
        name: the name of the function in messages.
        rank: the number of dimensions.

    Raises:
        MLTypeError: a tensor of another rank.
    """
    if images.ndim == rank:
        return function(images)
    if images.ndim != rank - 1:
        raise MLTypeError("images must have the rank", operator=name, got=repr(images), allowed=f"{rank - 1} or {rank}")
    return ops.squeeze(function(ops.unsqueeze(images, [0])), [0])
