"""Operators that gather elements by indices, scatter them, or sort them."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from .. import host
from ..call import NodeCall
from ..tensors import OnnxTensor
from ..types import is_float
from ._registry import SOME, Result, lowers
from .movement import cut


@lowers("Gather", moves=True)
def gather(call: NodeCall) -> Result:
    """Slices selected by indices. Negative indices count from the end."""
    axis = call.axis(call.attribute("axis", 0), call.tensor(0).rank)
    return call.build.gather(call.operand(0), call.operand(1), axis=axis)


@lowers("GatherElements", moves=True)
def gather_elements(call: NodeCall) -> Result:
    """Elements selected along an axis, each by an index of its own."""
    x, indices = call.operand(0), call.operand(1)
    axis = call.axis(call.attribute("axis", 0), len(x.shape))
    if len(x.shape) != len(indices.shape):
        call.fail(f"indices of rank {len(indices.shape)} for data of rank {len(x.shape)}")
    for other, (have, want) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if other != axis and want < have:
            starts, sizes = [0] * len(x.shape), list(x.shape)
            sizes[other] = want
            x = call.build.slice(x, starts, sizes)
    return call.build.gather_elements(x, indices, axis=axis)


@lowers("GatherND", moves=True, ranks={0: SOME, 1: SOME})
def gather_nd(call: NodeCall) -> Result:
    """Slices selected by coordinates, within each batch."""
    indices = call.operand(1)
    batch, shape = call.attribute("batch_dims", 0), list(indices.shape[:-1])
    if not 0 <= batch <= min(len(shape), call.tensor(0).rank - 1):
        call.fail(f"batch_dims {batch} of inputs of ranks {call.tensor(0).rank} and {len(shape) + 1}")
    if batch:
        coordinates = [_coordinate(call, shape, axis, indices.data_type) for axis in range(batch)]
        indices = call.build.concat([*coordinates, indices], len(shape))
    return call.build.gather_nd(call.operand(0), indices)


def _coordinate(call: NodeCall, shape: list[int], axis: int, data_type: str) -> MLOperand:
    """Return each element's coordinate along an axis, with a last dimension of 1 for it."""
    sizes = [1] * (len(shape) + 1)
    sizes[axis] = shape[axis]
    return call.build.expand(call.constant(np.arange(shape[axis]).reshape(sizes), data_type), [*shape, 1])


@lowers("Scatter", "ScatterElements", empty=True, ranks={0: SOME, 1: SOME})
def scatter_elements(call: NodeCall) -> Result:
    """A copy in which elements, selected by indices along an axis, are replaced by updates or combined with them."""
    if not call.tensor(1).size:
        return call.tensor(0)
    x, indices, updates = call.operand(0), call.operand(1), call.operand(2)
    axis = call.axis(call.attribute("axis", 0), len(x.shape))
    reduction = call.attribute("reduction", "none")
    if len(x.shape) != len(indices.shape):
        call.fail(f"indices of rank {len(indices.shape)} for data of rank {len(x.shape)}")
    if all(i == axis or a == b for i, (a, b) in enumerate(zip(x.shape, indices.shape, strict=True))):
        return _scatter(call, "scatter_elements", reduction, x, indices, updates, axis=axis)
    shape = list(indices.shape)
    coordinates = [_coordinate(call, shape, i, indices.data_type) for i in range(len(shape))]
    coordinates[axis] = call.reshape(indices, [*shape, 1])
    return _scatter(call, "scatter_nd", reduction, x, call.build.concat(coordinates, len(shape)), updates)


@lowers("ScatterND", empty=True)
def scatter_nd(call: NodeCall) -> Result:
    """A copy in which slices, selected by coordinates, are replaced by updates or combined with them."""
    if not call.tensor(1).size:
        return call.tensor(0)
    x, indices, updates = call.operand(0), call.operand(1), call.operand(2)
    return _scatter(call, "scatter_nd", call.attribute("reduction", "none"), x, indices, updates)


def _scatter(
    call: NodeCall, form: str, reduction: str, x: MLOperand, indices: MLOperand, updates: MLOperand, **options: int
) -> MLOperand:
    if reduction == "none":
        return getattr(call.build, form)(x, indices, updates, **options)
    return getattr(call.build.ext, form)(x, indices, updates, reduction=reduction, **options)


@lowers("ReverseSequence", moves=True, ranks={0: range(2, 65), 1: (1,)})
def reverse_sequence(call: NodeCall) -> Result:
    """Sequences with their first elements in reverse order. The second input is the number of these elements."""
    x, lengths = call.operand(0), call.operand(1)
    time, batch = call.axes([call.attribute("time_axis", 0), call.attribute("batch_axis", 1)], len(x.shape))
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
def one_hot(call: NodeCall) -> Result:
    """One value at an index along a new axis, and another elsewhere. Indices out of range select no element."""
    indices, values = call.operand(0), call.operand(2)
    depth = call.number(1)
    depth = int(depth) if math.isfinite(depth) else call.fail(f"a depth of {depth}")
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
        index = call.build.where(call.build.lesser(index, zero), call.build.add(index, call.like(depth, index)), index)
    sizes = [1] * rank
    sizes[axis] = depth
    hit = call.build.equal(index, call.constant(np.arange(depth).reshape(sizes), index.data_type))
    off, on = (call.reshape(part, []) for part in call.build.split(values, 2))
    return call.build.where(hit, on, off)


@lowers("Compress", moves=True, ranks={1: (1,)})
def compress(call: NodeCall) -> Result:
    """Slices for which a known condition is true. The number of slices of an unknown condition is unknown."""
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
        return OnnxTensor.known(np.zeros(sizes, x.dtype))
    return call.build.gather(operand, call.constant(places, "int32"), axis=axis)


@lowers("NonZero", "Unique", "NonMaxSuppression")
def data_dependent(call: NodeCall) -> Result:
    """Left to the host."""
    call.on_host("the shape of its result depends on elements")


@lowers("TopK", moves=True, ranks={0: SOME})
def top_k(call: NodeCall) -> Result:
    """The largest or smallest elements along an axis, and their indices."""
    x = call.tensor(0)
    axis = call.axis(call.attribute("axis", -1), x.rank)
    k = call.integer(1) if call.version >= 10 else call.required("k")
    if k < 0 or k > x.shape[axis]:
        call.fail(f"k = {k} of {x.shape[axis]} elements")
    if not k:
        sizes = (*x.shape[:axis], 0, *x.shape[axis + 1 :])
        return [OnnxTensor.known(np.zeros(sizes, x.dtype)), OnnxTensor.known(np.zeros(sizes, np.int64))]
    return call.build.ext.top_k(call.operand(0), k, axis=axis, largest=bool(call.attribute("largest", 1)))


@lowers("Range")
def range_(call: NodeCall) -> Result:
    """Numbers at equal distances."""
    given = [call.value(i) for i in range(3)]
    if host.expected_size(call.node, given) > host.MOST_FOLDED:
        call.fail("too many numbers")
    return OnnxTensor.known(host.evaluate(call.node, given, call.version)[0])


@lowers("TensorScatter", moves=True)
def tensor_scatter(call: NodeCall) -> Result:
    """A cache with new elements in place of old ones along an axis. Each batch has a start of its own."""
    past, update, build = call.operand(0), call.operand(1), call.build
    rank = len(past.shape)
    axis = call.axis(call.attribute("axis", -2), rank)
    if len(update.shape) != rank:
        call.fail(f"an update of rank {len(update.shape)} for a cache of rank {rank}")
    size, count = int(past.shape[axis]), int(update.shape[axis])
    shape = [1] * rank
    shape[axis] = size
    place = call.constant(np.arange(size).reshape(shape), "int64")
    if call.has(2):
        place = build.sub(place, call.reshape(call.operand(2), [past.shape[0], *[1] * (rank - 1)]))
    if call.attribute("mode", "linear") == "circular":
        place = build.ext.mod(place, call.like(size, place))
    new = build.logical_and(build.greater_or_equal(place, call.like(0, place)), build.lesser(place, call.like(count, place)))
    source = build.expand(build.clamp(place, min_value=0, max_value=count - 1), list(past.shape))
    return build.where(new, build.gather_elements(update, source, axis=axis), past)


@lowers("CenterCropPad", moves=True)
def center_crop_pad(call: NodeCall) -> Result:
    """The input cropped or padded with zeros to other sizes, evenly on both sides."""
    x = call.tensor(0)
    axes, sizes = call.axes(call.integers("axes") or range(x.rank), x.rank), call.ints(1) or []
    if len(axes) != len(sizes) or min(sizes, default=1) < 1:
        call.fail(f"sizes {sizes} for {len(axes)} axes")
    wanted = dict(zip(axes, sizes, strict=True))
    operand, begin, end = call.operand(0), [0] * x.rank, [0] * x.rank
    for axis, size in wanted.items():
        have = x.shape[axis]
        if size < have:
            operand = cut(call, operand, axis, (have - size) // 2, (have - size) // 2 + size)
        begin[axis] = max(size - have, 0) // 2
        end[axis] = max(size - have, 0) - begin[axis]
    return call.build.pad(operand, begin, end) if any(end) else operand
