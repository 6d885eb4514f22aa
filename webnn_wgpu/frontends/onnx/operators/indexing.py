"""Operators that pick elements by indices, put them there, or order them."""

from __future__ import annotations

import numpy as np

from webnn_wgpu import MLOperand

from ..call import Call
from ..tensors import Tensor
from ..types import is_float
from ._registry import Result, lowers


@lowers("Gather", moves=True)
def gather(call: Call) -> Result:
    """Slices picked by indices, which count from the end where they are negative."""
    axis = call.axis(call.attribute("axis", 0), call.tensor(0).rank)
    return call.build.gather(call.operand(0), call.operand(1), axis=axis)


@lowers("GatherElements", moves=True)
def gather_elements(call: Call) -> Result:
    """Elements picked along an axis, each by an index of its own."""
    x, indices = call.operand(0), call.operand(1)
    axis = call.axis(call.attribute("axis", 0), len(x.shape))
    for other, (have, want) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if other != axis and want < have:
            starts, sizes = [0] * len(x.shape), list(x.shape)
            sizes[other] = want
            x = call.build.slice(x, starts, sizes)
    return call.build.gather_elements(x, indices, axis=axis)


@lowers("GatherND", moves=True)
def gather_nd(call: Call) -> Result:
    """Slices picked by coordinates, within each batch."""
    indices = call.operand(1)
    batch = call.attribute("batch_dims", 0)
    parts = [*(iota(call, list(indices.shape[:-1]), axis, indices.data_type) for axis in range(batch)), indices]
    return call.build.gather_nd(call.operand(0), call.build.concat(parts, -1) if batch else indices)


def iota(call: Call, shape: list[int], axis: int, data_type: str) -> MLOperand:
    """Return each element's coordinate along an axis, with a last dimension of 1 for it."""
    sizes = [1] * (len(shape) + 1)
    sizes[axis] = shape[axis]
    return call.build.expand(call.constant(np.arange(shape[axis]).reshape(sizes), data_type), [*shape, 1])


@lowers("ReverseSequence", moves=True)
def reverse_sequence(call: Call) -> Result:
    """The first elements of each sequence in reverse order; how many, the second input says."""
    x, lengths = call.operand(0), call.operand(1)
    time, batch = call.attribute("time_axis", 0), call.attribute("batch_axis", 1)
    shape = [1] * len(x.shape)
    shape[time] = int(x.shape[time])
    steps = call.constant(np.arange(x.shape[time]).reshape(shape), "int64")
    shape = [1] * len(x.shape)
    shape[batch] = int(x.shape[batch])
    length = call.reshape(lengths, shape)
    mirrored = call.build.sub(call.build.sub(length, call.like(1, length)), steps)
    index = call.build.where(call.build.lesser(steps, length), mirrored, steps)
    return call.build.gather_elements(x, call.build.expand(index, list(x.shape)), axis=time)


@lowers("OneHot")
def one_hot(call: Call) -> Result:
    """One value at an index along a new axis, another elsewhere; nowhere for indices that are out of range."""
    indices, values = call.operand(0), call.operand(2)
    depth = int(call.number(1))
    if depth < 1:
        call.on_host("the depth is 0")
    if is_float(call.tensor(0).dtype):
        indices = call.cast(indices, "int64")
    elif call.tensor(0).dtype.itemsize < 8:
        indices = call.cast(indices, "int32" if call.tensor(0).dtype.name != "uint32" else "int64")
    rank = len(indices.shape) + 1
    axis = call.axis(call.attribute("axis", -1), rank)
    shape = list(indices.shape)
    shape.insert(axis, 1)
    index = call.reshape(indices, shape)
    if index.data_type != "uint64":
        zero = call.like(0, index)
        index = call.build.where(
            call.build.lesser(index, zero), call.build.add(index, call.like(depth, index)), index
        )
    sizes = [1] * rank
    sizes[axis] = depth
    hit = call.build.equal(index, call.constant(np.arange(depth).reshape(sizes), index.data_type))
    off, on = (call.reshape(part, []) for part in call.build.split(values, 2))
    return call.build.where(hit, on, off)


@lowers("Compress", moves=True)
def compress(call: Call) -> Result:
    """Slices for which a condition holds, if it is known; else nothing tells how many there are."""
    condition = call.tensor(1).array
    if condition is None:
        call.on_host("the shape of its result depends on elements")
    x, axis = call.tensor(0), call.attribute("axis")
    operand = call.operand(0)
    if axis is None:
        operand, axis = call.reshape(operand, [x.size]), 0
    axis = call.axis(axis, len(operand.shape))
    places = np.flatnonzero(condition[: operand.shape[axis]])
    if not places.size:
        sizes = list(operand.shape)
        sizes[axis] = 0
        return Tensor.known(np.zeros(sizes, x.dtype))
    return call.build.gather(operand, call.constant(places, "int32"), axis=axis)


@lowers("NonZero", "Unique", "NonMaxSuppression")
def data_dependent(call: Call) -> Result:
    """Left to the host."""
    call.on_host("the shape of its result depends on elements")


@lowers("TopK", moves=True)
def top_k(call: Call) -> Result:
    """The largest or smallest elements along an axis, and where they are."""
    x = call.tensor(0)
    axis = call.axis(call.attribute("axis", -1), x.rank)
    k = int(call.number(1)) if call.version >= 10 else call.attribute("k")
    if k < 0 or k > x.shape[axis]:
        call.fail(f"k = {k} of {x.shape[axis]} elements")
    if not k:
        sizes = (*x.shape[:axis], 0, *x.shape[axis + 1 :])
        return [Tensor.known(np.zeros(sizes, x.dtype)), Tensor.known(np.zeros(sizes, np.int64))]
    return call.build.ext.top_k(call.operand(0), k, axis=axis, largest=bool(call.attribute("largest", 1)))


@lowers("Range", empty=True)
def range_(call: Call) -> Result:
    """Numbers at equal distances."""
    start, limit, delta = (call.value(i).reshape(-1)[0] for i in range(3))
    count = max(0, int(np.ceil((float(limit) - float(start)) / float(delta))))
    return Tensor.known((np.arange(count) * float(delta) + float(start)).astype(start.dtype))
