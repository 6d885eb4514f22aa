"""Sums of two 1 x 1 convolutions, such as residual blocks with a projection shortcut have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.unit.rewrites import normal

if TYPE_CHECKING:
    from tests.support import Sketch


def convolved(s: Sketch, x: int, columns: int = 64, *, bias: bool = True, seed: int = 0, **options: Any) -> int:
    """Return a convolution of an image whose channels come last, of 1 x 1 taps by default."""
    layout = {"input_layout": "nhwc", "filter_layout": "ohwi"} | options
    order, depth, taps = layout["filter_layout"], s.type(x).shape[-1], layout.pop("taps", 1)
    sizes = {"o": columns, "h": taps, "w": taps, "i": depth // options.get("groups", 1)}
    dtype = s.type(x).numpy
    weights = s.constant(layout.pop("weights", normal(*(sizes[letter] for letter in order), seed=seed, dtype=dtype)))
    return s.apply("conv2d", x, weights, s.constant(normal(columns, seed=seed + 1, dtype=dtype)) if bias else None, **layout)


def block(
    s: Sketch,
    *,
    strides: int = 2,
    bias: tuple[bool, bool] = (True, True),
    swapped: bool = False,
    dtype: Any = np.float32,
    **options: Any,
) -> int:
    """Return the sum of a 1 x 1 convolution and of the projection of an image whose pixels are `strides` apart."""
    near = s.input(normal(1, 12, 12, 32, dtype=dtype))
    image = s.input(normal(1, 12 * strides, 11 * strides + 1, 64, seed=9, dtype=dtype))
    last = convolved(s, near, bias=bias[0])
    projection = convolved(s, image, bias=bias[1], seed=3, strides=[strides, strides], **options)
    return s.apply("add", *((projection, last) if swapped else (last, projection)))
