"""Convolutions, in the layouts of the models: pictures with channels last, filters as the files have them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from ._sums import centered, integer_sums, magnitude, rescaled, scaled_sums, scales_of, sums_integers, whole_weights
from ._windows import padded, window_padding

Layout = Literal["ohwi", "ihwo"]


def _pair(call: TfliteCall, height: str, width: str, default: int = 1) -> tuple[int, int]:
    return int(call.option(height, default)), int(call.option(width, default))


@lowers(CONV_2D=8, DEPTHWISE_CONV_2D=7, ranks={0: (4, 4), 1: (4, 4)}, note="8 bits: integer sums, one rounding")
def conv_2d(call: TfliteCall) -> Result:
    """Convolution of pictures [n, h, w, channels], of groups of channels or of each channel."""
    depthwise = call.node.record.name == "DEPTHWISE_CONV_2D"
    shape, filter_shape = call.shape(0), call.shape(1)
    channels = shape[3]
    if depthwise:
        layout, groups, outputs = "ihwo", channels, filter_shape[3]
    else:
        layout, groups, outputs = "ohwi", channels // max(filter_shape[3], 1), filter_shape[0]
    taps = (filter_shape[1], filter_shape[2])
    strides, dilations = _pair(call, "StrideH", "StrideW"), _pair(call, "DilationHFactor", "DilationWFactor")
    options: dict[str, Any] = {
        "padding": window_padding(call, (shape[1], shape[2]), taps, strides, dilations),
        "strides": list(strides),
        "dilations": list(dilations),
        "groups": groups,
        "input_layout": "nhwc",
        "filter_layout": layout,
    }
    if sums_integers(call, 0, 1):
        weights = call.tensor(1)
        axes = (0, 1, 2) if depthwise else (1, 2, 3)
        terms = int(np.prod(filter_shape)) // max(outputs, 1)
        sums = integer_sums(
            call,
            lambda a, b: call.build.conv2d(a, b, **options),
            centered(call, call.tensor(0)),
            centered(call, weights),
            terms,
            magnitude(weights, axes),
        )
        return rescaled(call, sums, 0, scales_of(call, 1), 2)
    bias = call.reshape(call.floats(2), [outputs]) if call.has(2) else None
    weights, scales = whole_weights(call, 1, 3 if depthwise else 0)
    if scales is None:
        return call.activated(call.build.conv2d(call.floats(0), weights, bias=bias, **options))
    return call.activated(scaled_sums(call, call.build.conv2d(call.floats(0), weights, **options), scales, bias))


def transposed(
    call: TfliteCall, x: MLOperand, w: MLOperand, strides: tuple[int, int], sizes: tuple[int, int], befores: tuple[int, int]
) -> MLOperand:
    """Return the transposed convolution of pictures with a filter [o, h, w, i].

    Args:
        call: the node.
        x: the pictures.
        w: the filter.
        strides: the strides.
        sizes: the height and width of the result.
        befores: the rows and columns that the result lacks before the first.
    """
    padding: list[int] = []
    missing: list[int] = []
    for size, tap, stride, out, before in zip(x.shape[1:3], w.shape[1:3], strides, sizes, befores, strict=True):
        full = (int(size) - 1) * stride + int(tap)
        behind = full - before - out
        padding += [before, max(behind, 0)]
        missing.append(max(-behind, 0))
    y = call.build.conv_transpose2d(x, w, padding=padding, strides=list(strides), input_layout="nhwc", filter_layout="ohwi")
    return call.build.pad(y, [0, 0, 0, 0], [0, *missing, 0]) if any(missing) else y


@lowers(TRANSPOSE_CONV=5, ranks={1: (4, 4), 2: (4, 4)}, note="8 bits: integer sums, one rounding")
def transpose_conv(call: TfliteCall) -> Result:
    """Transposed convolution. Input 0 is the shape of the result."""
    target, weights = call.ints(0), call.tensor(1)
    n, h, w, channels = call.shape(2)
    outputs, taps = weights.shape[0], weights.shape[1:3]
    strides = _pair(call, "StrideH", "StrideW")
    if len(target) != 4 or min(target) < 1 or target[0] != n or target[3] != outputs or channels != weights.shape[3]:
        call.fail(f"the shape {target} does not fit the input {[n, h, w, channels]} and the filter {list(weights.shape)}")
    if min(strides) < 1:
        call.fail(f"strides {list(strides)}")
    same = int(call.option("Padding")) == 0
    sizes = (target[1], target[2])
    # The padding is that of the convolution from the result to the input.
    befores = tuple(
        max((size - 1) * stride + tap - out, 0) // 2 if same else 0
        for size, tap, stride, out in zip((h, w), taps, strides, sizes, strict=True)
    )

    def product(a: MLOperand, b: MLOperand) -> MLOperand:
        return transposed(call, a, b, strides, sizes, (befores[0], befores[1]))

    if sums_integers(call, 2, 1):
        a, b = centered(call, call.tensor(2)), centered(call, weights)
        terms = int(np.prod(weights.shape[1:]))
        sums = integer_sums(call, product, a, b, terms, magnitude(weights, (1, 2, 3)))
        return rescaled(call, sums, 2, scales_of(call, 1), 3)
    y = product(call.floats(2), call.floats(1))
    if call.has(3):
        y = call.build.add(y, call.reshape(call.floats(3), [1, 1, 1, outputs]))
    return call.activated(y)


@lowers(CONV_3D=1, ranks={0: (5, 5), 1: (5, 5)})
def conv_3d(call: TfliteCall) -> Result:
    """Convolution of volumes [n, d, h, w, channels] with a filter [d, h, w, in, out]: sums over the taps of depth."""
    n, depth, height, width, channels = call.shape(0)
    taps = call.shape(1)[:3]
    outputs = call.shape(1)[4]
    strides = (int(call.option("StrideD", 1)), *_pair(call, "StrideH", "StrideW"))
    dilations = (int(call.option("DilationDFactor", 1)), *_pair(call, "DilationHFactor", "DilationWFactor"))
    if min(*taps, *strides, *dilations) < 1:
        call.fail(f"windows of {list(taps)} with strides {list(strides)}")
    same = int(call.option("Padding")) == 0
    along = [padded(*v, same) for v in zip((depth, height, width), taps, strides, dilations, strict=True)]
    if min(a[2] for a in along) < 1:
        call.fail(f"windows of {list(taps)} do not fit {[depth, height, width]}")
    (before, after, count), rows, columns = along
    x, w = call.floats(0), call.floats(1)
    if before or after:
        x = call.build.pad(x, [0, before, 0, 0, 0], [0, after, 0, 0, 0])
    parts: list[MLOperand] = []
    for tap in range(taps[0]):
        start = tap * dilations[0]
        reach = (count - 1) * strides[0] + 1
        part = call.build.slice(x, [0, start, 0, 0, 0], [n, reach, height, width, channels], strides=[1, strides[0], 1, 1, 1])
        part = call.reshape(part, [n * count, height, width, channels])
        taken = call.reshape(call.build.slice(w, [tap, 0, 0, 0, 0], [1, *call.shape(1)[1:]]), call.shape(1)[1:])
        parts.append(
            call.build.conv2d(
                part,
                taken,
                padding=[rows[0], rows[1], columns[0], columns[1]],
                strides=list(strides[1:]),
                dilations=list(dilations[1:]),
                groups=channels // call.shape(1)[3],
                input_layout="nhwc",
                filter_layout="hwio",
            )
        )
    y = call.fold(call.build.add, parts)
    if call.has(2):
        y = call.build.add(y, call.reshape(call.floats(2), [1, 1, 1, outputs]))
    return call.reshape(call.activated(y), [n, count, rows[2], columns[2], outputs])


@lowers(CONV_3D_TRANSPOSE=1, ranks={1: (5, 5), 2: (5, 5)})
def conv_3d_transpose(call: TfliteCall) -> Result:
    """Transposed convolution of volumes with a filter [d, h, w, out, in]. Input 0 is the shape of the result."""
    target = call.ints(0)
    n, depth, height, width, channels = call.shape(2)
    taps, outputs = call.shape(1)[:3], call.shape(1)[3]
    strides = (int(call.option("StrideD", 1)), *_pair(call, "StrideH", "StrideW"))
    if len(target) != 5 or min(target) < 1 or min(strides) < 1:
        call.fail(f"the shape {target} with strides {list(strides)}")
    same = int(call.option("Padding")) == 0
    befores = [
        max((size - 1) * stride + tap - out, 0) // 2 if same else 0
        for size, tap, stride, out in zip((depth, height, width), taps, strides, target[1:4], strict=True)
    ]
    x = call.reshape(call.floats(2), [n * depth, height, width, channels])
    w = call.floats(1)
    parts: list[MLOperand] = []
    for tap in range(taps[0]):
        taken = call.reshape(call.build.slice(w, [tap, 0, 0, 0, 0], [1, *call.shape(1)[1:]]), call.shape(1)[1:])
        taken = call.transpose(taken, [2, 0, 1, 3])
        y = transposed(call, x, taken, strides[1:], (target[2], target[3]), (befores[1], befores[2]))
        y = call.reshape(y, [n, depth, target[2], target[3], outputs])
        parts.append(_spread(call, y, strides[0], tap - befores[0], target[1]))
    y = call.fold(call.build.add, parts)
    if call.has(3):
        y = call.build.add(y, call.reshape(call.floats(3), [1, 1, 1, 1, outputs]))
    return call.activated(y)


def _spread(call: TfliteCall, y: MLOperand, stride: int, start: int, size: int) -> MLOperand:
    """Return slices along dimension 1 at `start`, `start + stride`, ... of a tensor of zeros with `size` slices."""
    n, depth, *rest = (int(d) for d in y.shape)
    if stride > 1:
        y = call.reshape(y, [n, depth, 1, *rest])
        y = call.build.pad(y, [0] * len(y.shape), [0, 0, stride - 1, *(0 for _ in rest)])
        y = call.reshape(y, [n, depth * stride, *rest])
        depth = depth * stride
    first = max(-start, 0)
    last = min(depth, size - start)
    if last <= first:
        return call.build.expand(call.constant(0, "float32"), [n, size, *rest])
    y = call.build.slice(y, [0, first, *(0 for _ in rest)], [n, last - first, *rest])
    before = first + start
    zeros = [0 for _ in rest]
    return call.build.pad(y, [0, before, *zeros], [0, size - before - (last - first), *zeros])
