"""Operators that arrange elements: shapes, order, parts and joints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import held_shape
from ..call import TfliteCall
from ..tensors import TfliteTensor
from ._registry import Result, lowers


def _settled(call: TfliteCall, shape: Sequence[int], size: int) -> list[int]:
    """Return a shape with a size for -1."""
    found = list(shape)
    if found.count(-1) > 1 or any(d < -1 for d in found):
        call.fail(f"the shape {found} has more than one open size")
    if -1 in found:
        rest = math.prod(d for d in found if d != -1)
        found[found.index(-1)] = size // rest if rest else 0
    if math.prod(found) != size:
        call.fail(f"{size} elements do not fit the shape {found}")
    return found


def reshaped(call: TfliteCall, shape: Sequence[int]) -> Result:
    """Return input 0 in a shape, rescaled if the output has another scale."""
    tensor = call.tensor(0)
    if tensor.array is not None and call.same(0):
        return TfliteTensor.known(tensor.array.reshape(shape))
    if tensor.operand is None and tensor.feed is not None and tuple(shape) == tensor.shape and call.same(0):
        return TfliteTensor(shape=tensor.shape, dtype=tensor.dtype, feed=tensor.feed)
    return call.bare(call.reshape(call.moved(0), held_shape(tuple(shape), tensor.dtype)))


@lowers(RESHAPE=1, empty=True)
def reshape(call: TfliteCall) -> Result:
    """The shape is input 1, else an option. One size may be -1."""
    if call.has(1) and call.tensor(1).rank <= 1:
        shape = call.ints(1)
    else:
        shape = [int(d) for d in call.option("NewShape", [])]
    size = call.tensor(0).size
    if shape == [0] and size == 1:
        # Files of old converters state the shape of a scalar so.
        shape = []
    return reshaped(call, _settled(call, shape, size))


@lowers(SQUEEZE=2, empty=True)
def squeeze(call: TfliteCall) -> Result:
    """The shape without sizes of 1: all of them, or those of some dimensions."""
    shape = call.shape(0)
    axes = call.axes([int(a) for a in call.option("SqueezeDims", [])], len(shape))
    if any(shape[a] != 1 for a in axes):
        call.fail(f"dimensions {axes} of {list(shape)} must have size 1")
    dropped = axes or [i for i, d in enumerate(shape) if d == 1]
    return reshaped(call, [d for i, d in enumerate(shape) if i not in dropped])


@lowers(EXPAND_DIMS=1, empty=True)
def expand_dims(call: TfliteCall) -> Result:
    """The shape with a size of 1 before a dimension."""
    shape = list(call.shape(0))
    axis = call.axis(call.integer(1), len(shape) + 1)
    return reshaped(call, [*shape[:axis], 1, *shape[axis:]])


@lowers(DENSIFY=1, folds=False)
def densify(call: TfliteCall) -> Result:
    """Sparse constants have all their elements when the file is read."""
    return reshaped(call, call.shape(0))


@lowers(TRANSPOSE=9)
def transpose(call: TfliteCall) -> Result:
    """The dimensions in another order."""
    order = call.axes(call.ints(1), call.tensor(0).rank)
    if sorted(order) != list(range(call.tensor(0).rank)):
        call.fail(f"{order} is no order of {call.tensor(0).rank} dimensions")
    x = call.moved(0)
    order = [*order, *range(len(order), len(x.shape))]  # a complex number stays a pair
    return call.bare(call.transpose(x, order) if order != sorted(order) else call.build.identity(x))


@lowers(CONCATENATION=7, empty=True, note="quantized: inputs of another scale are rescaled")
def concatenation(call: TfliteCall) -> Result:
    """Tensors one behind the other."""
    present = [i for i in range(len(call)) if call.tensor(i).size]
    rank = call.tensor(0).rank
    axis = call.axis(int(call.option("Axis")), rank)
    if not present:
        shape = list(call.shape(0))
        shape[axis] = sum(call.shape(i)[axis] for i in range(len(call)))
        return TfliteTensor.known(np.zeros(shape, call.tensor(0).dtype))
    parts = [call.moved(i) for i in present]
    return call.bare(call.activated(call.build.concat(parts, axis)))


@lowers(PACK=5)
def pack(call: TfliteCall) -> Result:
    """Tensors of one shape along a new dimension."""
    rank = call.tensor(0).rank
    axis = call.axis(int(call.option("Axis")), rank + 1)
    shape = list(call.shape(0))
    shape.insert(axis, 1)
    held = held_shape(tuple(shape), call.tensor(0).dtype)
    return call.bare(call.build.concat([call.reshape(call.moved(i), held) for i in range(len(call))], axis))


@lowers(UNPACK=6)
def unpack(call: TfliteCall) -> Result:
    """The slices along a dimension, each without this dimension."""
    shape = list(call.shape(0))
    axis = call.axis(int(call.option("Axis")), len(shape))
    if shape[axis] != len(call.outputs):
        call.fail(f"dimension {axis} of {shape} has not {len(call.outputs)} slices")
    rest = [d for i, d in enumerate(shape) if i != axis]
    parts = call.build.split(call.moved(0), shape[axis], axis=axis)
    return [call.bare(call.reshape(p, rest), i) for i, p in enumerate(parts)]


@lowers(SPLIT=5, SPLIT_V=3)
def split(call: TfliteCall) -> Result:
    """Parts along a dimension: of one size, or of given sizes."""
    equal = call.node.record.name == "SPLIT"
    data, axis_index = (1, 0) if equal else (0, 2)
    shape = call.shape(data)
    axis = call.axis(call.integer(axis_index), len(shape))
    count = len(call.outputs)
    if equal:
        if shape[axis] % count:
            call.fail(f"dimension {axis} of {list(shape)} has no {count} equal parts")
        sizes = [shape[axis] // count] * count
    else:
        sizes = _settled_sizes(call, call.ints(1), shape[axis])
    if len(sizes) != count or any(s <= 0 for s in sizes):
        call.fail(f"parts of the sizes {sizes} for {count} outputs")
    parts = call.build.split(call.moved(data), sizes, axis=axis)
    return [call.bare(p, i) for i, p in enumerate(parts)]


def _settled_sizes(call: TfliteCall, sizes: list[int], total: int) -> list[int]:
    if sizes.count(-1) > 1:
        call.fail(f"the sizes {sizes} are open")
    found = [total - sum(s for s in sizes if s != -1) if s == -1 else s for s in sizes]
    return found if sum(found) == total else call.fail(f"parts of the sizes {found} do not make {total}")


@lowers(TILE=3)
def tile(call: TfliteCall) -> Result:
    """Repetitions along each dimension."""
    times = call.ints(1)
    if any(t < 1 for t in times):
        call.fail(f"the repetitions {times} leave no elements")
    x = call.moved(0)
    return call.bare(call.build.tile(x, times) if times else call.build.identity(x))


@lowers(REVERSE_V2=4)
def reverse(call: TfliteCall) -> Result:
    """The elements along some dimensions in reverse."""
    return call.bare(call.build.reverse(call.moved(0), axes=call.axes(call.ints(1), call.tensor(0).rank)))


@lowers(SLICE=8)
def slice_(call: TfliteCall) -> Result:
    """A part from `begin` on. A size of -1 reaches to the end."""
    shape = call.shape(0)
    begin = call.ints(1)
    sizes = [d - b if s == -1 else s for d, b, s in zip(shape, begin, call.ints(2), strict=True)]
    if any(b < 0 or s < 0 or b + s > d for b, s, d in zip(begin, sizes, shape, strict=True)):
        call.fail(f"the part from {begin} of the sizes {sizes} is not within {list(shape)}")
    if 0 in sizes:
        return TfliteTensor.known(np.zeros(sizes, call.tensor(0).dtype))
    return call.bare(call.build.slice(call.moved(0), begin, sizes) if shape else call.build.identity(call.moved(0)))


@lowers(STRIDED_SLICE=8, empty=True)
def strided_slice(call: TfliteCall) -> Result:
    """A part as numpy's indexing makes it, with masks."""
    shape, tensor = call.shape(0), call.tensor(0)
    begin, end, strides = call.ints(1), call.ints(2), call.ints(3)
    masks = {name: int(call.option(f"{name}Mask")) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    offset = bool(call.option("Offset", False))
    index: list[slice | int | None] = []
    ellipsis = [i for i in range(len(begin)) if masks["Ellipsis"] >> i & 1]
    if len(ellipsis) > 1 or 0 in strides or not len(begin) == len(end) == len(strides):
        call.fail(f"begin {begin}, end {end} and strides {strides} make no part")
    new = sum(1 for i in range(len(begin)) if masks["NewAxis"] >> i & 1 and i not in ellipsis)
    for i, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
        if i in ellipsis:
            index += [slice(None)] * (len(shape) - (len(begin) - 1 - new))
        elif masks["NewAxis"] >> i & 1:
            index.append(None)
        elif masks["ShrinkAxis"] >> i & 1:
            index.append(first)
        else:
            stop = first + last if offset else last
            index.append(slice(None if masks["Begin"] >> i & 1 else first, None if masks["End"] >> i & 1 else stop, stride))
    consumed = sum(1 for entry in index if entry is not None)
    if consumed > len(shape):
        call.fail(f"{consumed} indices for {len(shape)} dimensions")
    index += [slice(None)] * (len(shape) - consumed)
    if tensor.array is not None and call.same(0):
        try:
            return TfliteTensor.known(np.array(tensor.array[tuple(index)]))
        except IndexError as error:
            call.fail(str(error))
    return _part(call, shape, index)


def _part(call: TfliteCall, shape: Sequence[int], index: Sequence[slice | int | None]) -> Result:
    """Return the part of input 0 that an index of numpy selects."""
    starts: list[int] = []
    sizes: list[int] = []
    strides: list[int] = []
    backward: list[int] = []
    final: list[int] = []
    axis = 0
    for entry in index:
        if entry is None:
            final.append(1)
            continue
        d = shape[axis]
        if isinstance(entry, int):
            if not -d <= entry < d:
                call.fail(f"index {entry} is out of range of {d}")
            places = range(entry % d, entry % d + 1)
        else:
            places = range(*entry.indices(d))
            final.append(len(places))
        if places:
            ascending = places if places.step > 0 else places[::-1]
            starts.append(ascending[0])
            strides.append(ascending.step if len(places) > 1 else 1)
            sizes.append(ascending[-1] - ascending[0] + 1)
            if places.step < 0 and len(places) > 1:
                backward.append(axis)
        axis += 1
    if 0 in final:
        return TfliteTensor.known(np.zeros(final, call.tensor(0).dtype))
    x = call.moved(0)
    if not shape:
        return call.bare(call.reshape(x, final) if final else call.build.identity(x))
    y = call.build.slice(x, starts, sizes, strides=strides)
    if backward:
        y = call.build.reverse(y, axes=backward)
    return call.bare(call.reshape(y, final))


@lowers(BROADCAST_TO=4)
def broadcast_to(call: TfliteCall) -> Result:
    """The elements repeated along dimensions of size 1 and new ones."""
    return call.bare(call.build.expand(call.moved(0), call.ints(1)) if call.ints(1) else call.build.identity(call.moved(0)))


@lowers(FILL=5)
def fill(call: TfliteCall) -> Result:
    """One element in all places of a shape."""
    shape = call.ints(0)
    if 0 in shape:
        return TfliteTensor.known(np.zeros(shape, call.tensor(1).dtype))
    x = call.reshape(call.moved(1), [])
    return call.bare(call.build.expand(x, shape) if shape else call.build.identity(x))


@lowers(ZEROS_LIKE=1, empty=True)
def zeros_like(call: TfliteCall) -> Result:
    """Zeros in the shape of a tensor."""
    shape, dtype = call.shape(0), call.output().dtype
    assert dtype is not None
    if 0 in shape:
        return TfliteTensor.known(np.zeros(shape, dtype))
    zero = call.constant(0, call.held(dtype))
    return call.bare(call.build.expand(zero, list(shape)) if shape else call.build.identity(zero))


def _known(call: TfliteCall, values: object) -> TfliteTensor:
    dtype = call.output().dtype
    assert dtype is not None
    return TfliteTensor.known(np.asarray(values).astype(dtype))


@lowers(SHAPE=1, folds=False, empty=True, note="known when the graph is compiled")
def shape_(call: TfliteCall) -> Result:
    """The shape of a tensor."""
    return _known(call, call.shape(0))


@lowers(RANK=1, folds=False, empty=True, note="known when the graph is compiled")
def rank(call: TfliteCall) -> Result:
    """The number of dimensions."""
    return _known(call, call.tensor(0).rank)


MOST_COUNTED = 1 << 26
"""The maximum number of elements of a range."""


@lowers(RANGE=2, folds=False, note="known when the graph is compiled")
def range_(call: TfliteCall) -> Result:
    """Numbers from `start` to `limit` in steps of `delta`."""
    start, limit, delta = (call.value(i).reshape(-1)[0] for i in range(3))
    if not delta or not all(np.isfinite(v) for v in (start, limit, delta)):
        call.fail(f"a range from {start} to {limit} in steps of {delta}")
    count = max(0, math.ceil((float(limit) - float(start)) / float(delta)))
    if count > MOST_COUNTED:
        call.fail(f"a range of {count} elements; at most {MOST_COUNTED} are allowed")
    return _known(call, start + np.arange(count).astype(start.dtype) * delta)


@lowers(BROADCAST_ARGS=1, folds=False, empty=True, note="known when the graph is compiled")
def broadcast_args(call: TfliteCall) -> Result:
    """The shape that two shapes broadcast to."""
    try:
        return _known(call, np.broadcast_shapes(tuple(call.ints(0)), tuple(call.ints(1))))
    except ValueError as error:
        call.fail(str(error))


def zero_of(call: TfliteCall, index: int) -> int:
    """Return the integer that stands for 0 in an input."""
    quantization = call.tensor(index).quantization
    return quantization.zero_point if quantization is not None and call.tensor(index).is_quantized else 0


def padding_of(call: TfliteCall, index: int, rank: int) -> tuple[list[int], list[int]]:
    """Return the elements before and behind each dimension."""
    array = call.value(index)
    if array.shape != (rank, 2) or (array < 0).any():
        call.fail(f"the padding {array.tolist()} does not fit {rank} dimensions")
    return [int(v) for v in array[:, 0]], [int(v) for v in array[:, 1]]


@lowers(PAD=6, PADV2=6, note="quantized: with the zero point")
def pad(call: TfliteCall) -> Result:
    """The tensor with a border of one value, 0 by default."""
    before, after = padding_of(call, 1, call.tensor(0).rank)
    value = float(call.value(2).reshape(-1)[0]) if call.has(2) else zero_of(call, 0)
    if not any(before) and not any(after):
        return call.bare(call.build.identity(call.moved(0)))
    return call.bare(call.build.pad(call.operand(0), before, after, value=value))


@lowers(MIRROR_PAD=3)
def mirror_pad(call: TfliteCall) -> Result:
    """The tensor with a border of mirrored elements."""
    before, after = padding_of(call, 1, call.tensor(0).rank)
    mode = "symmetric" if int(call.option("Mode")) else "reflection"
    return call.bare(call.build.pad(call.operand(0), before, after, mode=mode))


@lowers(SPACE_TO_DEPTH=2, DEPTH_TO_SPACE=2, ranks={0: (4, 4)})
def space_and_depth(call: TfliteCall) -> Result:
    """Blocks of pixels as channels, and back."""
    n, h, w, c = call.shape(0)
    block, x = int(call.option("BlockSize")), call.moved(0)
    deepens = call.node.record.name == "SPACE_TO_DEPTH"
    if block < 1 or (h % block or w % block if deepens else c % (block * block)):
        call.fail(f"blocks of {block} do not fit {[n, h, w, c]}")
    if deepens:
        x = call.transpose(call.reshape(x, [n, h // block, block, w // block, block, c]), [0, 1, 3, 2, 4, 5])
        return call.bare(call.reshape(x, [n, h // block, w // block, c * block * block]))
    x = call.transpose(call.reshape(x, [n, h, w, block, block, c // block**2]), [0, 1, 3, 2, 4, 5])
    return call.bare(call.reshape(x, [n, h * block, w * block, c // block**2]))


@lowers(SPACE_TO_BATCH_ND=4, BATCH_TO_SPACE_ND=4)
def space_and_batch(call: TfliteCall) -> Result:
    """Blocks of space as batches, after padding, or back, before a crop."""
    blocks = call.ints(1)
    n, space, rest = call.shape(0)[0], list(call.shape(0)[1 : 1 + len(blocks)]), list(call.shape(0)[1 + len(blocks) :])
    m = len(blocks)
    before, after = padding_of(call, 2, m)
    x: MLOperand = call.moved(0)
    others = list(range(1 + 2 * m, 1 + 2 * m + len(rest)))
    if call.node.record.name == "SPACE_TO_BATCH_ND":
        space = [b + d + a for b, d, a in zip(before, space, after, strict=True)]
        if any(b < 1 or d % b for b, d in zip(blocks, space, strict=True)):
            call.fail(f"blocks of {blocks} do not fit the padded sizes {space}")
        if any(before) or any(after):
            zeros = [0] * len(rest)
            x = call.build.pad(x, [0, *before, *zeros], [0, *after, *zeros], value=zero_of(call, 0))
        pairs = [v for d, b in zip(space, blocks, strict=True) for v in (d // b, b)]
        x = call.reshape(x, [n, *pairs, *rest])
        x = call.transpose(x, [*range(2, 2 + 2 * m, 2), 0, *range(1, 1 + 2 * m, 2), *others])
        sizes = [n * math.prod(blocks), *(d // b for d, b in zip(space, blocks, strict=True)), *rest]
        return call.bare(call.reshape(x, sizes))
    if any(b < 1 for b in blocks) or n % math.prod(blocks):
        call.fail(f"{n} batches are no blocks of {blocks}")
    n //= math.prod(blocks)
    x = call.reshape(x, [*blocks, n, *space, *rest])
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, 2 * m + 1 + len(rest))]
    space = [d * b for d, b in zip(space, blocks, strict=True)]
    x = call.reshape(call.transpose(x, order), [n, *space, *rest])
    sizes = [d - b - a for d, b, a in zip(space, before, after, strict=True)]
    if any(s < 1 for s in sizes):
        call.fail(f"the crop leaves the sizes {sizes}")
    if sizes != space:
        x = call.build.slice(x, [0, *before, *(0 for _ in rest)], [n, *sizes, *rest])
    return call.bare(x)
