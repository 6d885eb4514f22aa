"""The uniforms by which the kernels of convolutions find their input pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..kernels.element import QUAD

if TYPE_CHECKING:
    from ..costs import ConvolutionSize
    from ._product_kernel import ProductKernel


@dataclass(frozen=True, kw_only=True)
class TapRows:
    """A convolution whose rows of taps count as one tap each: the elements under them are neighbors in the input.

    Patches of an image often come without padding, with strides of whole quads and with few channels. A kernel then reads the
    elements under a row of taps in quads, where it would otherwise read them one by one.

    Attributes:
        size: the sizes by which the kernel finds the elements. Those of an nchw input are its planes: channels count as rows,
            rows as columns, and the elements of a row as channels.
        depth: elements under a row of taps.
        planes: whether the input is nchw.
    """

    size: ConvolutionSize
    depth: int
    planes: bool

    @property
    def filter_order(self) -> str:
        """The filter's dimensions in the order of the steps, as `filter_in` names them."""
        return "gihwo" if self.planes else "ghwio"

    @classmethod
    def of(cls, size: ConvolutionSize, *, nhwc: bool) -> TapRows | None:
        """Return the rows of taps of a convolution, or None if a kernel cannot read their elements in quads."""
        (height, width), (rows, columns) = size.input, size.kernel
        channels = size.depth if nhwc else 1
        inside = size.padding[1] == 0 and (size.output[1] - 1) * size.strides[1] + columns <= width
        near = not size.transposed and size.groups == 1 and (size.dilations[1] == 1 or columns == 1)
        whole = all(n * channels % QUAD == 0 for n in (columns, size.strides[1], width))
        if not (inside and near and whole) or channels % QUAD == 0:
            return None
        if nhwc:
            return cls(size=replace(size, kernel=(rows, 1)), depth=columns * channels, planes=False)
        planes = replace(
            size,
            depth=width,
            input=(size.depth, height),
            kernel=(size.depth, rows),
            dilations=(1, size.dilations[0]),
        )
        return cls(size=planes, depth=columns, planes=True)


def walk_uniforms(size: ConvolutionSize, depth: int, steps: int) -> dict[str, int]:
    """Return the uniforms by which a kernel moves so many steps of the sum on: channels, and taps to the right and down.

    Args:
        size: the sizes by which the kernel finds input pixels.
        depth: steps of a tap.
        steps: the number of steps to move on.
    """
    down, right = divmod(steps // depth, size.kernel[1])
    return {
        "walk_channel": steps % depth,
        "walk_right": right * size.dilations[1] % 2**32,
        "walk_down": down * size.dilations[0] % 2**32,
    }


def patch_uniforms(kernel: ProductKernel, size: ConvolutionSize, *, nhwc: bool, depth: int | None = None) -> None:
    """Add the uniforms by which `shaders/lib/patches.wgsl.j2` finds input pixels, and the filter's sizes.

    Args:
        kernel: the kernel.
        size: the sizes of the convolution.
        nhwc: the layout of the input.
        depth: steps of a tap, if not the input channels.
    """
    (in_height, in_width), channels = size.input, size.groups * size.depth
    kernel.uniforms(
        pixels=math.prod(size.output),
        out_height=size.output[0],
        out_width=size.output[1],
        in_height=in_height,
        in_width=in_width,
        in_image=in_height * in_width * channels,
        in_row=in_width * (channels if nhwc else 1),
        in_column=channels if nhwc else 1,
        in_channel=1 if nhwc else in_height * in_width,
        kernel_height=size.kernel[0],
        kernel_width=size.kernel[1],
        stride_y=size.strides[0],
        stride_x=size.strides[1],
        dilation_y=size.dilations[0],
        dilation_x=size.dilations[1],
        # Where the first rows of taps are left out it may be negative.
        pad_y=size.padding[0] % 2**32,
        pad_x=size.padding[1] % 2**32,
        depth=size.depth if depth is None else depth,
        channels=size.channels,
    )
