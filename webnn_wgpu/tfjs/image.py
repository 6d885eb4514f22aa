"""Images: TensorFlow.js's namespace `image`. Images are batch, height, width, channels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, cast, gradients, ops, with_gradient
from webnn_wgpu.eager import tensor as eager_tensor

from ._convert import TensorLike, as_floats, as_tensor
from .arrays import expand_dims, reshape, stack, tile
from .creation import constant


def _places(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> NDArray[Any]:
    """Return the place in an image for each pixel of a resized one, along a side."""
    aligned = align_corners and new > 1
    ratio = (old - 1) / (new - 1) if aligned else old / new
    pixels = np.arange(new)
    return ratio * (pixels + 0.5) if half_pixel_centers else ratio * pixels


def resize_bilinear(
    images: TensorLike, size: Sequence[int], align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """Return images in another size, by linear interpolation.

    Args:
        images: the images.
        size: height and width.
        align_corners: whether the pixels of the corners stay in the corners.
        half_pixel_centers: whether coordinates are those of the centers of pixels.
    """
    found = as_floats(images)
    for axis, new in zip((found.ndim - 3, found.ndim - 2), size, strict=True):
        old = found.shape[axis]
        places = _places(old, new, align_corners, half_pixel_centers) - (0.5 if half_pixel_centers else 0)
        low = np.maximum(np.floor(places), 0)
        key = ("bilinear", old, new, align_corners, half_pixel_centers)
        shares = (places - low).astype(np.float32).reshape([-1] + [1] * (found.ndim - 1 - axis))
        first = ops.gather(found, constant(low.astype(np.int32), (*key, 0)), axis=axis)
        high = np.minimum(np.ceil(places), old - 1).astype(np.int32)
        second = ops.gather(found, constant(high, (*key, 1)), axis=axis)
        found = first + (second - first) * constant(shares, (*key, axis - found.ndim))
    return found


def resize_nearest_neighbor(
    images: TensorLike, size: Sequence[int], align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """Return images in another size, of the nearest pixels.

    Args:
        images: the images.
        size: height and width.
        align_corners: whether the pixels of the corners stay in the corners.
        half_pixel_centers: whether coordinates are those of the centers of pixels.
    """
    given = as_tensor(images)
    result = _nearest(given, size, align_corners, half_pixel_centers)
    if not half_pixel_centers or not given.dtype.startswith("float"):
        return result

    # In TensorFlow.js, the gradient is that without centers of pixels.
    def gradient(dy: Tensor) -> list[Tensor]:
        return gradients(_nearest(given, size, align_corners, False), [given], [dy])

    return with_gradient(result, [given], gradient)


def _nearest(images: Tensor, size: Sequence[int], align_corners: bool, half_pixel_centers: bool) -> Tensor:
    found = images
    for axis, new in zip((found.ndim - 3, found.ndim - 2), size, strict=True):
        old = found.shape[axis]
        places = _places(old, new, align_corners, half_pixel_centers)
        nearest = np.floor(places + 0.5) if align_corners else np.floor(places)
        rows = np.clip(nearest, 0, old - 1).astype(np.int32)
        found = ops.gather(found, constant(rows, ("nearest", old, new, align_corners, half_pixel_centers)), axis=axis)
    return found


def _sampled(images: Tensor, batch: Tensor, y: Tensor, x: Tensor, fill: float) -> Tensor:
    """Return pixels at whole coordinates, and a number outside of the image."""
    height, width = images.shape[1:3]
    inside = ops.logical_and(ops.logical_and(y >= 0, y <= height - 1), ops.logical_and(x >= 0, x <= width - 1))
    indices = [batch, ops.clamp(y, min_value=0, max_value=height - 1), ops.clamp(x, min_value=0, max_value=width - 1)]
    found = ops.gather_nd(images, stack([cast(each, "int32") for each in indices], y.ndim))
    return ops.where(expand_dims(inside, -1), found, fill)


def _interpolated(images: Tensor, batch: Tensor, y: Tensor, x: Tensor, method: str, fill: float) -> Tensor:
    """Return pixels at any coordinates."""
    if method == "nearest":
        return _sampled(images, batch, ops.floor(y + 0.5), ops.floor(x + 0.5), fill)
    if method != "bilinear":
        raise MLTypeError("the interpolation must be known", operator="image", got=repr(method), allowed="nearest, bilinear")
    top, left = ops.floor(y), ops.floor(x)
    down, right = expand_dims(y - top, -1), expand_dims(x - left, -1)

    def row(at: Tensor) -> Tensor:
        first, second = (_sampled(images, batch, at, column, fill) for column in (left, left + 1))
        return first * (1 - right) + second * right

    return row(top) * (1 - down) + row(top + 1) * down


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_ind: TensorLike,
    crop_size: Sequence[int],
    method: str = "bilinear",
    extrapolation_value: float = 0,
) -> Tensor:
    """Return parts of images in one size.

    Args:
        image: the images.
        boxes: top, left, bottom and right of each part, as shares of the image.
        box_ind: the image of each part.
        crop_size: height and width of the results.
        method: "bilinear" or "nearest".
        extrapolation_value: the pixels outside of the image.
    """
    images, given = as_floats(image), as_floats(boxes)
    height, width = images.shape[1:3]
    rows, columns = crop_size
    top, left, bottom, right = ops.split(given, 4, axis=1)

    def places(first: Tensor, last: Tensor, count: int, length: int) -> Tensor:
        if count == 1:
            return (first + last) * (0.5 * (length - 1))
        steps = constant(np.arange(count, dtype=np.float32), ("steps", count))
        return first * (length - 1) + (last - first) * ((length - 1) / (count - 1)) * steps

    y, x = places(top, bottom, rows, height), places(left, right, columns, width)
    shape = [given.shape[0], rows, columns]
    y = ops.expand(expand_dims(y, 2), shape)
    x = ops.expand(expand_dims(x, 1), shape)
    numbers = ops.expand(reshape(cast(as_tensor(box_ind), "float32"), [-1, 1, 1]), shape)
    inside = ops.logical_and(ops.logical_and(y >= 0, y <= height - 1), ops.logical_and(x >= 0, x <= width - 1))
    y, x = ops.clamp(y, min_value=0, max_value=height - 1), ops.clamp(x, min_value=0, max_value=width - 1)
    found = _interpolated(images, numbers, y, x, method, 0)
    return ops.where(expand_dims(inside, -1), found, extrapolation_value)


def transform(
    image: TensorLike,
    transforms: TensorLike,
    interpolation: str = "nearest",
    fill_mode: str = "constant",
    fill_value: float = 0,
    output_shape: Sequence[int] | None = None,
) -> Tensor:
    """Return images under projective transforms.

    Args:
        image: the images.
        transforms: eight numbers for each image, or for all.
        interpolation: "nearest" or "bilinear".
        fill_mode: the pixels outside of the image: "constant", "reflect", "wrap" or "nearest".
        fill_value: the pixels outside for "constant".
        output_shape: height and width. None is that of the images.
    """
    images, given = as_floats(image), as_floats(transforms)
    batch, height, width = images.shape[:3]
    rows, columns = output_shape or (height, width)
    shape = [batch, rows, columns]
    y = constant(np.arange(rows, dtype=np.float32).reshape(1, -1, 1), ("rows", rows))
    x = constant(np.arange(columns, dtype=np.float32).reshape(1, 1, -1), ("columns", columns))
    a = [reshape(part, [-1, 1, 1]) for part in ops.split(given, 8, axis=1)]
    depth = a[6] * x + a[7] * y + 1
    numbers = constant(np.arange(batch, dtype=np.float32).reshape(-1, 1, 1), ("images", batch))
    in_x, in_y = (
        _mapped(ops.expand((u * x + v * y + w) / depth, shape), length, fill_mode)
        for (u, v, w), length in ((a[:3], width), (a[3:6], height))
    )
    return _interpolated(images, ops.expand(numbers, shape), in_y, in_x, interpolation, fill_value)


def _mapped(place: Tensor, length: int, mode: str) -> Tensor:
    """Return coordinates within the image for those outside of it."""
    if mode == "constant":
        return place
    last = length - 1
    if mode == "reflect":
        around = ops.ext.mod(place, 2.0 * length)
        place = ops.where(around < length, around, 2 * length - 1 - around)
    elif mode == "wrap":
        turns = 0 if last == 0 else ops.floor(place / last)
        place = ops.where(ops.logical_or(place < 0, place > last), place - turns * last, place)
    elif mode != "nearest":
        raise MLTypeError(
            "fill_mode must be known", operator="transform", got=repr(mode), allowed="constant, reflect, wrap, nearest"
        )
    return ops.clamp(place, min_value=0, max_value=last)


def rotate_with_offset(
    image: TensorLike, radians: float, fill_value: float | Sequence[float] = 0, center: float | Sequence[float] = 0.5
) -> Tensor:
    """Return images turned around a point, of the nearest pixels.

    Args:
        image: the images.
        radians: the angle.
        fill_value: the pixels outside of the image: a number, or one for each channel.
        center: the point as a share of width and height: a number, or two.
    """
    images = as_floats(image)
    height, width, channels = images.shape[1:]
    share_x, share_y = (center, center) if isinstance(center, int | float) else center
    x0, y0 = width * share_x, height * share_y
    y, x = np.mgrid[:height, :width]
    sine, cosine = math.sin(radians), math.cos(radians)
    in_x = np.floor((x - x0) * cosine - (y - y0) * sine + x0 + 0.5)
    in_y = np.floor((x - x0) * sine + (y - y0) * cosine + y0 + 0.5)
    inside = (in_x >= 0) & (in_x < width) & (in_y >= 0) & (in_y < height)
    places = np.where(inside, in_y * width + in_x, 0).astype(np.int32).reshape(-1)
    pixels = ops.gather(reshape(images, [images.shape[0], height * width, channels]), eager_tensor(places), axis=1)
    # A number fills the colors, and leaves the fourth channel opaque.
    fill = [255.0 if c == 3 else fill_value for c in range(channels)] if isinstance(fill_value, int | float) else fill_value
    mask = eager_tensor(inside.reshape(1, -1, 1))
    return reshape(ops.where(mask, pixels, eager_tensor(list(fill), "float32")), images.shape)


def flip_left_right(image: TensorLike) -> Tensor:
    """Return images mirrored.

    Args:
        image: the images.
    """
    return ops.reverse(as_tensor(image), axes=[2])


def grayscale_to_rgb(image: TensorLike) -> Tensor:
    """Return images whose three channels are the only one.

    Args:
        image: images of one channel.
    """
    given = as_tensor(image)
    return tile(given, [*[1] * (given.ndim - 1), 3])


def rgb_to_grayscale(image: TensorLike) -> Tensor:
    """Return the brightness of images.

    Args:
        image: images of three channels.
    """
    given = as_tensor(image)
    shares = constant(np.array([[0.2989], [0.587], [0.114]], np.float32), "brightness")
    found = ops.matmul(reshape(as_floats(given), [-1, 3]), shares)
    return cast(reshape(found, [*given.shape[:-1], 1]), given.dtype)


def non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size: int, iou_threshold: float = 0.5, score_threshold: float = -math.inf
) -> Tensor:
    """Return the boxes with the best scores that do not overlap much. The call reads the tensors.

    Args:
        boxes: two opposite corners of each box.
        scores: the score of each box.
        max_output_size: how many boxes at most.
        iou_threshold: the share of two boxes that may overlap.
        score_threshold: the least score.
    """
    corners, values = as_floats(boxes).numpy(), as_floats(scores).numpy()
    low, high = np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])
    areas = np.prod(high - low, axis=1)
    kept: list[int] = []
    for number in np.argsort(-values, kind="stable"):
        if values[number] <= score_threshold or len(kept) == max_output_size:
            break
        sides = np.clip(np.minimum(high[kept], high[number]) - np.maximum(low[kept], low[number]), 0, None)
        common = np.prod(sides, axis=1)
        union = areas[kept] + areas[number] - common
        if not np.any(common > iou_threshold * union):
            kept.append(int(number))
    return eager_tensor(np.array(kept, np.int32))
