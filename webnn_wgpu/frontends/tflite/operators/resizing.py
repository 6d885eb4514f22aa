"""Pictures in other sizes."""

from __future__ import annotations

import numpy as np

from ...common.held import Array
from ..call import TfliteCall
from ._registry import Result, lowers
from .pooling import away_from_zero

MOST_ALONG = 1 << 23
"""The maximum height and width: the host computes two indices for each row and column."""


def _sizes(call: TfliteCall) -> list[int]:
    sizes = call.ints(1)
    if len(sizes) != 2 or not 0 < min(sizes) <= max(sizes) <= MOST_ALONG:
        call.fail(f"the size {sizes} must be a height and a width, at most {MOST_ALONG}")
    return sizes


@lowers(RESIZE_BILINEAR=4, ranks={0: (4, 4)}, note="quantized: in floats, rounded half away from zero")
def resize_bilinear(call: TfliteCall) -> Result:
    """Weighted means of neighboring pixels."""
    aligned, half = bool(call.option("AlignCorners", False)), bool(call.option("HalfPixelCenters", False))
    mode = "align_corners" if aligned else "half_pixel" if half else "asymmetric"
    sizes = _sizes(call)
    if not (call.tensor(0).is_quantized and call.same(0)):
        return call.build.ext.resample(
            call.real(0), axes=[1, 2], sizes=sizes, mode="linear", coordinate_transformation_mode=mode
        )
    y = call.cast(call.operand(0), "float32")
    for axis, target in zip((1, 2), sizes, strict=True):
        indices, weights = taps_of_10_bits(call.shape(0)[axis], target, aligned, half)
        y = call.build.ext.weighted_gather(y, call.constant(indices, "int32"), call.constant(weights, "float32"), axis=axis)
    record = call.output()
    assert record.dtype is not None
    return call.bare(call.cast(away_from_zero(call, y, 0.0), call.held(record.dtype)))


def taps_of_10_bits(size: int, target: int, aligned: bool, half: bool) -> tuple[Array, Array]:
    """Return indices and weights of the two neighbors of each element, whose positions have 10 fractional bits in TFLite.

    Example:
        >>> taps_of_10_bits(2, 3, True, False)
        (array([[0, 0],
               [0, 1],
               [1, 1]]), array([[1. , 0. ],
               [0.5, 0.5],
               [1. , 0. ]]))
    """
    one = 1 << 10
    if aligned and target > 1:
        scale = (one * (size - 1) + (target - 1) // 2) // (target - 1)
    else:
        scale = (one * size + target // 2) // target
    places = np.arange(target) * scale + (scale // 2 - one // 2 if half else 0)
    lower = np.maximum(np.trunc(places / one), 0).astype(np.int64)
    upper = np.clip(np.trunc((places + one - 1) / one).astype(np.int64), 0, size - 1)
    part = (places - one * lower) / one
    lower = np.minimum(lower, size - 1)
    return np.stack([lower, upper], 1), np.stack([1 - part, part], 1)


def nearest(size: int, target: int, aligned: bool, half: bool) -> Array:
    """Return the index of the source of each element along a dimension, computed in float32 as TFLite does.

    Example:
        >>> nearest(4, 2, False, False), nearest(4, 2, False, True)
        (array([0, 2]), array([1, 3]))
    """
    scale = np.float32((size - 1) / (target - 1) if aligned and target > 1 else size / target)
    places = (np.arange(target, dtype=np.float32) + np.float32(0.5 if half else 0)) * scale
    found = np.floor(places + np.float32(0.5)) if aligned else np.floor(places)
    return np.clip(found, 0, size - 1).astype(np.int64)


@lowers(RESIZE_NEAREST_NEIGHBOR=4, ranks={0: (4, 4)})
def resize_nearest(call: TfliteCall) -> Result:
    """Copies of the nearest pixels."""
    aligned, half = bool(call.option("AlignCorners", False)), bool(call.option("HalfPixelCenters", False))
    y = call.moved(0)
    for axis, target in zip((1, 2), _sizes(call), strict=True):
        indices = nearest(call.shape(0)[axis], target, aligned, half)
        y = call.build.gather(y, call.constant(indices, "int32"), axis=axis)
    return call.bare(y)
