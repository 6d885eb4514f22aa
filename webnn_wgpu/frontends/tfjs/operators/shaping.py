"""Operators that move, join, cut and repeat elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import HELD
from ..call import TfjsCall
from ..tensors import TfjsTensor
from ._registry import Result, lowers
from .elementwise import common_type


@lowers("Identity", "StopGradient", "Snapshot", "EnsureShape", "PlaceholderWithDefault", "Print", empty=True, folds=False)
def identity(call: TfjsCall) -> Result:
    """The first input."""
    return call.tensor(0)


@lowers("IdentityN", empty=True, folds=False)
def identity_n(call: TfjsCall) -> Result:
    """The inputs."""
    return list(call.inputs)


@lowers("NoOp", "Assert", "TensorArrayCloseV3", empty=True, folds=False)
def no_op(call: TfjsCall) -> Result:
    """Nothing."""
    return []


@lowers("Shape", empty=True, folds=False)
def shape(call: TfjsCall) -> Result:
    """The sizes of the input."""
    return call.known(np.array(call.tensor(0).shape, np.int32))


@lowers("ShapeN", empty=True, folds=False)
def shape_n(call: TfjsCall) -> Result:
    """The sizes of all inputs."""
    return [call.known(np.array(t.shape, np.int32)) for t in call.inputs]


@lowers("Rank", empty=True, folds=False)
def rank(call: TfjsCall) -> Result:
    """The number of dimensions."""
    return call.known(np.array(call.tensor(0).rank, np.int32))


@lowers("Size", empty=True, folds=False)
def size(call: TfjsCall) -> Result:
    """The number of elements."""
    return call.known(np.array(call.tensor(0).size, np.int32))


def reshaped(call: TfjsCall, tensor: TfjsTensor, sizes: Sequence[int]) -> TfjsTensor:
    """Return a tensor in another shape."""
    if math.prod(sizes) != tensor.size:
        call.fail(f"the shape {list(sizes)} for {tensor.size} elements")
    if tensor.array is not None:
        return TfjsTensor.known(tensor.array.reshape(tuple(sizes)))
    return replace(call.typed(call.reshape(call.hold(tensor), list(sizes)), tensor.dtype))


@lowers("Reshape", empty=True, folds=False)
def reshape(call: TfjsCall) -> Result:
    """Another shape of the same elements."""
    tensor, sizes = call.tensor(0), call.ints(1)
    known = math.prod(d for d in sizes if d != -1)
    if sizes.count(-1) > 1 or any(d < -1 for d in sizes) or (-1 in sizes and (not known or tensor.size % known)):
        call.fail(f"the shape {sizes} for {tensor.size} elements")
    return reshaped(call, tensor, [tensor.size // known if d == -1 else d for d in sizes])


@lowers("ExpandDims", empty=True, folds=False)
def expand_dims(call: TfjsCall) -> Result:
    """A dimension more, of size 1."""
    sizes = list(call.tensor(0).shape)
    sizes.insert(call.axis(int(call.number(1)), len(sizes) + 1), 1)
    return reshaped(call, call.tensor(0), sizes)


@lowers("Squeeze", empty=True, folds=False)
def squeeze(call: TfjsCall) -> Result:
    """Without dimensions of size 1."""
    sizes = call.tensor(0).shape
    axes = call.axes(call.integers("squeeze_dims") or call.integers("axis"), len(sizes))
    axes = axes or [i for i, d in enumerate(sizes) if d == 1]
    if any(sizes[axis] != 1 for axis in axes):
        call.fail(f"dimensions {axes} of {list(sizes)}, which are not 1")
    return reshaped(call, call.tensor(0), [d for i, d in enumerate(sizes) if i not in axes])


@lowers("Transpose")
def transpose(call: TfjsCall) -> Result:
    """The dimensions in another order."""
    order = call.axes(call.ints(1), call.tensor(0).rank)
    if sorted(order) != list(range(call.tensor(0).rank)):
        call.fail(f"the order {order}")
    return call.transpose(call.operand(0), order)


@lowers("BroadcastTo")
def broadcast_to(call: TfjsCall) -> Result:
    """Copies along dimensions of size 1."""
    return call.build.expand(call.operand(0), call.sizes(1))


@lowers("BroadcastArgs", empty=True)
def broadcast_args(call: TfjsCall) -> Result:
    """The sizes that two shapes have in common."""
    first, second = call.sizes(0), call.sizes(1)
    return call.known(np.array(np.broadcast_shapes(tuple(first), tuple(second)), np.int32))


def _same_types(call: TfjsCall, tensors: Sequence[TfjsTensor]) -> list[MLOperand]:
    dtype = common_type(*(t.dtype for t in tensors))
    return [call.cast(call.hold(t), HELD[dtype]) for t in tensors]


@lowers("ConcatV2", "Concat", empty=True)
def concat(call: TfjsCall) -> Result:
    """The inputs one behind the other."""
    at = 0 if call.node.op == "Concat" else len(call.inputs) - 1
    tensors = [t for i, t in enumerate(call.inputs) if i != at]
    axis = call.axis(int(call.number(at)), tensors[0].rank)
    full = [t for t in tensors if t.size]
    if not full:
        return call.known(np.concatenate([np.zeros(t.shape, t.dtype) for t in tensors], axis))
    return full[0] if len(full) == 1 else call.build.concat(_same_types(call, full), axis)


@lowers("Pack", empty=True)
def pack(call: TfjsCall) -> Result:
    """The inputs along a new dimension."""
    axis = call.axis(call.integer("axis"), call.tensor(0).rank + 1)
    if not call.tensor(0).size:
        return call.known(np.stack([np.zeros(t.shape, t.dtype) for t in call.inputs], axis))
    wide = [[*o.shape[:axis], 1, *o.shape[axis:]] for o in (call.operand(i) for i in range(len(call.inputs)))]
    operands = [call.reshape(o, sizes) for o, sizes in zip(_same_types(call, call.inputs), wide, strict=True)]
    return call.build.concat(operands, axis) if len(operands) > 1 else operands[0]


@lowers("Unpack")
def unpack(call: TfjsCall) -> Result:
    """The slices along a dimension."""
    x = call.operand(0)
    axis = call.axis(call.integer("axis"), len(x.shape))
    rest = [*x.shape[:axis], *x.shape[axis + 1 :]]
    return [call.reshape(part, rest) for part in call.build.split(x, x.shape[axis], axis=axis)]


@lowers("Split")
def split(call: TfjsCall) -> Result:
    """Parts of equal size."""
    x = call.operand(1)
    axis, count = call.axis(int(call.number(0)), len(x.shape)), call.integer("num_split", 1)
    if count < 1 or x.shape[axis] % count:
        call.fail(f"{count} parts of {x.shape[axis]}")
    return call.build.split(x, count, axis=axis)


@lowers("SplitV", empty=True)
def split_v(call: TfjsCall) -> Result:
    """Parts of given sizes."""
    x, sizes = call.tensor(0), call.ints(1)
    axis = call.axis(int(call.number(2)), x.rank)
    left = x.shape[axis] - sum(s for s in sizes if s >= 0)
    sizes = [left if s == -1 else s for s in sizes]
    if min(sizes, default=0) < 0 or sum(sizes) != x.shape[axis]:
        call.fail(f"parts of {sizes} of {x.shape[axis]}")
    at, parts = 0, list[TfjsTensor]()
    for part in sizes:
        starts = [at if d == axis else 0 for d in range(x.rank)]
        parts.append(sliced(call, x, starts, [part if d == axis else s for d, s in enumerate(x.shape)]))
        at += part
    return parts


def sliced(
    call: TfjsCall, tensor: TfjsTensor, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int] | None = None
) -> TfjsTensor:
    """Return a part of a tensor, from starts, of sizes before strides."""
    if any(a < 0 or n < 0 or a + n > d for a, n, d in zip(starts, sizes, tensor.shape, strict=True)):
        call.fail(f"a part of {list(sizes)} from {list(starts)} of {list(tensor.shape)}")
    if tensor.array is not None:
        steps = strides or [1] * tensor.rank
        part = tensor.array[tuple(slice(a, a + n, s) for a, n, s in zip(starts, sizes, steps, strict=True))]
        return TfjsTensor.known(np.ascontiguousarray(part).reshape(part.shape))
    if 0 in sizes:
        return TfjsTensor.known(np.zeros(tuple(sizes), tensor.dtype))
    return call.typed(call.build.slice(call.hold(tensor), list(starts), list(sizes), strides=strides), tensor.dtype)


@lowers("Slice", empty=True, folds=False)
def slice_(call: TfjsCall) -> Result:
    """A part of a tensor."""
    tensor = call.tensor(0)
    sizes = call.ints(2)
    if call.tensor(1).array is None and tensor.rank == len(sizes) and tensor.rank and -1 not in sizes:
        starts = call.lowering.tensor(call.node.inputs[1])
        if starts.shape == (tensor.rank,):
            return _moving(call, tensor, sizes)
    starts = call.ints(1)
    if not len(starts) == len(sizes) == tensor.rank:
        call.fail(f"a part of {sizes} from {starts} of {list(tensor.shape)}")
    sizes = [d - a if n == -1 else n for a, n, d in zip(starts, sizes, tensor.shape, strict=True)]
    return sliced(call, tensor, starts, sizes)


def _moving(call: TfjsCall, tensor: TfjsTensor, sizes: Sequence[int]) -> MLOperand:
    """Return a part whose beginning the device computes: its elements are gathered along each dimension."""
    x, starts = call.hold(tensor), call.cast(call.operand(1), "int32")
    for axis, (count, whole) in enumerate(zip(sizes, tensor.shape, strict=True)):
        if count == whole:
            continue
        if not 0 < count < whole:
            call.fail(f"a part of {list(sizes)} of {list(tensor.shape)}")
        start = call.build.slice(starts, [axis], [1])
        lanes = call.constant(np.arange(count, dtype=np.int32), "int32")
        x = call.build.gather(x, call.build.add(lanes, start), axis=axis)
    return x


@lowers("StridedSlice", empty=True, folds=False)
def strided_slice(call: TfjsCall) -> Result:
    """A part of a tensor, as Python's slices have them."""
    tensor = call.tensor(0)
    begin, end, strides = call.ints(1), call.ints(2), call.ints(3)
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        call.fail(f"bounds {begin} and {end} with strides {strides}")
    masks = {m: call.integer(f"{m}_mask") for m in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    index: list[slice | int | None] = []
    whole = tensor.rank - sum(1 for i in range(len(begin)) if not (masks["new_axis"] | masks["ellipsis"]) >> i & 1)
    for i, (a, z, s) in enumerate(zip(begin, end, strides, strict=True)):
        if masks["ellipsis"] >> i & 1:
            index += [slice(None)] * max(whole, 0)
        elif masks["new_axis"] >> i & 1:
            index.append(None)
        elif masks["shrink_axis"] >> i & 1:
            index.append(a)
        else:
            index.append(slice(None if masks["begin"] >> i & 1 else a, None if masks["end"] >> i & 1 else z, s))
    used = sum(1 for part in index if part is not None)
    if used > tensor.rank:
        call.fail(f"{used} bounds for {tensor.rank} dimensions")
    index += [slice(None)] * (tensor.rank - used)
    return _indexed(call, tensor, index)


def _indexed(call: TfjsCall, tensor: TfjsTensor, index: Sequence[slice | int | None]) -> TfjsTensor:
    starts: list[int] = []
    sizes: list[int] = []
    strides: list[int] = []
    shape: list[int] = []
    backwards: list[int] = []
    axis = 0
    for part in index:
        if part is None:
            shape.append(1)
            continue
        whole = tensor.shape[axis]
        if isinstance(part, int):
            at = part + whole if part < 0 else part
            if not 0 <= at < whole:
                call.fail(f"element {part} of {whole}")
            places = range(at, at + 1)
        else:
            places = range(*part.indices(whole))
            shape.append(len(places))
        if places.step < 0 and places:
            backwards.append(axis)
            places = places[::-1]
        starts.append(places.start if len(places) else 0)
        sizes.append(places[-1] - places.start + 1 if len(places) else 0)
        strides.append(abs(places.step) if len(places) else 1)
        axis += 1
    found = sliced(call, tensor, starts, sizes, strides if set(strides) - {1} else None)
    if backwards and found.size:
        if found.array is not None:
            found = TfjsTensor.known(np.ascontiguousarray(np.flip(found.array, tuple(backwards))))
        else:
            found = call.typed(call.build.reverse(call.hold(found), axes=backwards), found.dtype)
    return reshaped(call, found, shape)


@lowers("Tile", empty=True)
def tile(call: TfjsCall) -> Result:
    """Copies one behind the other."""
    tensor, counts = call.tensor(0), call.sizes(1)
    if len(counts) != tensor.rank:
        call.fail(f"{counts} copies of {tensor.rank} dimensions")
    if not tensor.size or 0 in counts:
        return call.known(np.zeros(tuple(d * n for d, n in zip(tensor.shape, counts, strict=True)), tensor.dtype))
    return call.build.tile(call.operand(0), counts) if counts else tensor


@lowers("Reverse", "ReverseV2")
def reverse(call: TfjsCall) -> Result:
    """Elements in the opposite order."""
    values = call.ints(1)
    axes = [i for i, on in enumerate(values) if on] if call.node.op == "Reverse" else call.axes(values, call.tensor(0).rank)
    return call.build.reverse(call.operand(0), axes=axes) if axes else call.tensor(0)


def paddings(call: TfjsCall, index: int) -> list[tuple[int, int]]:
    """Return pairs of numbers of elements, from an input [n, 2]."""
    array = call.value(index)
    if array.ndim != 2 or array.shape[1] != 2 or (array.size and (array.min() < 0 or array.max() > 1 << 24)):
        call.fail(f"paddings {array.tolist()}")
    return [(int(a), int(b)) for a, b in array]


@lowers("Pad", "PadV2", "MirrorPad")
def pad(call: TfjsCall) -> Result:
    """More elements on the sides."""
    pairs = paddings(call, 1)
    tensor = call.tensor(0)
    if len(pairs) != tensor.rank:
        call.fail(f"{len(pairs)} paddings of {tensor.rank} dimensions")
    if not any(map(any, pairs)):
        return tensor
    before, after = [a for a, _ in pairs], [b for _, b in pairs]
    x = call.operand(0)
    if call.node.op == "MirrorPad":
        reflects = call.text("mode", "REFLECT").upper() == "REFLECT"
        return call.build.pad(x, before, after, mode="reflection" if reflects else "symmetric")
    value = float(call.number(2)) if call.node.op == "PadV2" else 0.0
    return call.build.pad(x, before, after, value=value)


@lowers("SpaceToBatchND")
def space_to_batch(call: TfjsCall) -> Result:
    """Blocks of places become batches."""
    x, blocks, pairs = call.operand(0), call.sizes(1), paddings(call, 2)
    if len(blocks) != len(pairs) or len(blocks) + 1 > len(x.shape) or 0 in blocks:
        call.fail(f"blocks {blocks} with paddings {pairs}")
    rest = len(x.shape) - 1 - len(blocks)
    if any(map(any, pairs)):
        x = call.build.pad(x, [0, *(a for a, _ in pairs), *[0] * rest], [0, *(b for _, b in pairs), *[0] * rest])
    sizes = x.shape[1 : 1 + len(blocks)]
    if any(d % n for d, n in zip(sizes, blocks, strict=True)):
        call.fail(f"blocks {blocks} of {list(sizes)}")
    split_ = [v for d, n in zip(sizes, blocks, strict=True) for v in (d // n, n)]
    y = call.reshape(x, [x.shape[0], *split_, *x.shape[1 + len(blocks) :]])
    inner = [2 + 2 * i for i in range(len(blocks))]
    outer = [1 + 2 * i for i in range(len(blocks))]
    y = call.transpose(y, [*inner, 0, *outer, *range(1 + 2 * len(blocks), len(y.shape))])
    moved = [d // n for d, n in zip(sizes, blocks, strict=True)]
    return call.reshape(y, [x.shape[0] * math.prod(blocks), *moved, *x.shape[1 + len(blocks) :]])


@lowers("BatchToSpaceND")
def batch_to_space(call: TfjsCall) -> Result:
    """Batches become blocks of places."""
    x, blocks, crops = call.operand(0), call.sizes(1), paddings(call, 2)
    count = math.prod(blocks)
    if len(blocks) != len(crops) or len(blocks) + 1 > len(x.shape) or not count or x.shape[0] % count:
        call.fail(f"blocks {blocks} with crops {crops}")
    n, sizes = x.shape[0] // count, x.shape[1 : 1 + len(blocks)]
    y = call.reshape(x, [*blocks, n, *x.shape[1:]])
    k = len(blocks)
    order = [v for i in range(k) for v in (k + 1 + i, i)]
    y = call.transpose(y, [k, *order, *range(2 * k + 1, len(y.shape))])
    wide = [d * b for d, b in zip(sizes, blocks, strict=True)]
    y = call.reshape(y, [n, *wide, *x.shape[1 + k :]])
    starts = [0, *(a for a, _ in crops), *[0] * (len(y.shape) - 1 - k)]
    left = [n, *(d - a - b for d, (a, b) in zip(wide, crops, strict=True)), *y.shape[1 + k :]]
    return sliced(call, call.typed(y, call.tensor(0).dtype), starts, left)


@lowers("DepthToSpace")
def depth_to_space(call: TfjsCall) -> Result:
    """Channels become blocks of places."""
    x, block = call.operand(0), call.integer("block_size")
    first = call.text("data_format", "NHWC") == "NCHW"
    x = call.transpose(x, [0, 2, 3, 1]) if first else x
    if len(x.shape) != 4 or block < 1 or x.shape[3] % block**2:
        call.fail(f"blocks of {block} for {list(x.shape)}")
    n, h, w, c = x.shape
    y = call.reshape(x, [n, h, w, block, block, c // block**2])
    y = call.reshape(call.transpose(y, [0, 1, 3, 2, 4, 5]), [n, h * block, w * block, c // block**2])
    return call.transpose(y, [0, 3, 1, 2]) if first else y
