"""Custom operators of MediaPipe's models."""

from __future__ import annotations

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from ._windows import padded
from .convolution import transposed

SAME = 1
"""The number of the padding SAME in options that are a C struct."""


@lowers({"Convolution2DTransposeBias": 1}, custom=True, ranks={0: (4, 4), 1: (4, 4)})
def convolution_transpose_bias(call: TfliteCall) -> Result:
    """Transposed convolution with a bias, whose size follows from the padding."""
    padding, width_stride, height_stride = call.raw_integers(3)
    strides = (height_stride, width_stride)
    if min(strides) < 1:
        call.fail(f"strides {list(strides)}")
    befores: list[int] = []
    sizes: list[int] = []
    for size, tap, stride in zip(call.shape(0)[1:3], call.shape(1)[1:3], strides, strict=True):
        lost = max(0, tap - (size - 1) % stride - 1) if padding == SAME else 0
        befores.append(lost // 2)
        sizes.append((size - 1) * stride + tap - lost)
    y = transposed(call, call.floats(0), call.floats(1), strides, (sizes[0], sizes[1]), (befores[0], befores[1]))
    return call.build.add(y, call.reshape(call.floats(2), [1, 1, 1, call.shape(1)[0]])) if call.has(2) else y


MOST_TAPS = 1 << 10
"""The maximum number of elements of a window."""


@lowers({"MaxPoolingWithArgmax2D": 1}, custom=True, ranks={0: (4, 4)})
def max_pooling_with_argmax(call: TfliteCall) -> Result:
    """The largest element of each window and its place in the window, plus 0.1."""
    padding, sw, sh, tw, th, _ = call.raw_integers(6)
    if min(sw, sh, tw, th) < 1 or tw * th > MOST_TAPS:
        call.fail(f"windows of {[th, tw]} with strides {[sh, sw]}")
    n, h, w, c = call.shape(0)
    top, bottom, rows = padded(h, th, sh, 1, padding == SAME)
    left, right, columns = padded(w, tw, sw, 1, padding == SAME)
    if rows < 1 or columns < 1:
        call.fail(f"windows of {[th, tw]} do not fit {[h, w]}")
    b = call.build
    x = call.floats(0)
    if top or bottom or left or right:
        lowest = float(np.finfo(np.float32).min)
        x = b.pad(x, [0, top, left, 0], [0, bottom, right, 0], value=lowest)
    reach = [n, (rows - 1) * sh + 1, (columns - 1) * sw + 1, c]
    taps = [
        call.reshape(b.slice(x, [0, i, j, 0], reach, strides=[1, sh, sw, 1]), [n, rows, columns, 1, c])
        for i in range(th)
        for j in range(tw)
    ]
    stacked = b.concat(taps, 3)
    values = b.reduce_max(stacked, axes=[3])
    places = b.cast(b.arg_max(stacked, 3, output_data_type="int32"), "float32")
    return [values, b.add(places, call.constant(0.1, "float32"))]


@lowers({"MaxUnpooling2D": 1}, custom=True, ranks={0: (4, 4), 1: (4, 4)})
def max_unpooling(call: TfliteCall) -> Result:
    """Elements at their places in windows, and zeros around them."""
    _, _, _, tw, th, _ = call.raw_integers(6)
    if min(tw, th) < 1 or tw * th > MOST_TAPS or call.shape(0) != call.shape(1):
        call.fail(f"windows of {[th, tw]} for {list(call.shape(0))} and {list(call.shape(1))}")
    n, h, w, c = call.shape(0)
    b = call.build
    values = call.reshape(call.floats(0), [n, h, 1, w, 1, c])
    places = call.reshape(b.floor(call.floats(1)), [n, h, 1, w, 1, c])
    taps = call.constant(np.arange(th * tw).reshape(1, 1, th, 1, tw, 1), "float32")
    spread = b.where(b.equal(places, taps), values, call.constant(0, "float32"))
    return call.reshape(spread, [n, h * th, w * tw, c])


def _entry(call: TfliteCall, matrix: MLOperand, row: int, column: int) -> MLOperand:
    return call.reshape(call.build.slice(matrix, [row, column], [1, 1]), [])


@lowers({"TransformTensorBilinear": 2, "TransformTensor": 2}, custom=True, ranks={0: (4, 4)})
def transform_tensor(call: TfliteCall) -> Result:
    """Pixels at positions that a matrix computes, between their neighbors, or 0 outside the picture."""
    n, h, w, c = call.shape(0)
    target = call.output().shape
    if n != 1 or target is None or len(target) != 4 or min(target) < 1 or call.tensor(1).size != 16:
        call.fail(f"a picture {[n, h, w, c]} and a matrix {list(call.shape(1))} for {target}")
    b = call.build
    matrix = call.reshape(call.floats(1), [4, 4])
    half = call.node.record.version >= 2 or call.node.record.name == "TransformTensorBilinear"
    rows = call.constant(np.arange(target[1]).reshape(-1, 1), "float32")
    columns = call.constant(np.arange(target[2]).reshape(1, -1), "float32")

    def position(row: int) -> MLOperand:
        m0, m1, offset = (_entry(call, matrix, row, i) for i in (0, 1, 3))
        if half:
            offset = b.sub(b.add(offset, b.mul(call.constant(0.5, "float32"), b.add(m0, m1))), call.constant(0.5, "float32"))
        return b.add(b.add(b.mul(columns, m0), b.mul(rows, m1)), offset)

    x, y = position(0), position(1)
    flat = call.reshape(call.floats(0), [h * w, c])

    def within(places: MLOperand, size: int) -> MLOperand:
        least, most = call.constant(0, "float32"), call.constant(size - 1, "float32")
        return b.logical_and(b.greater_or_equal(places, least), b.lesser_or_equal(places, most))

    inside = b.logical_and(within(x, w), within(y, h))
    left, top = b.floor(x), b.floor(y)
    total: MLOperand | None = None
    for down in (0, 1):
        for right in (0, 1):
            column = b.clamp(b.add(left, call.constant(right, "float32")), min_value=0, max_value=w - 1)
            row = b.clamp(b.add(top, call.constant(down, "float32")), min_value=0, max_value=h - 1)
            part_x, part_y = b.sub(x, left), b.sub(y, top)
            one = call.constant(1, "float32")
            weight = b.mul(part_x if right else b.sub(one, part_x), part_y if down else b.sub(one, part_y))
            place = b.cast(b.add(b.mul(row, call.constant(w, "float32")), column), "int32")
            pixels = b.mul(b.gather(flat, place, axis=0), call.reshape(weight, [target[1], target[2], 1]))
            total = pixels if total is None else b.add(total, pixels)
    assert total is not None
    found = b.where(call.reshape(inside, [target[1], target[2], 1]), total, call.constant(0, "float32"))
    return call.reshape(found, [1, target[1], target[2], c])


@lowers({"TransformLandmarks": 2}, custom=True, ranks={0: (3, 3)})
def transform_landmarks(call: TfliteCall) -> Result:
    """Points [1, n, 2 or 3] moved by a matrix, without a change of z."""
    shape = call.shape(0)
    if shape[2] not in (2, 3) or call.tensor(1).size != 16:
        call.fail(f"points {list(shape)} and a matrix {list(call.shape(1))}")
    b = call.build
    matrix = call.reshape(call.floats(1), [4, 4])
    points = call.floats(0)
    x, y, *z = b.split(points, [1] * shape[2], axis=2)
    scale = call.constant(float(call.attributes.get("scale", 1.0)) if call.node.record.version < 2 else 1.0, "float32")

    def moved(row: int) -> MLOperand:
        m0, m1, offset = (_entry(call, matrix, row, i) for i in (0, 1, 3))
        return b.add(b.add(b.mul(x, m0), b.mul(y, m1)), b.mul(offset, scale))

    return b.concat([moved(0), moved(1), *z], 2)
