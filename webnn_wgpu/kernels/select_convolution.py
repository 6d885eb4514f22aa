"""The kernels of convolutions: the variants that a device can run. Costs choose among them."""

from __future__ import annotations

import math

from ..core.caps import Caps
from ..costs import ConvolutionSize
from .element import QUAD
from .select import supports

VARIANTS = ("implicit", "tiled", "plain", "depthwise", "pointwise", "winograd", "winograd_tiled")
"""The kernel variants of convolutions.

`pointwise` is a matrix product. `winograd` is two transforms with sixteen matrix products between them, and `winograd_tiled`
one kernel in their place. The others are templates `shaders/ops/conv2d.<variant>.wgsl.j2`.
"""

WINOGRAD = ("winograd", "winograd_tiled")
"""The variants that use Winograd's algorithm, whose results are less exact: in three kernels, or in one."""


def possible(caps: Caps, size: ConvolutionSize, *, constant_filter: bool) -> list[str]:
    """Return the variants that can compute a convolution on a device. The arguments are those of `obstacle`."""
    return [variant for variant in VARIANTS if not obstacle(caps, size, variant, constant_filter=constant_filter)]


def obstacle(caps: Caps, size: ConvolutionSize, variant: str, *, constant_filter: bool) -> str:
    """Return the reason why a variant cannot compute a convolution on a device, or "" if it can.

    Args:
        caps: the device.
        size: the convolution.
        variant: one of `VARIANTS`.
        constant_filter: whether the filter is known when the graph is built.
    """
    if variant == "implicit":
        return "" if supports(caps, "subgroup") else f"the device's subgroup size is {caps.subgroup_size}"
    if variant == "depthwise":
        return "" if size.depth == 1 else f"a group has {size.depth} input channels"
    if variant == "pointwise":
        steps = (*size.kernel, *size.strides, size.groups)
        same = set(steps) == {1} and set(size.padding) == {0} and size.input == size.output
        return "" if same else "it takes one tap, one group, strides of 1 and no padding"
    if variant in WINOGRAD:
        return _winograd_obstacle(caps, size, constant_filter)
    return ""


def _winograd_obstacle(caps: Caps, size: ConvolutionSize, constant_filter: bool) -> str:
    if size.transposed or size.groups > 1 or (*size.kernel, *size.strides, *size.dilations) != (3, 3, 1, 1, 1, 1):
        return "it takes 3 x 3 taps, one group, strides and dilations of 1"
    if size.depth % QUAD or size.columns % QUAD:
        return "it takes channels in multiples of 4"
    if not constant_filter:
        return "the filter is not a constant"
    pixels = math.prod(size.input) * size.depth, math.prod(size.output) * size.columns
    widest = 4 * max(size.images * max(pixels), 16 * size.depth * size.columns)
    if widest > caps.limit("max-storage-buffer-binding-size"):
        return f"input, output and transformed filter take up to {widest} bytes, more than the device can bind"
    return ""
