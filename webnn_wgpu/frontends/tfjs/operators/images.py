"""Operators on pictures."""

from __future__ import annotations

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfjsCall
from ..resizing import resized
from ._registry import Result, lowers


@lowers("ResizeBilinear", "ResizeNearestNeighbor")
def resize(call: TfjsCall) -> Result:
    """Pictures of another size."""
    x, sizes = call.floats(0), call.sizes(1)
    if len(x.shape) != 4 or len(sizes) != 2:
        call.fail(f"sizes {sizes} for {list(x.shape)}")
    linear = call.node.op == "ResizeBilinear"
    flags = {name: call.flag(name) for name in ("align_corners", "half_pixel_centers")}
    return resized(call, x, sizes, linear=linear, **flags)


def _line(call: TfjsCall, low: MLOperand, high: MLOperand, count: int, whole: int) -> MLOperand:
    """Return the places of elements of parts of pictures along one dimension, [parts, count]."""
    b, last = call.build, call.constant(float(whole - 1), "float32")
    if count == 1:
        return b.mul(b.mul(b.add(low, high), call.constant(0.5, "float32")), last)
    lanes = call.constant(np.arange(count, dtype=np.float32)[None, :], "float32")
    scale = b.div(b.mul(b.sub(high, low), last), call.constant(float(count - 1), "float32"))
    return b.add(b.mul(low, last), b.mul(lanes, scale))


@lowers("CropAndResize")
def crop_and_resize(call: TfjsCall) -> Result:
    """Parts of pictures of the same size."""
    x, boxes, numbers, b = call.floats(0), call.floats(1), call.cast(call.operand(2), "int32"), call.build
    sizes = call.sizes(3)
    if len(sizes) != 2 or 0 in sizes or len(x.shape) != 4 or len(boxes.shape) != 2 or boxes.shape[1] != 4:
        call.fail(f"parts of sizes {sizes} of {list(x.shape)}")
    height, width = sizes
    n, h, w, c = x.shape
    parts = boxes.shape[0]
    y1, x1, y2, x2 = b.split(boxes, 4, axis=1)
    rows, columns = _line(call, y1, y2, height, h), _line(call, x1, x2, width, w)
    zero = call.constant(0.0, "float32")

    def inside(places: MLOperand, whole: int) -> MLOperand:
        low = b.greater_or_equal(places, zero)
        return b.logical_and(low, b.lesser_or_equal(places, call.constant(float(whole - 1), "float32")))

    good = b.logical_and(
        call.reshape(inside(rows, h), [parts, height, 1, 1]), call.reshape(inside(columns, w), [parts, 1, width, 1])
    )
    rows = b.clamp(rows, min_value=0.0, max_value=float(h - 1))
    columns = b.clamp(columns, min_value=0.0, max_value=float(w - 1))
    flat = call.reshape(x, [n * h * w, c])
    start = call.reshape(b.mul(numbers, call.constant(h * w, "int32")), [parts, 1, 1])

    def picked(row: MLOperand, column: MLOperand) -> MLOperand:
        row, column = call.cast(row, "int32"), call.cast(column, "int32")
        line = b.add(start, b.mul(call.reshape(row, [parts, height, 1]), call.constant(w, "int32")))
        return b.gather(flat, b.add(line, call.reshape(column, [parts, 1, width])))

    if call.text("method", "bilinear").lower().startswith("nearest"):
        half = call.constant(0.5, "float32")
        y = picked(b.floor(b.add(rows, half)), b.floor(b.add(columns, half)))
    else:
        top, left = b.floor(rows), b.floor(columns)
        bottom, right = b.ceil(rows), b.ceil(columns)
        down = call.reshape(b.sub(rows, top), [parts, height, 1, 1])
        along = call.reshape(b.sub(columns, left), [parts, 1, width, 1])

        def mixed(one: MLOperand, other: MLOperand, share: MLOperand) -> MLOperand:
            return b.add(one, b.mul(b.sub(other, one), share))

        upper = mixed(picked(top, left), picked(top, right), along)
        y = mixed(upper, mixed(picked(bottom, left), picked(bottom, right), along), down)
    return b.where(good, y, call.constant(call.float("extrapolation_value"), "float32"))
