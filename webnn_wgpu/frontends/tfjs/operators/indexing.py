"""Operators that gather and scatter slices by number."""

from __future__ import annotations

import math

import numpy as np

from ..call import TfjsCall
from ._registry import Result, lowers


@lowers("GatherV2", "Gather")
def gather(call: TfjsCall) -> Result:
    """Slices by number."""
    x, indices = call.operand(0), call.cast(call.operand(1), "int32")
    axis = call.axis(int(call.number(2)), len(x.shape)) if call.node.op == "GatherV2" and len(call.inputs) > 2 else 0
    batches = call.integer("batch_dims")
    batches = batches + len(indices.shape) if batches < 0 else batches
    if not batches:
        return call.build.gather(x, indices, axis=axis)
    if not 0 < batches <= min(axis, len(indices.shape)) or x.shape[:batches] != indices.shape[:batches]:
        call.fail(f"{batches} batches of {list(x.shape)} and {list(indices.shape)}")
    # The batches are one dimension of slices, and the number of the batch is added to that of the slice.
    x = call.transpose(x, [*range(batches), axis, *(d for d in range(batches, len(x.shape)) if d != axis)])
    count = math.prod(x.shape[:batches])
    rows = call.reshape(x, [count * x.shape[batches], *x.shape[batches + 1 :]])
    base = np.arange(count, dtype=np.int32).reshape(*x.shape[:batches], *[1] * (len(indices.shape) - batches))
    y = call.build.gather(rows, call.build.add(indices, call.constant(base * x.shape[batches], "int32")))
    # The dimensions before the axis move back in front of those of the indices.
    own, before = len(indices.shape), axis - batches
    order = [*range(batches), *range(own, own + before), *range(batches, own), *range(own + before, len(y.shape))]
    return call.transpose(y, order)


@lowers("GatherNd")
def gather_nd(call: TfjsCall) -> Result:
    """Slices by lists of numbers."""
    return call.build.gather_nd(call.operand(0), call.cast(call.operand(1), "int32"))


@lowers("ScatterNd")
def scatter_nd(call: TfjsCall) -> Result:
    """Slices added to zeros by lists of numbers."""
    updates = call.operand(1)
    zeros = call.hold(call.filled(tuple(call.sizes(2)), 0, call.tensor(1).dtype))
    return call.build.ext.scatter_nd(zeros, call.cast(call.operand(0), "int32"), updates, reduction="add")


@lowers("TensorScatterUpdate")
def scatter_update(call: TfjsCall) -> Result:
    """Slices in place of others by lists of numbers."""
    return call.build.scatter_nd(call.operand(0), call.cast(call.operand(1), "int32"), call.operand(2))


@lowers("SparseToDense")
def sparse_to_dense(call: TfjsCall) -> Result:
    """Single elements in a tensor of one number."""
    indices, sizes = call.cast(call.operand(0), "int32"), call.sizes(1)
    values = call.operand(2)
    default = call.cast(call.operand(3), values.data_type)
    base = call.build.expand(default, sizes)
    rows = call.reshape(indices, [indices.shape[0] if indices.shape else 1, len(sizes) if len(indices.shape) > 1 else 1])
    values = call.build.expand(values, [rows.shape[0]]) if not values.shape else values
    return call.build.scatter_nd(base, rows, values)
