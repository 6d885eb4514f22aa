"""Indices in brackets: integers, slices, None and an ellipsis, as in numpy."""

from __future__ import annotations

from operator import index
from types import EllipsisType
from typing import SupportsIndex, TypeAlias, cast

from webnn_wgpu import MLTypeError

from .operators import ops
from .tensor import Tensor

Index: TypeAlias = "int | slice | EllipsisType | None"


def item(tensor: Tensor, key: Index | tuple[Index, ...]) -> Tensor:
    """Return a part of a tensor.

    Args:
        tensor: the tensor.
        key: an index for each dimension, as in numpy's basic indexing.

    Raises:
        MLTypeError: an index out of range, too many indices, or an empty part.
    """
    indices = list(key) if isinstance(key, tuple) else [key]
    used = sum(each is not None and each is not Ellipsis for each in indices)
    if used > tensor.ndim:
        raise MLTypeError(
            "there is one index at most for each dimension", operator="getitem", got=str(used), allowed=str(tensor.ndim)
        )
    if Ellipsis not in indices:
        indices.append(Ellipsis)
    place = indices.index(Ellipsis)
    indices[place : place + 1] = [slice(None)] * (tensor.ndim - used)
    starts: list[int] = []
    sizes: list[int] = []
    strides: list[int] = []
    flipped: list[int] = []
    shape: list[int] = []
    dimension = 0
    for each in indices:
        if each is None:
            shape.append(1)
            continue
        length = tensor.shape[dimension]
        if isinstance(each, slice):
            start, stop, step = each.indices(length)
            count = len(range(start, stop, step))
            if step < 0:
                # The elements in ascending order are reversed afterwards.
                start, step = start + (count - 1) * step, -step
                flipped.append(dimension)
            starts.append(start)
            sizes.append((count - 1) * step + 1)
            strides.append(step)
            shape.append(count)
            if not count:
                raise MLTypeError(
                    "a part must have elements", operator="getitem", got=repr(each), allowed=f"of {length} elements"
                )
        else:
            number = _whole(each)
            if not -length <= number < length:
                raise MLTypeError(
                    "an index must lie in its dimension",
                    operator="getitem",
                    got=str(number),
                    allowed=f"-{length} to {length - 1}",
                )
            starts.append(number % length)
            sizes.append(1)
            strides.append(1)
        dimension += 1
    found = tensor
    if any(starts) or tuple(sizes) != tensor.shape or any(stride != 1 for stride in strides):
        found = ops.slice(found, starts, sizes, strides=strides)
    if flipped:
        found = ops.reverse(found, axes=flipped)
    return found if found.shape == tuple(shape) else ops.reshape(found, shape)


def _whole(given: object) -> int:
    """Return an index that is an integer, also one of numpy."""
    try:
        return index(cast("SupportsIndex", given))
    except TypeError:
        raise MLTypeError(
            "an index must be a whole number, a slice, None or an ellipsis", operator="getitem", got=repr(given)
        ) from None
