"""Pictures and scores as TFLite's tools compute them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from webnn_wgpu import NotSupportedError
from webnn_wgpu.frontends.common.held import Array


def pixels_of(path: str | os.PathLike[str]) -> Array:
    """Return the pixels of a picture, uint8 [height, width, 3].

    Raises:
        NotSupportedError: Pillow is not installed, or cannot read the file.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise NotSupportedError("pictures need the package 'pillow'", hint="pip install 'webnn-wgpu[image]'") from error
    try:
        with Image.open(os.fspath(path)) as opened:
            return np.asarray(opened.convert("RGB"))
    except UnidentifiedImageError as error:
        raise NotSupportedError(str(error)) from error


def central(pixels: Array, fraction: float) -> Array:
    """Return the center of a picture, a fraction of each side."""
    height, width = pixels.shape[:2]
    rows, columns = round(height * fraction), round(width * fraction)
    top, left = (height - rows) // 2, (width - columns) // 2
    return pixels[top : top + rows, left : left + columns]


def resized(pixels: Array, height: int, width: int) -> Array:
    """Return a picture in another size as float32: bilinear, where pixel i reads at i * old / new.

    Example:
        >>> resized(np.uint8([[[0], [10]]]), 1, 4)[0, :, 0].tolist()
        [0.0, 5.0, 10.0, 10.0]
    """
    result = pixels.astype(np.float32)
    for axis, size in enumerate((height, width)):
        old = result.shape[axis]
        places = np.arange(size, dtype=np.float32) * np.float32(old / size)
        low = np.minimum(places.astype(np.int64), old - 1)
        shape = [size if d == axis else 1 for d in range(3)]
        weight = (places - low).astype(np.float32).reshape(shape)
        first, second = np.take(result, low, axis), np.take(result, np.minimum(low + 1, old - 1), axis)
        result = first + (second - first) * weight
    return result


def input_for(details: dict[str, Any], pixels: Array, mean: float, std: float) -> Array:
    """Return a picture as a model's input [1, height, width, 3]: normalized floats, or pixels as integers."""
    shape = [int(size) for size in details["shape"]]
    if len(shape) != 4 or shape[3] != 3:
        raise NotSupportedError("the model's input must be a picture [1, height, width, 3]", got=str(shape))
    dtype = np.dtype(details["dtype"])
    values = resized(pixels, shape[1], shape[2])
    if dtype.kind == "f":
        return ((values - np.float32(mean)) / np.float32(std)).astype(dtype)[None]
    return (np.trunc(values) - (128 if dtype == np.int8 else 0)).astype(dtype)[None]


def scores_of(output: Array) -> Array:
    """Return scores as numbers: those of 8 bits as parts of their range."""
    values = output.reshape(-1).astype(np.float32)
    if output.dtype == np.uint8:
        return values / np.float32(255)
    return (values + np.float32(128)) / np.float32(256) if output.dtype == np.int8 else values


def labels_of(path: Path) -> list[str]:
    """Return the lines of a label file."""
    return path.read_text(encoding="utf-8", errors="replace").splitlines()
