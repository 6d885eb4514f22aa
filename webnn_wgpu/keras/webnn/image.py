"""`keras.ops.image` on the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import backend
from numpy.typing import NDArray

from . import core, host
from .dtypes import is_float
from .elementwise import floating
from .movement import expand_dims, moveaxis, take
from .products import matmul
from .tensor import Tensor, cast, of_array


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Tensor:
    """The brightness of colors."""
    found = core.convert_to_tensor(images)
    axis = -1 if backend.standardize_data_format(data_format) == "channels_last" else -3
    if found.ndim not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={found.shape}"
        )
    channels = found.shape[axis]
    if channels not in (1, 3):
        raise ValueError(
            f"Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with shape: images.shape={found.shape}"
        )
    if channels == 1:
        return found
    parts = moveaxis(cast(floating(found), "float32"), axis, 0)
    grey = parts[0] * 0.2989 + parts[1] * 0.587 + parts[2] * 0.114
    return expand_dims(cast(grey, found.dtype), axis)


def _triangle(x: NDArray[Any]) -> NDArray[Any]:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: NDArray[Any]) -> NDArray[Any]:
    """Return the kernel of R. Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981, with a = -0.5."""
    x = np.abs(x)
    near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(radius: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0)


_KERNELS = {"bilinear": _triangle, "bicubic": _cubic, "lanczos3": _lanczos(3), "lanczos5": _lanczos(5)}


def _shares(size: int, new_size: int, interpolation: str, antialias: bool) -> NDArray[np.float32]:
    """Return the matrix of the shares that old elements have in new ones."""
    ratio = size / new_size
    distances = (np.arange(new_size) + 0.5) * ratio - 0.5 - np.arange(size)[:, None]
    weights = _KERNELS[interpolation](distances / (max(ratio, 1.0) if antialias else 1.0))
    return (weights / weights.sum(0)).astype(np.float32)


def _resized(x: Tensor, axis: int, size: int, interpolation: str, antialias: bool) -> Tensor:
    """Resize one dimension: by a product with a matrix, or by a gather for the nearest elements."""
    given = x.shape[axis]
    if given == size:
        return x
    if interpolation == "nearest":
        return take(x, np.floor((np.arange(size) + 0.5) * (given / size)).astype(np.int32), axis)
    shares = of_array(_shares(given, size, interpolation, antialias), "float32")
    return moveaxis(matmul(moveaxis(x, axis, -1), shares), -1, axis)


def resize(
    images: Any,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Images of another size. Cropping, padding and integers of a smooth interpolation run on the host."""
    found = core.convert_to_tensor(images)
    plain = fill_mode == "constant" and not crop_to_aspect_ratio and not pad_to_aspect_ratio and found.ndim in (3, 4)
    known = interpolation == "nearest" or (interpolation in _KERNELS and is_float(found.dtype))
    if not plain or not known or found.value is None or len(size) != 2:
        options = (antialias, crop_to_aspect_ratio, pad_to_aspect_ratio, fill_mode, fill_value, data_format)
        return host.fall_back("image", "resize", found, size, interpolation, *options)
    last = backend.standardize_data_format(data_format) == "channels_last"
    result = found if interpolation == "nearest" else cast(found, "float32")
    for axis, wanted in zip((-3, -2) if last else (-2, -1), size, strict=True):
        result = _resized(result, found.ndim + axis, int(wanted), interpolation, antialias)
    return cast(result, found.dtype)


globals().update(host.functions("image"))
