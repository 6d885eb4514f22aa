"""Strides, dilations and paddings of windows, as TensorFlow.js states them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from webnn_wgpu import MLTypeError

Pad: TypeAlias = "str | int | Sequence[Sequence[int]]"
Sizes: TypeAlias = "int | Sequence[int]"


def sizes_of(given: Sizes, rank: int = 2) -> list[int]:
    """Return a number for each spatial dimension."""
    return [given] * rank if isinstance(given, int) else [*given, *given] if len(given) == 1 and rank == 2 else list(given)


def paddings(
    pad: Pad,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    data_format: str = "NHWC",
) -> list[tuple[int, int]]:
    """Return the padding before and after, for each spatial dimension.

    Args:
        pad: "same", "valid", a number, or pairs for all dimensions.
        sizes: the spatial dimensions of the input.
        window: the sizes of the window.
        strides: its strides.
        dilations: its dilations.
        data_format: the order of the dimensions, of which the first and the channels have no padding.
    """
    if pad == "valid":
        return [(0, 0)] * len(sizes)
    if isinstance(pad, int):
        return [(pad, pad)] * len(sizes)
    if pad == "same":
        found: list[tuple[int, int]] = []
        for size, length, stride, dilation in zip(sizes, window, strides, dilations, strict=True):
            reach = (length - 1) * dilation + 1
            total = max((-(-size // stride) - 1) * stride + reach - size, 0)
            found.append((total // 2, total - total // 2))
        return found
    if isinstance(pad, str):
        raise MLTypeError("pad must be known", operator="tfjs", got=repr(pad), allowed="same, valid, a number, pairs")
    pairs = pad[1:-1] if data_format[-1] == "C" else pad[2:]
    return [(before, after) for before, after in pairs]


def joined(pads: Sequence[tuple[int, int]]) -> list[int]:
    """Return paddings in WebNN's order."""
    return [number for pair in pads for number in pair]


def layout_of(data_format: str) -> str:
    """Return WebNN's name of the order of the dimensions of images."""
    if data_format not in ("NHWC", "NCHW"):
        raise MLTypeError("data_format must be known", operator="tfjs", got=repr(data_format), allowed="NHWC, NCHW")
    return data_format.lower()


def spatial(shape: Sequence[int], data_format: str) -> Sequence[int]:
    """Return the spatial dimensions of a shape."""
    return shape[1:-1] if data_format[-1] == "C" else shape[2:]
