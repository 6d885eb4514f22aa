"""Signals: TensorFlow.js's namespace `signal`."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu.eager import Tensor, ops
from webnn_wgpu.eager import tensor as eager_tensor

from ._convert import TensorLike, as_tensor
from .arrays import pad as padded
from .creation import constant


def _cosine_window(length: int, first: float, second: float) -> Tensor:
    angles = 2 * math.pi * np.arange(length) / (length - length % 2)
    return eager_tensor((first - second * np.cos(angles)).astype(np.float32))


def hamming_window(window_length: int) -> Tensor:
    """Return a Hamming window.

    Args:
        window_length: the number of elements.
    """
    return _cosine_window(window_length, 0.54, 0.46)


def hann_window(window_length: int) -> Tensor:
    """Return a Hann window.

    Args:
        window_length: the number of elements.
    """
    return _cosine_window(window_length, 0.5, 0.5)


def frame(signal: TensorLike, frame_length: int, frame_step: int, pad_end: bool = False, pad_value: float = 0) -> Tensor:
    """Return parts of a signal, one a row.

    Args:
        signal: a vector.
        frame_length: the length of a part.
        frame_step: the distance of their beginnings.
        pad_end: whether the signal is continued, so that every step has a part.
        pad_value: the elements that continue it.
    """
    given = as_tensor(signal)
    size = given.size
    count = -(-size // frame_step) if pad_end else (size - frame_length) // frame_step + 1
    missing = max((count - 1) * frame_step + frame_length - size, 0)
    if missing:
        given = padded(given, [(0, missing)], pad_value)
    places = np.arange(count, dtype=np.int32)[:, None] * frame_step + np.arange(frame_length, dtype=np.int32)
    return ops.gather(given, constant(places, ("frames", count, frame_length, frame_step)), axis=0)
