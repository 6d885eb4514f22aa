"""Pooling, and normalizations of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, gradients, ops, with_gradient

from ._convert import TensorLike, as_floats, with_batch
from ._windows import Pad, Sizes, joined, paddings, sizes_of
from .arrays import pad as padded
from .arrays import reshape, stack, transpose
from .convolutions import window_parts
from .creation import constant

_LOWEST = -3.4e38

_POOLS = {"max": ops.max_pool2d, "avg": ops.average_pool2d}


class MaxPoolWithArgmax(NamedTuple):
    """The largest elements of windows.

    Attributes:
        result: the elements.
        indexes: their places.
    """

    result: Tensor
    indexes: Tensor


def _pool2d(
    kind: str, images: Tensor, window: Sequence[int], strides: Sequence[int], pad: Pad, dilations: Sequence[int]
) -> Tensor:
    pads = paddings(pad, images.shape[1:3], window, strides, dilations)
    options = {"window_dimensions": list(window), "strides": list(strides), "dilations": list(dilations), "layout": "nhwc"}
    found = _POOLS[kind](images, padding=joined(pads), **options)
    if kind == "max" or not any(joined(pads)):
        return found

    def gradient(dy: Tensor) -> list[Tensor]:
        # In TensorFlow.js, the gradient counts padding, although the means do not.
        counting = ops.average_pool2d(padded(images, [(0, 0), *pads, (0, 0)]), **options)
        return gradients(counting, [images], [dy])

    return with_gradient(found, [images], gradient)


def _pooled(kind: str, x: TensorLike, window: Sizes, strides: Sizes, pad: Pad, dilations: Sizes = 1) -> Tensor:
    """Return pools of images, or of one image."""

    def pooled(images: Tensor) -> Tensor:
        return _pool2d(kind, images, sizes_of(window), sizes_of(strides), pad, sizes_of(dilations))

    return with_batch(as_floats(x), pooled, f"{kind}_pool")


def max_pool(x: TensorLike, filter_size: Sizes, strides: Sizes, pad: Pad, dim_rounding_mode: str | None = None) -> Tensor:
    """Return the largest pixels of windows.

    Args:
        x: images, channels last.
        filter_size: the sizes of the window.
        strides: its steps.
        pad: "same", "valid", a number, or pairs for all dimensions.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    return _pooled("max", x, filter_size, strides, pad)


def avg_pool(x: TensorLike, filter_size: Sizes, strides: Sizes, pad: Pad, dim_rounding_mode: str | None = None) -> Tensor:
    """Return the means of the pixels of windows, without padding.

    Args:
        x: images, channels last.
        filter_size: the sizes of the window.
        strides: its steps.
        pad: "same", "valid", a number, or pairs for all dimensions.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    return _pooled("avg", x, filter_size, strides, pad)


def pool(
    input: TensorLike,
    window_shape: Sizes,
    pooling_type: str,
    pad: Pad,
    dilations: Sizes = 1,
    strides: Sizes = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return means or largest pixels of windows.

    Args:
        input: images, channels last.
        window_shape: the sizes of the window.
        pooling_type: "avg" or "max".
        pad: "same", "valid", a number, or pairs for all dimensions.
        dilations: the distances of the pixels of a window.
        strides: the steps of the window.
        dim_rounding_mode: has no effect: sizes are rounded down.

    Raises:
        MLTypeError: an unknown type.
    """
    if pooling_type not in _POOLS:
        raise MLTypeError("pooling_type must be known", operator="pool", got=repr(pooling_type), allowed=", ".join(_POOLS))
    return _pooled(pooling_type, input, window_shape, strides, pad, dilations)


def _pool3d(kind: str, x: TensorLike, filter_size: Sizes, strides: Sizes, pad: str, data_format: str) -> Tensor:
    """Return pools of volumes: of the images, and then of their layers."""
    volumes = as_floats(x)
    if data_format == "NCDHW":
        found = _pool3d(kind, transpose(volumes, [0, 2, 3, 4, 1]), filter_size, strides, pad, "NDHWC")
        return transpose(found, [0, 4, 1, 2, 3])
    window, steps = sizes_of(filter_size, 3), sizes_of(strides, 3)
    batch, depth, *image = volumes.shape
    flat = _pool2d(kind, reshape(volumes, [batch * depth, *image]), window[1:], steps[1:], pad, [1, 1])
    rows = reshape(flat, [batch, depth, -1, image[-1]])
    found = _pool2d(kind, rows, [window[0], 1], [steps[0], 1], pad, [1, 1])
    return reshape(found, [batch, found.shape[1], *flat.shape[1:]])


def max_pool3d(
    x: TensorLike,
    filter_size: Sizes,
    strides: Sizes,
    pad: str,
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the largest elements of windows of volumes.

    Args:
        x: volumes.
        filter_size: the sizes of the window.
        strides: its steps.
        pad: "same" or "valid".
        dim_rounding_mode: has no effect: sizes are rounded down.
        data_format: "NDHWC" or "NCDHW".
    """
    return _pool3d("max", x, filter_size, strides, pad, data_format)


def avg_pool3d(
    x: TensorLike,
    filter_size: Sizes,
    strides: Sizes,
    pad: str,
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the means of windows of volumes, without padding.

    Args:
        x: volumes.
        filter_size: the sizes of the window.
        strides: its steps.
        pad: "same" or "valid".
        dim_rounding_mode: has no effect: sizes are rounded down.
        data_format: "NDHWC" or "NCDHW".
    """
    return _pool3d("avg", x, filter_size, strides, pad, data_format)


def max_pool_with_argmax(
    x: TensorLike, filter_size: Sizes, strides: Sizes, pad: Pad, include_batch_in_index: bool = False
) -> MaxPoolWithArgmax:
    """Return the largest pixels of windows, and their places in the image.

    Args:
        x: images, channels last.
        filter_size: the sizes of the window.
        strides: its steps.
        pad: "same", "valid", a number, or pairs for all dimensions.
        include_batch_in_index: whether places count over all images.
    """
    images = as_floats(x)
    window, steps = sizes_of(filter_size), sizes_of(strides)
    pads = paddings(pad, images.shape[1:3], window, steps, [1, 1])
    batch = images.shape[0]
    numbers = np.arange(images.size, dtype=np.int32).reshape(images.shape)
    if not include_batch_in_index:
        numbers = np.broadcast_to(numbers[:1], images.shape)
    places = constant(numbers, ("places", include_batch_in_index, batch))
    around = [(0, 0), *pads, (0, 0)]
    parts = [part for _, part in window_parts(padded(images, around, _LOWEST), window, steps, [1, 1])]
    numbered = [part for _, part in window_parts(padded(places, around, 0), window, steps, [1, 1])]
    choices = stack(parts, 4)
    best = ops.arg_max(choices, 4, keep_dimensions=True, output_data_type="int32")
    indexes = ops.gather_elements(stack(numbered, 4), best, axis=4)
    return MaxPoolWithArgmax(ops.reduce_max(choices, axes=[4]), reshape(indexes, indexes.shape[:4]))


def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float = 0.001,
) -> Tensor:
    """Return elements with mean and variance taken out, and scale and offset added.

    Args:
        x: a tensor.
        mean: the means.
        variance: the variances.
        offset: the offsets, or None.
        scale: the factors, or None.
        variance_epsilon: a small number, added to the variances.
    """
    factor = ops.reciprocal(ops.sqrt(as_floats(variance) + variance_epsilon))
    if scale is not None:
        factor = factor * as_floats(scale)
    found = (as_floats(x) - as_floats(mean)) * factor
    return found if offset is None else found + as_floats(offset)


def local_response_normalization(
    x: TensorLike, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5
) -> Tensor:
    """Return pixels divided by the strength of the channels around.

    Args:
        x: images, channels last.
        depth_radius: how many channels on either side count.
        bias: a number, added to the strength.
        alpha: the factor of the strength.
        beta: the exponent of the strength.
    """
    images = as_floats(x)
    channels = images.shape[-1]
    around = padded(images * images, [(0, 0)] * (images.ndim - 1) + [(depth_radius, depth_radius)])
    strength: Tensor | None = None
    for first in range(2 * depth_radius + 1):
        part = around[..., first : first + channels]
        strength = part if strength is None else strength + part
    assert strength is not None
    return images * ops.pow(strength * alpha + bias, -beta)
