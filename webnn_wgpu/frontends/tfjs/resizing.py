"""Pictures of another size, as TensorFlow.js's resizeBilinear and resizeNearestNeighbor make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_wgpu import MLOperand

from ..common.calls import OperatorCall

MOST_ELEMENTS = 1 << 24
"""The maximum height or width of a resized picture."""


def resized(
    call: OperatorCall,
    x: MLOperand,
    sizes: Sequence[int],
    *,
    linear: bool,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> MLOperand:
    """Return pictures [n, h, w, c] of other sizes.

    Args:
        call: the node.
        x: the pictures.
        sizes: height and width.
        linear: whether elements are interpolated.
        align_corners: whether the corners stay where they are.
        half_pixel_centers: whether elements are squares, whose centers are compared.
    """
    for axis, size in zip((1, 2), sizes, strict=True):
        if not 0 < size <= MOST_ELEMENTS:
            call.fail(f"sizes {list(sizes)}")
        x = _along(call, x, axis, int(size), linear, align_corners, half_pixel_centers)
    return x


def _along(
    call: OperatorCall, x: MLOperand, axis: int, size: int, linear: bool, align_corners: bool, half_pixel_centers: bool
) -> MLOperand:
    before = x.shape[axis]
    if before == size:
        return x
    if not linear and not align_corners and not half_pixel_centers and size % before == 0:
        # Whole factors: copies, whose gradient is a sum.
        shape = x.shape
        wide = call.build.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        copies = call.build.expand(wide, [*shape[: axis + 1], size // before, *shape[axis + 1 :]])
        return call.build.reshape(copies, [*shape[:axis], size, *shape[axis + 1 :]])
    aligned = align_corners and size > 1
    # JavaScript computes positions in float64.
    scale = (before - 1) / (size - 1) if aligned else before / size
    places: np.ndarray[Any, np.dtype[np.float64]] = np.arange(size, dtype=np.float64)
    places = (places + 0.5) * scale - (0.5 if linear else 0.0) if half_pixel_centers else places * scale
    if not linear:
        nearest = np.floor(places + 0.5) if align_corners else np.floor(places)
        index = np.clip(nearest, 0, before - 1).astype(np.int32)
        return call.build.gather(x, call.constant(index, "int32"), axis=axis)
    low = np.floor(np.maximum(places, 0)).astype(np.int32)
    low = np.minimum(low, before - 1)
    high = np.minimum(np.ceil(np.maximum(places, 0)).astype(np.int32), before - 1)
    share = (places - low).clip(0).astype(np.float32)
    shape = [1] * len(x.shape)
    shape[axis] = size
    weight = call.constant(share.reshape(shape), "float32")
    x = call.cast(x, "float32")
    below = call.build.gather(x, call.constant(low, "int32"), axis=axis)
    above = call.build.gather(x, call.constant(high, "int32"), axis=axis)
    return call.build.add(below, call.build.mul(call.build.sub(above, below), weight))
