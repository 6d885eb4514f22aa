"""`keras.ops.image` on the backend."""

from __future__ import annotations

from typing import Any

from keras.src import backend

from . import core, host
from .elementwise import floating
from .movement import expand_dims, moveaxis
from .tensor import Tensor, cast


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Tensor:
    """The brightness of colors."""
    found = core.convert_to_tensor(images)
    axis = -1 if backend.standardize_data_format(data_format) == "channels_last" else -3
    if found.ndim not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={found.shape}"
        )
    parts = moveaxis(cast(floating(found), "float32"), axis, 0)
    grey = parts[0] * 0.2989 + parts[1] * 0.587 + parts[2] * 0.114
    return expand_dims(cast(grey, found.dtype), axis)


globals().update(host.functions("image"))
