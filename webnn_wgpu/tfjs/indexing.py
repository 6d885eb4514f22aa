"""Elements by index, sorted elements, and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, cast, ops
from webnn_wgpu.eager import tensor as eager_tensor

from ._convert import TensorLike, as_floats, as_tensor, checked_axis
from .arrays import broadcast_to, expand_dims, reshape, transpose
from .creation import constant, fill, ones, zeros


class TopK(NamedTuple):
    """The largest elements.

    Attributes:
        values: the elements.
        indices: their places.
    """

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """Different elements.

    Attributes:
        values: each element once.
        indices: for each element of the tensor, its place in `values`.
    """

    values: Tensor
    indices: Tensor


def gather(x: TensorLike, indices: TensorLike, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """Return elements along an axis by index.

    Args:
        x: a tensor.
        indices: integers.
        axis: the axis.
        batch_dims: the number of dimensions that both tensors share at their beginning.
    """
    given, places = as_tensor(x), as_tensor(indices, "int32")
    axis = checked_axis(given, axis, "gather")
    if not batch_dims:
        return ops.gather(given, places, axis=axis)
    batch, size = given.shape[:batch_dims], given.shape[axis]
    count = math.prod(batch)
    middle = list(range(batch_dims, axis))
    rest = list(range(axis + 1, given.ndim))
    moved = transpose(given, [*range(batch_dims), axis, *middle, *rest])
    rows = reshape(moved, [count * size, *moved.shape[batch_dims + 1 :]])
    inner = places.shape[batch_dims:]
    offsets = constant(np.arange(count, dtype=np.int32).reshape(-1, 1) * size, ("offsets", count, size))
    found = ops.gather(rows, reshape(places, [count, -1]) + offsets, axis=0)
    found = reshape(found, [*batch, *inner, *moved.shape[batch_dims + 1 :]])
    first = batch_dims + len(inner)
    order = [*range(batch_dims), *range(first, first + len(middle)), *range(batch_dims, first)]
    return transpose(found, [*order, *range(first + len(middle), found.ndim)])


def gather_nd(x: TensorLike, indices: TensorLike) -> Tensor:
    """Return parts of a tensor by coordinates.

    Args:
        x: a tensor.
        indices: coordinates along the last dimension.
    """
    return ops.gather_nd(as_tensor(x), as_tensor(indices, "int32"))


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: Sequence[int]) -> Tensor:
    """Return zeros to which parts are added by coordinates.

    Args:
        indices: coordinates along the last dimension.
        updates: the parts.
        shape: the dimensions of the result.
    """
    given = as_tensor(updates)
    return ops.ext.scatter_nd(zeros(shape, given.dtype), as_tensor(indices, "int32"), given, reduction="add")


def tensor_scatter_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike) -> Tensor:
    """Return a tensor of which parts are replaced by coordinates.

    Args:
        tensor: the tensor.
        indices: coordinates along the last dimension.
        updates: the parts.
    """
    given = as_tensor(tensor)
    return ops.scatter_nd(given, as_tensor(indices, "int32"), as_tensor(updates, given.dtype))


def sparse_to_dense(
    sparse_indices: TensorLike, sparse_values: TensorLike, output_shape: Sequence[int], default_value: float = 0
) -> Tensor:
    """Return a tensor with values at given places.

    Args:
        sparse_indices: coordinates along the last dimension, or indices.
        sparse_values: a value for each place, or one for all.
        output_shape: the dimensions of the result.
        default_value: the other elements.
    """
    places, values = as_tensor(sparse_indices, "int32"), as_tensor(sparse_values)
    places = reshape(places, [-1, 1]) if places.ndim < 2 else places
    values = broadcast_to(values, [places.shape[0]]) if not values.ndim else values
    return ops.scatter_nd(fill(output_shape, default_value, values.dtype), places, values)


def unsorted_segment_sum(x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """Return the sums of the rows of each segment.

    Args:
        x: a tensor.
        segment_ids: the segment of each row.
        num_segments: the number of segments.
    """
    given = as_tensor(x)
    return scatter_nd(expand_dims(as_tensor(segment_ids, "int32"), 1), given, [num_segments, *given.shape[1:]])


def bincount(x: TensorLike, weights: TensorLike, size: int) -> Tensor:
    """Return how often each integer occurs, or the sum of its weights.

    Args:
        x: integers. Those from `size` on are left out.
        weights: a weight for each integer. An empty tensor stands for ones.
        size: the number of counts.
    """
    places, given = as_tensor(x, "int32"), as_tensor(weights)
    amounts = cast(given, "float32") if given.size else ones(places.shape)
    # Integers that are too large are counted at a place that is cut off.
    counts = scatter_nd(expand_dims(ops.min(places, size), 1), amounts, [size + 1])
    return ops.slice(counts, [0], [size])


def topk(x: TensorLike, k: int = 1, sorted: bool = True) -> TopK:
    """Return the largest elements along the last dimension, and their places.

    Args:
        x: a tensor.
        k: how many.
        sorted: whether they are in descending order.
    """
    values, indices = ops.ext.top_k(as_tensor(x), k, sorted=sorted, indices_data_type="int32")
    return TopK(values, indices)


def unique(x: TensorLike, axis: int = 0) -> Unique:
    """Return each element once, in the order of first occurrence. The call reads the tensor.

    Args:
        x: a tensor.
        axis: the axis along which parts are compared.
    """
    given = as_tensor(x)
    place = checked_axis(given, axis, "unique")
    array = given.numpy()
    found, first, inverse = np.unique(array, axis=place, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return Unique(eager_tensor(np.take(found, order, axis=place)), eager_tensor(ranks[inverse.reshape(-1)].astype(np.int32)))


def search_sorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left") -> Tensor:
    """Return where values belong in ascending rows.

    Args:
        sorted_sequence: rows in ascending order.
        values: values for each row.
        side: "left" for the first place that fits, "right" for the last.

    Raises:
        MLTypeError: an unknown side.
    """
    if side not in ("left", "right"):
        raise MLTypeError("side must be known", operator="search_sorted", got=repr(side), allowed="left, right")
    rows, wanted = expand_dims(as_floats(sorted_sequence), -2), expand_dims(as_floats(values), -1)
    before = ops.lesser(rows, wanted) if side == "left" else ops.lesser_or_equal(rows, wanted)
    return ops.reduce_sum(cast(before, "int32"), axes=[before.ndim - 1])


def lower_bound(sorted_sequence: TensorLike, values: TensorLike) -> Tensor:
    """Return the first place where values belong in ascending rows.

    Args:
        sorted_sequence: rows in ascending order.
        values: values for each row.
    """
    return search_sorted(sorted_sequence, values, "left")


def upper_bound(sorted_sequence: TensorLike, values: TensorLike) -> Tensor:
    """Return the last place where values belong in ascending rows.

    Args:
        sorted_sequence: rows in ascending order.
        values: values for each row.
    """
    return search_sorted(sorted_sequence, values, "right")
