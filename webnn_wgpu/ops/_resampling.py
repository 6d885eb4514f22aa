"""Resampling along one dimension as ONNX's Resize defines it: the old elements of every new element, and their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..ir.graph import Array

NEAREST: Mapping[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""How a position is rounded to the nearest element, by ONNX's name."""

COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
"""How positions in the output become positions in the input, by ONNX's name."""

MODES = ("nearest", "linear", "cubic")


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """The options of a resampling.

    Attributes:
        mode: one of `MODES`.
        nearest_mode: one of `NEAREST`.
        coordinates: one of `COORDINATES`.
        cubic_coeff_a: the parameter of the cubic filter.
        antialias: whether the filter widens if the output has fewer elements than the input.
        exclude_outside: whether elements beyond the ends have no weight. Otherwise the elements at the ends replace them.
    """

    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"
    coordinates: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False


class Taps(NamedTuple):
    """The old elements, with their weights, whose sums are the new elements.

    Attributes:
        indices: the indices of the old elements, int32[new, taps].
        weights: the weights of the old elements, float32[new, taps].
        outside: whether a new element is beyond the ends, so that it has a fixed value, bool[new].
    """

    indices: Array
    weights: Array
    outside: Array


MOST_TAPS = 1 << 24
"""The maximum number of taps of a dimension: the host computes an index and a weight for each."""


def taps_of_element(scale: float, options: Resampling) -> int:
    """Return how many old elements are read for a new one, before those without weight are left out."""
    return 1 if options.mode == "nearest" else 2 - 2 * _first_tap(scale, options)


def _first_tap(scale: float, options: Resampling) -> int:
    """Return the first old element that is read for a new one, relative to the one before it."""
    support = 1 if options.mode == "linear" else 2
    # The kernel spans `support` elements to either side, or new elements where it is stretched. The quotient stays finite: a
    # smaller scale has more taps than are allowed as well.
    shrink = max(min(scale, 1.0), 1 / MOST_TAPS) if options.antialias else 1.0
    return int(np.floor(-support / shrink)) + 1


def taps(size: int, new_size: int, scale: float, roi: tuple[float, float], options: Resampling) -> Taps:
    """Return the taps of a dimension that is resampled from `size` to `new_size` elements.

    Args:
        size: the number of old elements.
        new_size: the number of new elements.
        scale: the ratio of new to old elements that the coordinates use.
        roi: the start and the end of the output in the input, from 0 to 1, for tf_crop_and_resize.
        options: the options of the resampling.

    >>> found = taps(2, 4, 2.0, (0, 1), Resampling(mode="linear"))
    >>> found.indices.tolist(), found.weights.tolist()
    ([[0, 0], [0, 1], [0, 1], [1, 1]], [[0.25, 0.75], [0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
    """
    x = _positions(size, new_size, scale, roi, options.coordinates)
    cropped = options.coordinates == "tf_crop_and_resize"
    outside = ((x < 0) | (x > size - 1)) if cropped else np.zeros(new_size, bool)
    if options.mode == "nearest":
        indices = NEAREST[options.nearest_mode](x)[:, None]
        weights = np.ones((new_size, 1))
    else:
        kernel = _triangle if options.mode == "linear" else _cubic(options.cubic_coeff_a)
        shrink = min(scale, 1.0) if options.antialias else 1.0
        start = _first_tap(scale, options)
        indices = np.floor(x)[:, None] + np.arange(start, 2 - start)
        weights = kernel(np.abs(indices - x[:, None]) * shrink)
        weights /= weights.sum(1, keepdims=True)
        if options.exclude_outside:
            weights = np.where((indices < 0) | (indices > size - 1), 0, weights)
            total = weights.sum(1, keepdims=True)
            weights /= np.where(total == 0, 1, total)
        used = np.any(weights != 0, 0)
        indices, weights = indices[:, used], weights[:, used]
    return Taps(np.clip(indices, 0, size - 1).astype(np.int32), weights.astype(np.float32), outside)


def _positions(size: int, new_size: int, scale: float, roi: tuple[float, float], coordinates: str) -> Array:
    """Return the positions of the new elements among the old elements."""
    y = np.arange(new_size, dtype=np.float64)
    length = scale * size
    if coordinates == "align_corners":
        return y * (size - 1) / (length - 1) if length != 1 else np.zeros(new_size)
    if coordinates == "asymmetric":
        return y / scale
    if coordinates == "tf_crop_and_resize":
        start, end = roi
        if length == 1:
            return np.full(new_size, (start + end) * (size - 1) / 2)
        return y * (end - start) * (size - 1) / (length - 1) + start * (size - 1)
    if coordinates == "pytorch_half_pixel" and length == 1:
        return np.zeros(new_size)
    shift = size / 2 * (1 - new_size / length) if coordinates == "half_pixel_symmetric" else 0.0
    return shift + (y + 0.5) / scale - 0.5


def _triangle(x: Array) -> Array:
    return np.maximum(1 - x, 0)


def _cubic(a: float) -> Callable[[Array], Array]:
    # R. G. Keys, Cubic convolution interpolation for digital image processing, 1981, equation 15.
    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))

    return kernel
