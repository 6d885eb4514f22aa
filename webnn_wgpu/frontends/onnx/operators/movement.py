"""Operators that move elements: reshaping, slicing, joining, repeating, padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..tensors import OnnxTensor
from ._registry import SOME, Result, lowers


@lowers("Reshape", empty=True, moves=True)
def reshape(call: NodeCall) -> Result:
    """The input in another shape. 0 keeps a size, and -1 follows from the other sizes."""
    x = call.tensor(0)
    sizes = (call.ints(1) if call.version >= 5 else call.integers("shape")) or []
    if not call.attribute("allowzero", 0):
        sizes = [x.shape[i] if s == 0 and i < x.rank else s for i, s in enumerate(sizes)]
    if -1 in sizes:
        rest = int(np.prod([s for s in sizes if s != -1], dtype=np.int64))
        if rest == 0 or x.size % rest:
            call.fail(f"{x.shape} cannot take the shape {tuple(sizes)}")
        sizes[sizes.index(-1)] = x.size // rest
    if not x.size:
        return OnnxTensor.known(np.zeros(sizes, x.dtype))
    return call.reshape(call.operand(0), sizes)


@lowers("Squeeze", moves=True)
def squeeze(call: NodeCall) -> Result:
    """The input without dimensions of size 1."""
    x = call.tensor(0)
    axes = call.ints(1, "axes")
    dropped = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else call.axes(axes, x.rank)
    return call.reshape(call.operand(0), [d for i, d in enumerate(x.shape) if i not in dropped])


@lowers("Unsqueeze", moves=True)
def unsqueeze(call: NodeCall) -> Result:
    """The input with additional dimensions of size 1."""
    x = call.tensor(0)
    axes = call.ints(1, "axes") or []
    sizes = iter(x.shape)
    rank = x.rank + len(axes)
    added = call.axes(axes, rank)
    if len(set(added)) != len(added):
        call.fail(f"axes {axes} name a dimension twice")
    return call.reshape(call.operand(0), [1 if i in added else next(sizes) for i in range(rank)])


@lowers("Flatten", moves=True)
def flatten(call: NodeCall) -> Result:
    """The input as a matrix."""
    x = call.tensor(0)
    axis = call.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return call.reshape(call.operand(0), [int(np.prod(x.shape[:axis], dtype=int)), int(np.prod(x.shape[axis:], dtype=int))])


@lowers("Transpose", moves=True)
def transpose(call: NodeCall) -> Result:
    """The input with its dimensions in another order."""
    return call.transpose(call.operand(0), call.attribute("perm") or list(reversed(range(call.tensor(0).rank))))


@lowers("Expand", moves=True)
def expand(call: NodeCall) -> Result:
    """The input repeated along dimensions of size 1, in both directions as in numpy."""
    x = call.tensor(0)
    sizes = broadcast(call, x.shape, call.ints(1) or [])
    if 0 in sizes:
        return OnnxTensor.known(np.zeros(sizes, x.dtype))
    return call.operand(0) if sizes == x.shape else call.build.expand(call.operand(0), list(sizes))


def broadcast(call: NodeCall, first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that two shapes broadcast to."""
    try:
        return np.broadcast_shapes(tuple(first), tuple(second))
    except ValueError:
        call.fail(f"shapes {tuple(first)} and {tuple(second)} do not broadcast")


@lowers("Tile", moves=True)
def tile(call: NodeCall) -> Result:
    """The whole input, repeated along each dimension."""
    x = call.tensor(0)
    repetitions = call.ints(1) or []
    if len(repetitions) != x.rank:
        call.fail(f"{len(repetitions)} repetitions for rank {x.rank}")
    if 0 in repetitions:
        return OnnxTensor.known(np.zeros([d * r for d, r in zip(x.shape, repetitions, strict=True)], x.dtype))
    return call.build.tile(call.operand(0), repetitions) if repetitions else call.operand(0)


@lowers("Concat", empty=True, moves=True, ranks={0: SOME})
def concat(call: NodeCall) -> Result:
    """The inputs concatenated along an axis. Inputs without elements are left out."""
    tensors = [call.tensor(i) for i in range(len(call))]
    axis = call.axis(call.attribute("axis", 1), tensors[0].rank)
    parts = [t for t in tensors if t.size]
    if any(t.rank != tensors[0].rank for t in tensors):
        call.fail(f"inputs of ranks {', '.join(str(t.rank) for t in tensors)}")
    if not parts:
        sizes = list(tensors[0].shape)
        sizes[axis] = sum(t.shape[axis] for t in tensors)
        return OnnxTensor.known(np.zeros(sizes, tensors[0].dtype))
    if len(parts) == 2 and call.position(0) is not None:
        return call.joined(0, call.operand(1), axis)
    return parts[0] if len(parts) == 1 else call.build.concat([call.hold(t) for t in parts], axis)


@lowers("Split", moves=True, ranks={0: SOME})
def split(call: NodeCall) -> Result:
    """The input split along an axis. Parts may have no elements."""
    x = call.tensor(0)
    axis = call.axis(call.attribute("axis", 0), x.rank)
    splits = call.ints(1, "split")
    if splits is None:
        count = len(call.node.outputs)
        if call.attribute("num_outputs", count) != count:
            call.fail(f"num_outputs is {call.attribute('num_outputs')}, but it has {count} outputs")
        each = -(-x.shape[axis] // count)
        splits = [max(0, min(each, x.shape[axis] - i * each)) for i in range(count)]
    if not splits or sum(splits) != x.shape[axis] or min(splits) < 0:
        call.fail(f"the parts {splits} do not add up to {x.shape[axis]}")
    pieces = iter(call.build.split(call.operand(0), [s for s in splits if s], axis=axis))
    empty = np.zeros([*x.shape[:axis], 0, *x.shape[axis + 1 :]], x.dtype)
    return [next(pieces) if s else OnnxTensor.known(empty) for s in splits]


@lowers("Slice", moves=True)
def slice_(call: NodeCall) -> Result:
    """A part of each dimension, with steps of either sign."""
    x = call.tensor(0)
    starts, ends = call.ints(1, "starts") or [], call.ints(2, "ends") or []
    axes = call.axes(call.ints(3, "axes") or range(len(starts)), x.rank)
    steps = call.ints(4) or [1] * len(starts)
    if not len(axes) == len(starts) == len(ends) == len(steps):
        call.fail(f"{len(starts)} starts, {len(ends)} ends, {len(steps)} steps for {len(axes)} axes")
    ranges = [range(d) for d in x.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not step:
            call.fail("a step is 0")
        size = x.shape[axis]
        # Clamped as ONNX specifies it: ends of INT_MIN and INT_MAX mean "to the border".
        low, high = (0, size) if step > 0 else (-1, size - 1)
        first = min(max(start + size if start < 0 else start, 0), high)
        last = min(max(end + size if end < 0 else end, low), high if step > 0 else size)
        ranges[axis] = range(first, last, step)
    sizes = [len(r) for r in ranges]
    if 0 in sizes:
        return OnnxTensor.known(np.zeros(sizes, x.dtype))
    backward = [i for i, r in enumerate(ranges) if r.step < 0 and len(r) > 1]
    operand = call.operand(0)
    forward = [r[::-1] if i in backward else r for i, r in enumerate(ranges)]
    if any(len(r) != d for r, d in zip(forward, x.shape, strict=True)):
        spans = [r[-1] - r[0] + 1 for r in forward]
        operand = call.build.slice(
            operand, [r[0] for r in forward], spans, strides=[abs(r.step) if len(r) > 1 else 1 for r in forward]
        )
    return call.build.reverse(operand, axes=backward) if backward else operand


@lowers("Trilu", moves=True)
def trilu(call: NodeCall) -> Result:
    """The upper or lower triangle of the last two dimensions."""
    diagonal = max(-(2**31), min(call.integer(1, 0), 2**31 - 1))
    return call.build.triangular(call.operand(0), upper=bool(call.attribute("upper", 1)), diagonal=diagonal)


@lowers("DepthToSpace", moves=True, ranks={0: (4,)})
def depth_to_space(call: NodeCall) -> Result:
    """Blocks of channels become blocks of pixels."""
    n, c, h, w = call.tensor(0).shape
    b = call.required("blocksize")
    if call.attribute("mode", "DCR") == "DCR":
        sizes, order = [n, b, b, c // (b * b), h, w], [0, 3, 4, 1, 5, 2]
    else:
        sizes, order = [n, c // (b * b), b, b, h, w], [0, 1, 4, 2, 5, 3]
    moved = call.transpose(call.reshape(call.operand(0), sizes), order)
    return call.reshape(moved, [n, c // (b * b), h * b, w * b])


@lowers("SpaceToDepth", moves=True, ranks={0: (4,)})
def space_to_depth(call: NodeCall) -> Result:
    """Blocks of pixels become blocks of channels."""
    n, c, h, w = call.tensor(0).shape
    b = call.required("blocksize")
    order = [0, 3, 5, 1, 2, 4] if call.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    moved = call.transpose(call.reshape(call.operand(0), [n, c, h // b, b, w // b, b]), order)
    return call.reshape(moved, [n, c * b * b, h // b, w // b])


def cut(call: NodeCall, operand: MLOperand, axis: int, start: int, stop: int) -> MLOperand:
    """Return a range of one dimension."""
    shape = list(operand.shape)
    if (start, stop) == (0, shape[axis]):
        return operand
    starts = [0] * len(shape)
    starts[axis], shape[axis] = start, stop - start
    return call.build.slice(operand, starts, shape)


@lowers("Pad", moves=True)
def pad(call: NodeCall) -> Result:
    """The input padded, or cropped where the padding is negative. The mode "wrap" wraps around."""
    x = call.tensor(0)
    pads = call.ints(1, "pads") or []
    axes = call.axes(call.ints(3) or range(x.rank), x.rank)
    mode = call.attribute("mode", "constant")
    if len(pads) != 2 * len(axes):
        call.fail(f"{len(pads)} pads for {len(axes)} axes")
    begin, end = [0] * x.rank, [0] * x.rank
    for i, axis in enumerate(axes):
        begin[axis], end[axis] = pads[i], pads[i + len(axes)]
    value = call.number(2, 0) if call.version >= 11 else call.attribute("value", 0.0)
    operand = call.operand(0)
    for axis in range(x.rank):
        low, high = max(0, -begin[axis]), x.shape[axis] - max(0, -end[axis])
        if high <= low and (low or high < x.shape[axis]):
            call.on_host("negative padding leaves no elements")
        operand = cut(call, operand, axis, low, high)
    begin, end = [max(b, 0) for b in begin], [max(e, 0) for e in end]
    if not any((*begin, *end)):
        return operand
    if mode == "wrap":
        for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
            size = int(operand.shape[axis])
            positions = np.arange(-before, size + after) % size
            if before or after:
                operand = call.build.gather(operand, call.constant(positions, "int32"), axis=axis)
        return operand
    if mode == "reflect":
        # One reflection adds at most size - 1 elements. Longer padding takes several reflections.
        for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
            size = int(operand.shape[axis])
            if before < size and after < size:
                continue
            period = max(2 * size - 2, 1)
            positions = np.abs((np.arange(-before, size + after) + size - 1) % period - (size - 1)) if size > 1 else None
            indices = np.zeros(before + size + after) if positions is None else positions
            operand = call.build.gather(operand, call.constant(indices, "int32"), axis=axis)
            begin[axis] = end[axis] = 0
        return call.build.pad(operand, begin, end, mode="reflection") if any((*begin, *end)) else operand
    if mode not in ("constant", "edge"):
        call.fail(f"mode '{mode}' is not one of constant, reflect, edge, wrap")
    return call.build.pad(operand, begin, end, mode=mode, value=value)
