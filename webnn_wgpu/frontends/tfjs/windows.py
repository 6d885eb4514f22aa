"""Convolution and pooling over one to three spatial dimensions, with channels last, of operators and of layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from webnn_wgpu import MLOperand

from ..common.calls import OperatorCall

Padding = Literal["same", "valid"] | Sequence[Sequence[int]]
"""A rule of padding, or elements before and behind each spatial dimension."""


def padded(size: int, taps: int, stride: int, dilation: int, padding: Padding, axis: int) -> tuple[int, int, int]:
    """Return the padding before and behind a dimension, and the number of windows.

    Example:
        >>> padded(6, 3, 2, 1, "same", 0), padded(6, 3, 2, 1, "valid", 0), padded(6, 3, 2, 1, [(1, 1)], 0)
        ((0, 1, 3), (0, 0, 2), (1, 1, 3))
    """
    reach = (taps - 1) * dilation + 1
    if padding == "same":
        count = -(-size // stride)
        total = max((count - 1) * stride + reach - size, 0)
        return total // 2, total - total // 2, count
    before, after = (0, 0) if isinstance(padding, str) else padding[axis]
    return before, after, (size + before + after - reach) // stride + 1


def window_padding(
    call: OperatorCall,
    sizes: Sequence[int],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Padding,
) -> list[tuple[int, int]]:
    """Return the padding before and behind each dimension.

    Raises:
        NotSupportedError: a stride, a dilation or a window is empty, or a window does not fit.
    """
    if not len(sizes) == len(taps) == len(strides) == len(dilations) or min(*taps, *strides, *dilations, 1) < 1:
        call.fail(f"windows of {list(taps)} with strides {list(strides)} and dilations {list(dilations)} over {list(sizes)}")
    found: list[tuple[int, int]] = []
    for axis, (size, tap, stride, dilation) in enumerate(zip(sizes, taps, strides, dilations, strict=True)):
        before, after, count = padded(size, tap, stride, dilation, padding, axis)
        if count < 1 or min(before, after) < 0:
            call.fail(f"a window of {(tap - 1) * dilation + 1} does not fit {size} elements")
        found.append((before, after))
    return found


def convolution(
    call: OperatorCall,
    x: MLOperand,
    w: MLOperand,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Padding,
    groups: int = 1,
) -> MLOperand:
    """Return the convolution of [n, *sizes, c] with a filter [*taps, c / groups, outputs], over one to three dimensions."""
    spatial = len(x.shape) - 2
    taps, sizes = w.shape[:spatial], x.shape[1:-1]
    if len(w.shape) != spatial + 2 or not 1 <= spatial <= 3 or x.shape[-1] != w.shape[-2] * groups:
        call.fail(f"a filter of shape {list(w.shape)} for an input of shape {list(x.shape)}")
    pads = window_padding(call, sizes, taps, strides, dilations, padding)
    if spatial == 3:
        return _volumes(call, x, w, strides, dilations, pads, groups)
    one = spatial == 1
    if one:
        # A row of pictures of height 1.
        x = call.build.reshape(x, [x.shape[0], 1, *x.shape[1:]])
        w = call.build.reshape(w, [1, *w.shape])
        pads, strides, dilations = [(0, 0), *pads], [1, *strides], [1, *dilations]
    y = call.build.conv2d(
        x,
        w,
        padding=[p for pair in pads for p in pair],
        strides=list(strides),
        dilations=list(dilations),
        groups=groups,
        input_layout="nhwc",
        filter_layout="hwio",
    )
    return call.build.reshape(y, [y.shape[0], *y.shape[2:]]) if one else y


def _volumes(
    call: OperatorCall,
    x: MLOperand,
    w: MLOperand,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[tuple[int, int]],
    groups: int,
) -> MLOperand:
    """Return a convolution over three dimensions: the sum of one over two for each tap of the first dimension."""
    if any(pads[0]):
        x = call.build.pad(x, [0, pads[0][0], 0, 0, 0], [0, pads[0][1], 0, 0, 0])
    n, depth, *rest = x.shape
    count = (depth - (w.shape[0] - 1) * dilations[0] - 1) // strides[0] + 1
    parts: list[MLOperand] = []
    for tap in range(w.shape[0]):
        reach = (count - 1) * strides[0] + 1
        layers = call.build.slice(x, [0, tap * dilations[0], 0, 0, 0], [n, reach, *rest], strides=[1, strides[0], 1, 1, 1])
        kernel = call.build.slice(w, [tap, 0, 0, 0, 0], [1, *w.shape[1:]])
        pictures = call.build.reshape(layers, [n * count, *rest])
        kernel = call.build.reshape(kernel, w.shape[1:])
        parts.append(convolution(call, pictures, kernel, strides[1:], dilations[1:], pads[1:], groups))
    y = call.fold(call.build.add, parts)
    return call.build.reshape(y, [n, count, *y.shape[1:]])


def depthwise(
    call: OperatorCall, x: MLOperand, w: MLOperand, strides: Sequence[int], dilations: Sequence[int], padding: Padding
) -> MLOperand:
    """Return the convolution of each channel of [n, *sizes, c] with its filters [*taps, c, multiplier]."""
    if len(w.shape) != len(x.shape) or w.shape[-2] != x.shape[-1]:
        call.fail(f"a depthwise filter of shape {list(w.shape)} for an input of shape {list(x.shape)}")
    joined = call.reshape(w, [*w.shape[:-2], 1, w.shape[-2] * w.shape[-1]])
    return convolution(call, x, joined, strides, dilations, padding, x.shape[-1])


def transposed(
    call: OperatorCall, x: MLOperand, w: MLOperand, strides: Sequence[int], sizes: Sequence[int], same: bool
) -> MLOperand:
    """Return the transposed convolution of [n, *, c] with a filter [*taps, outputs, c], over two or three dimensions.

    Args:
        call: the node.
        x: the input.
        w: the filter.
        strides: the strides.
        sizes: the spatial sizes of the result.
        same: whether the padding is that of the rule "same" of the convolution from the result to the input.
    """
    spatial = len(sizes)
    if len(x.shape) != spatial + 2 or len(w.shape) != spatial + 2 or x.shape[-1] != w.shape[-1] or spatial not in (2, 3):
        call.fail(f"a filter of shape {list(w.shape)} for an input of shape {list(x.shape)}")
    crops: list[tuple[int, int]] = []
    for size, tap, stride, out in zip(x.shape[1:-1], w.shape[:spatial], strides, sizes, strict=True):
        total = max((size - 1) * stride + tap - out, 0)
        expected = -(-out // stride) if same else (out - tap) // stride + 1
        if stride < 1 or out < 1 or expected != size:
            call.fail(f"a result of sizes {list(sizes)} for an input of shape {list(x.shape)}")
        before = total // 2 if same else 0
        crops.append((before, before + out))
    if spatial == 2:
        return _grown(call, x, w, strides, sizes, [low for low, _ in crops])
    return _grown_volumes(call, x, w, strides, crops)


def _grown(
    call: OperatorCall, x: MLOperand, w: MLOperand, strides: Sequence[int], sizes: Sequence[int], befores: Sequence[int]
) -> MLOperand:
    padding: list[int] = []
    missing: list[int] = []
    for size, tap, stride, out, before in zip(x.shape[1:3], w.shape[:2], strides, sizes, befores, strict=True):
        behind = (size - 1) * stride + tap - before - out
        padding += [before, max(behind, 0)]
        missing.append(max(-behind, 0))
    y = call.build.conv_transpose2d(x, w, padding=padding, strides=list(strides), input_layout="nhwc", filter_layout="hwoi")
    return call.build.pad(y, [0, 0, 0, 0], [0, *missing, 0]) if any(missing) else y


def _grown_volumes(
    call: OperatorCall, x: MLOperand, w: MLOperand, strides: Sequence[int], crops: Sequence[tuple[int, int]]
) -> MLOperand:
    """Return a transposed convolution over three dimensions.

    Each tap of the first dimension gives layers of the result, with zeros between them, that are added up.
    """
    n, depth, *rest = x.shape
    taps, stride = w.shape[0], strides[0]
    pictures = call.build.reshape(x, [n * depth, *rest])
    full = (depth - 1) * stride + taps
    total: MLOperand | None = None
    for tap in range(taps):
        kernel = call.build.reshape(call.build.slice(w, [tap, 0, 0, 0, 0], [1, *w.shape[1:]]), w.shape[1:])
        y = _grown(call, pictures, kernel, strides[1:], [b - a for a, b in crops[1:]], [a for a, _ in crops[1:]])
        y = call.build.reshape(y, [n, depth, 1, *y.shape[1:]])
        y = call.build.pad(y, [0] * 6, [0, 0, stride - 1, 0, 0, 0]) if stride > 1 else y
        y = call.build.reshape(y, [n, depth * stride, *y.shape[3:]])
        y = call.build.slice(y, [0] * 5, [n, (depth - 1) * stride + 1, *y.shape[2:]])
        y = call.build.pad(y, [0, tap, 0, 0, 0], [0, full - tap - y.shape[1], 0, 0, 0])
        total = y if total is None else call.build.add(total, y)
    assert total is not None
    low, high = crops[0]
    if high > full:
        total = call.build.pad(total, [0] * 5, [0, high - full, 0, 0, 0])
    return call.build.slice(total, [0, low, 0, 0, 0], [n, high - low, *total.shape[2:]])


def pooled(
    call: OperatorCall,
    x: MLOperand,
    kind: Literal["max", "average"],
    taps: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
) -> MLOperand:
    """Return the maxima or means of windows of [n, *sizes, c], over one to three dimensions. Padding does not count."""
    spatial = len(x.shape) - 2
    if not 1 <= spatial <= 3:
        call.fail(f"an input of shape {list(x.shape)}")
    pads = window_padding(call, x.shape[1:-1], taps, strides, [1] * spatial, padding)
    pool = call.build.max_pool2d if kind == "max" else call.build.average_pool2d
    if spatial == 2:
        return _pool(pool, x, taps, strides, pads)
    n, first, *rest = x.shape
    if spatial == 3:
        # A window is a product of windows, and so are maxima, and means of as many elements.
        x = _pool(pool, call.build.reshape(x, [n * first, *rest]), taps[1:], strides[1:], pads[1:])
        rest = x.shape[1:]
    row = call.build.reshape(x, [n, first, math.prod(rest[:-1]), rest[-1]])
    y = _pool(pool, row, [taps[0], 1], [strides[0], 1], [pads[0], (0, 0)])
    return call.build.reshape(y, [n, y.shape[1], *rest])


def _pool(pool: Any, x: MLOperand, taps: Sequence[int], strides: Sequence[int], pads: Sequence[tuple[int, int]]) -> MLOperand:
    return pool(
        x,
        window_dimensions=list(taps),
        strides=list(strides),
        padding=[p for pair in pads for p in pair],
        layout="nhwc",
    )
