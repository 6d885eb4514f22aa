"""Convolutions of any number of dimensions, transposed convolutions and deformable convolutions.

WebNN's convolutions have two dimensions. A convolution of one dimension gets another of size 1. Each dimension beyond two is
folded into channels and images: its taps multiply the number of channels, and its positions multiply the number of images.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import MICROSOFT, Result, lowers
from ._windows import WindowAxis, extended, shared_padding, strides_of, tap, windows_of
from .activations import activated


def kernel_of(call: NodeCall, weight: Sequence[int]) -> list[int]:
    """Return a convolution's kernel from the shape of its weights. The attribute may repeat it."""
    kernel = list(weight[2:])
    if (call.integers("kernel_shape") or kernel) != kernel:
        call.fail(f"kernel_shape {call.integers('kernel_shape')} does not fit weights of shape {tuple(weight)}")
    return kernel


def check_channels(call: NodeCall, x: Sequence[int], weight: Sequence[int], groups: int) -> None:
    """Raise an error for shapes that are invalid for a convolution."""
    if len(x) < 3 or len(weight) != len(x):
        call.fail(f"input {tuple(x)} and weights {tuple(weight)} are no images and filters")
    if groups < 1 or x[1] != weight[1] * groups or weight[0] % groups:
        call.fail(f"input {tuple(x)} and weights {tuple(weight)} do not fit {groups} groups")


def convolution(
    call: NodeCall, x: MLOperand, w: MLOperand, bias: MLOperand | None, windows: Sequence[WindowAxis], groups: int
) -> MLOperand:
    """Return a convolution.

    Args:
        call: the node.
        x: input [N, C, sizes...].
        w: filters [O, C / groups, taps...].
        bias: [O].
        windows: one for each spatial dimension.
        groups: number of groups.
    """
    if len(windows) == 1:
        line = WindowAxis(taps=1, stride=1, dilation=1, begin=0, end=0)
        x, w = (call.reshape(o, [*o.shape[:2], 1, o.shape[2]]) for o in (x, w))
        y = convolution(call, x, w, bias, [line, *windows], groups)
        return call.reshape(y, [*y.shape[:2], y.shape[3]])
    if len(windows) > 2:
        first, *rest = windows
        count = first.count(int(x.shape[2]))
        folded = folded_taps(call, extended(call, x, 2, first.begin, first.end), first, count, range(first.taps))
        w = call.reshape(w, [w.shape[0], int(w.shape[1]) * first.taps, *w.shape[3:]])
        return unfolded(call, convolution(call, folded, w, bias, rest, groups), count)
    high, wide = windows
    sizes = [int(d) for d in x.shape[2:]]
    padding: list[int] = []
    for i, window in enumerate(windows):
        if window.count(sizes[i]) < 1:
            call.fail(f"a window of {window.span} does not fit into {sizes[i]} elements and their padding")
        if min(window.begin, window.end) < 0:
            x, padding = extended(call, x, 2 + i, window.begin, window.end), [*padding, 0, 0]
        else:
            padding = [*padding, window.begin, window.end]
    strides, dilations = [high.stride, wide.stride], [high.dilation, wide.dilation]
    return call.build.conv2d(x, w, bias=bias, padding=padding, strides=strides, dilations=dilations, groups=groups)


def folded_taps(call: NodeCall, x: MLOperand, window: WindowAxis, count: int, order: Sequence[int]) -> MLOperand:
    """Return the elements at the taps of `count` windows of a padded [N, C, D, ...].

    The result has the shape [N * count, C * taps, ...]. `order` is the order of the taps.
    """
    n, c, _, *rest = (int(d) for d in x.shape)
    parts = [call.reshape(tap(call, x, 2, window, t, count), [n, c, 1, count, *rest]) for t in order]
    joined = call.build.concat(parts, 2) if len(parts) > 1 else parts[0]
    moved = call.transpose(joined, [0, 3, 1, 2, *range(4, len(joined.shape))])
    return call.reshape(moved, [n * count, c * window.taps, *rest])


def unfolded(call: NodeCall, y: MLOperand, count: int) -> MLOperand:
    """Return [N, O, count, ...] of [N * count, O, ...]."""
    split = call.reshape(y, [int(y.shape[0]) // count, count, *y.shape[1:]])
    return call.transpose(split, [0, 2, 1, *range(3, len(split.shape))])


@lowers("Conv")
def conv(call: NodeCall) -> Result:
    """Convolution."""
    x, w, groups = call.tensor(0), call.tensor(1), call.attribute("group", 1)
    check_channels(call, x.shape, w.shape, groups)
    windows = windows_of(call, x.shape[2:], kernel_of(call, w.shape))
    return convolution(call, call.operand(0), call.operand(1), call.optional(2), windows, groups)


@lowers("FusedConv", domain=MICROSOFT)
def fused_conv(call: NodeCall) -> Result:
    """Convolution, plus another tensor, and an activation after it."""
    y = conv(call)
    assert isinstance(y, MLOperand)
    y = call.build.add(y, call.operand(3)) if call.has(3) else y
    return activated(call, y, call.attribute("activation_params", list[float]()))


# transposed -----------------------------------------------------------------------------------------------------------


def transposed(
    call: NodeCall, x: MLOperand, w: MLOperand, windows: Sequence[WindowAxis], sizes: Sequence[int], groups: int
) -> MLOperand:
    """Return a transposed convolution.

    Args:
        call: the node.
        x: input [N, C, sizes...].
        w: filters [C, O / groups, taps...].
        windows: one for each spatial dimension. Their padding is removed from the result.
        sizes: spatial sizes of the result.
        groups: number of groups.
    """
    if len(windows) == 1:
        line = WindowAxis(taps=1, stride=1, dilation=1, begin=0, end=0)
        x, w = (call.reshape(o, [*o.shape[:2], 1, o.shape[2]]) for o in (x, w))
        y = transposed(call, x, w, [line, *windows], [1, *sizes], groups)
        return call.reshape(y, [*y.shape[:2], y.shape[3]])
    if len(windows) > 2:
        # With zeros between its elements, the dimension is convolved with the taps in reverse order.
        first, *rest = windows
        n, c, d, *others = (int(s) for s in x.shape)
        if first.stride > 1:
            spread = extended(call, call.reshape(x, [n, c, d, 1, *others]), 3, 0, first.stride - 1)
            x = extended(call, call.reshape(spread, [n, c, d * first.stride, *others]), 2, 0, 1 - first.stride)
        before = first.span - 1 - first.begin
        x = extended(call, x, 2, before, sizes[0] + first.span - 1 - before - int(x.shape[2]))
        steps = WindowAxis(taps=first.taps, stride=1, dilation=first.dilation, begin=0, end=0)
        folded = folded_taps(call, x, steps, sizes[0], range(first.taps)[::-1])
        order = call.transpose(w, [0, 2, 1, *range(3, len(w.shape))])
        w = call.reshape(order, [int(w.shape[0]) * first.taps, w.shape[1], *w.shape[3:]])
        return unfolded(call, transposed(call, folded, w, rest, sizes[1:], groups), sizes[0])
    begins = [max(0, v.begin) for v in windows]
    # The elements that the result lacks, or has in excess, at its ends.
    full = [(int(s) - 1) * v.stride + v.span for s, v in zip(x.shape[2:], windows, strict=True)]
    ends = [max(0, f - b - s) for f, b, s in zip(full, begins, sizes, strict=True)]
    if any(b + e >= f for b, e, f in zip(begins, ends, full, strict=True)):
        begins, ends = [0, 0], [0, 0]
    y = call.build.conv_transpose2d(
        x,
        w,
        padding=[begins[0], ends[0], begins[1], ends[1]],
        strides=[v.stride for v in windows],
        dilations=[v.dilation for v in windows],
        groups=groups,
    )
    for i, window in enumerate(windows):
        before = begins[i] - window.begin
        y = extended(call, y, 2 + i, before, sizes[i] - before - int(y.shape[2 + i]))
    return y


@lowers("ConvTranspose", folds=False)
def conv_transpose(call: NodeCall) -> Result:
    """Transposed convolution: every element adds its product with the filter to the result around it."""
    x, w, groups = call.tensor(0), call.tensor(1), call.attribute("group", 1)
    if x.rank < 3 or w.rank != x.rank or groups < 1 or x.shape[1] != w.shape[0] or x.shape[1] % groups:
        call.fail(f"input {x.shape} and weights {w.shape} do not fit {groups} groups")
    count = x.rank - 2
    more, wanted = call.integers("output_padding") or [0] * count, call.integers("output_shape")
    if len(more) != count or (wanted and len(wanted) < count):
        call.fail(f"output_padding or output_shape do not fit {count} spatial dimensions")
    automatic = call.attribute("auto_pad", "NOTSET")
    strides, dilations, pads = strides_of(call, count)
    windows: list[WindowAxis] = []
    sizes: list[int] = []
    for i, taps in enumerate(kernel_of(call, w.shape)):
        window = WindowAxis(taps=taps, stride=strides[i], dilation=dilations[i], begin=pads[i], end=pads[i + count])
        full = (x.shape[2 + i] - 1) * window.stride + window.span + more[i]
        size = full - window.begin - window.end
        if wanted:
            size = wanted[-count:][i]
        elif automatic in ("SAME_UPPER", "SAME_LOWER"):
            size = x.shape[2 + i] * window.stride
        elif automatic == "VALID":
            window, size = WindowAxis(taps=taps, stride=strides[i], dilation=dilations[i], begin=0, end=0), full
        if wanted or automatic.startswith("SAME"):
            begin, end = shared_padding(automatic, max(0, full - size))
            window = WindowAxis(taps=taps, stride=strides[i], dilation=dilations[i], begin=begin, end=end)
        if size < 1:
            call.fail(f"spatial dimension {i} of the result has {size} elements")
        windows.append(window)
        sizes.append(size)
    y = transposed(call, call.operand(0), call.operand(1), windows, sizes, groups)
    if not call.has(2):
        return y
    return call.build.add(y, call.reshape(call.operand(2), [1, call.tensor(2).size, *[1] * count]))


# deformable -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The elements below or above positions along one dimension: their indices in the input, and their weights.

    Attributes:
        place: the index, clamped to the input, as int32.
        share: the weight of the element as float32, 0 outside the input.
        size: the number of elements of the input.
    """

    place: MLOperand
    share: MLOperand
    size: int


def sides(call: NodeCall, position: MLOperand, size: int) -> list[Side]:
    """Return the elements on both sides of positions along a dimension."""
    # Positions one element outside the input meet no element. The clamp makes positions exact integers.
    position = call.build.clamp(position, min_value=-1, max_value=size)
    one = call.constant(1, "float32")
    low = call.build.floor(position)
    part = call.build.sub(position, low)
    found: list[Side] = []
    for place, share in ((low, call.build.sub(one, part)), (call.build.add(low, one), part)):
        inside = call.build.clamp(place, min_value=0, max_value=size - 1)
        counts = call.cast(call.build.equal(place, inside), "float32")
        found.append(Side(call.cast(inside, "int32"), call.build.mul(share, counts), size))
    return found


def interpolated(call: NodeCall, image: MLOperand, positions: Sequence[Sequence[Side]]) -> MLOperand:
    """Return an image [N, groups, channels, elements] at positions [N, groups, P]: [N, groups, channels, P]."""
    total: MLOperand | None = None
    for corner in itertools.product(*positions):
        index, share = corner[0].place, corner[0].share
        for side in corner[1:]:
            index = call.build.add(call.build.mul(index, call.constant(side.size, "int32")), side.place)
            share = call.build.mul(share, side.share)
        n, groups, count = index.shape
        spread = call.build.expand(call.reshape(index, [n, groups, 1, count]), [n, groups, image.shape[2], count])
        met = call.build.gather_elements(image, spread, axis=3)
        part = call.build.mul(met, call.reshape(share, [n, groups, 1, count]))
        total = part if total is None else call.build.add(total, part)
    assert total is not None
    return total


@lowers("DeformConv")
def deform_conv(call: NodeCall) -> Result:
    """Convolution with taps moved by offsets. The input is interpolated between elements, and 0 outside."""
    x, w, offsets = call.tensor(0), call.tensor(1), call.tensor(2)
    groups, offset_groups = call.attribute("group", 1), call.attribute("offset_group", 1)
    check_channels(call, x.shape, w.shape, groups)
    if offset_groups < 1 or x.shape[1] % offset_groups:
        call.fail(f"{x.shape[1]} channels do not fit {offset_groups} groups of offsets")
    kernel = kernel_of(call, w.shape)
    windows = windows_of(call, x.shape[2:], kernel)
    n, channels, *sizes = x.shape
    count, taps, outputs = len(sizes), math.prod(kernel), list(offsets.shape[2:])
    if outputs != [v.count(s) for v, s in zip(windows, sizes, strict=True)]:
        call.fail(f"offsets of shape {offsets.shape} do not fit the result's spatial shape")
    pixels = math.prod(outputs)
    # Every position is the sum of its tap's position and its offset.
    moved = call.reshape(call.cast(call.operand(2), "float32"), [n, offset_groups, taps, count, pixels])
    positions: list[list[Side]] = []
    for i, (size, window) in enumerate(zip(sizes, windows, strict=True)):
        alone = [-1 if j == i else 1 for j in range(count)]
        tap_at = np.broadcast_to(np.arange(kernel[i]).reshape(alone) * window.dilation - window.begin, kernel)
        start = np.broadcast_to(np.arange(outputs[i]).reshape(alone) * window.stride, outputs)
        own = call.constant(tap_at.reshape(taps, 1) + start.reshape(1, pixels), "float32")
        offset = call.build.slice(moved, [0, 0, 0, i, 0], [n, offset_groups, taps, 1, pixels])
        position = call.build.add(call.reshape(offset, [n, offset_groups, taps, pixels]), own)
        positions.append(sides(call, call.reshape(position, [n, offset_groups, taps * pixels]), size))
    image = call.reshape(call.cast(call.operand(0), "float32"), [n, offset_groups, channels // offset_groups, math.prod(sizes)])
    met = interpolated(call, image, positions)
    if call.has(4):
        mask = call.reshape(call.operand(4), [n, offset_groups, 1, taps * pixels])
        met = call.build.mul(met, call.cast(mask, "float32"))
    columns = call.reshape(met, [n, groups, channels // groups * taps, pixels])
    filters = call.reshape(call.cast(call.operand(1), "float32"), [1, groups, w.shape[0] // groups, channels // groups * taps])
    y = call.reshape(call.build.matmul(filters, columns), [n, w.shape[0], *outputs])
    if call.has(3):
        y = call.build.add(y, call.reshape(call.cast(call.operand(3), "float32"), [1, w.shape[0], *[1] * count]))
    return y
