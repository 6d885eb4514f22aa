"""Choosing the kernel of a convolution from the device's capabilities and the convolution's sizes, with the reason."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.caps import Caps
from .element import QUAD
from .select import Choice, ProductSize, subgroup_nanoseconds, supports

VARIANTS = ("implicit", "tiled", "plain", "depthwise", "pointwise", "winograd")
"""The ways a convolution is computed.

`implicit`, `tiled`, `plain` and `depthwise` are templates `shaders/ops/conv2d.<variant>.wgsl.j2`; `pointwise` is a matrix
product; `winograd` is two transforms with sixteen matrix products between them.
"""

WINOGRAD_CHANNELS = 32
"""Input and output channels from which Winograd's transforms are worth their memory traffic on hardware."""

WINOGRAD_PATCHES = 64
"""Patches of 2 x 2 output pixels from which its products are large enough to be fast there."""

_TRANSFORMED_NS = 2.5
"""What its transforms take on a software adapter for each of the 16 numbers of a patch and channel (measured)."""

_WORTH_ROUNDING = 0.95
"""The share of the time that it must not exceed there: its results are less exact, and take memory of their own."""

TILED_CHANNELS = 8
"""Output channels of a group up to which tiles of 32 columns would be mostly empty."""


@dataclass(frozen=True)
class ConvolutionSize:
    """The sizes of a convolution, whatever its layouts. Pairs are (height, width).

    Attributes:
        transposed: whether it is convTranspose2d.
        nhwc: whether channels are the innermost dimension of input and output.
        images: batch size.
        groups: groups of channels.
        depth: input channels of a group.
        columns: output channels of a group.
        input: pixels of an input image.
        output: pixels of an output image.
        kernel: taps.
        strides, dilations: steps.
        padding: rows above and columns to the left of the input.
    """

    transposed: bool
    nhwc: bool
    images: int
    groups: int
    depth: int
    columns: int
    input: tuple[int, int]
    output: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: tuple[int, int]

    @property
    def taps(self) -> int:
        """Taps of the filter."""
        return math.prod(self.kernel)

    @property
    def channels(self) -> int:
        """Output channels of all groups."""
        return self.groups * self.columns

    @property
    def product(self) -> ProductSize:
        """The matrix product under all taps: pixels x (taps x channels), one for each group."""
        return ProductSize(self.images * math.prod(self.output), self.columns, self.taps * self.depth, self.groups)

    @property
    def patches(self) -> tuple[int, int]:
        """Patches of 2 x 2 output pixels to an image."""
        return -(-self.output[0] // 2), -(-self.output[1] // 2)


def choose_convolution(caps: Caps, size: ConvolutionSize, *, constant_filter: bool) -> Choice:
    """Return the kernel variant for a convolution on a device.

    Args:
        caps: the device.
        size: the convolution.
        constant_filter: whether the filter is known when the graph is built.
    """

    def fits(variant: str) -> bool:
        return not obstacle(caps, size, variant, constant_filter=constant_filter)

    if fits("pointwise"):
        return Choice("pointwise", "one tap: a matrix product")
    if size.groups > 1 and fits("depthwise"):
        return Choice("depthwise", "one input channel per group")
    if fits("winograd") and _winograd_pays(caps, size):
        return Choice("winograd", f"3 x 3 with {size.depth} and {size.columns} channels: fewer multiplications")
    if caps.is_cpu:
        if fits("implicit"):
            return Choice("implicit", f"software adapter with subgroups of {caps.subgroup_size}")
        return Choice("plain", "software adapter without subgroups: sums in registers")
    if size.columns <= TILED_CHANNELS:
        return Choice("plain", f"hardware GPU, {size.columns} output channel(s) per group")
    return Choice("tiled", "hardware GPU: tiles in workgroup memory")


def obstacle(caps: Caps, size: ConvolutionSize, variant: str, *, constant_filter: bool) -> str:
    """Return why a variant cannot compute a convolution on a device; "" where it can."""
    if variant == "implicit":
        return "" if supports(caps, "subgroup") else f"the device's subgroup size is {caps.subgroup_size}"
    if variant == "depthwise":
        return "" if size.depth == 1 else f"a group has {size.depth} input channels"
    if variant == "pointwise":
        steps = (*size.kernel, *size.strides, size.groups)
        same = set(steps) == {1} and set(size.padding) == {0} and size.input == size.output
        return "" if same else "it takes one tap, one group, strides of 1 and no padding"
    if variant == "winograd":
        return _winograd_obstacle(caps, size, constant_filter)
    return ""


def _winograd_pays(caps: Caps, size: ConvolutionSize) -> bool:
    """Whether Winograd's transforms take less time than they save."""
    patches = size.images * math.prod(size.patches)
    if not (caps.is_cpu and supports(caps, "subgroup")):
        return min(size.depth, size.columns) >= WINOGRAD_CHANNELS and patches >= WINOGRAD_PATCHES
    products = subgroup_nanoseconds(caps, ProductSize(patches, size.columns, size.depth, 16), texture=True)
    transforms = _TRANSFORMED_NS * 16 * patches * (size.depth + size.columns)
    return products + transforms < _WORTH_ROUNDING * subgroup_nanoseconds(caps, size.product, texture=True)


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
