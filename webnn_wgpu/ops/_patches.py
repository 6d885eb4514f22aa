"""The uniforms by which the kernels of convolutions find their input pixels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..costs import ConvolutionSize
    from ._product_kernel import ProductKernel


def patch_uniforms(kernel: ProductKernel, size: ConvolutionSize, *, nhwc: bool) -> None:
    """Add the uniforms by which `shaders/lib/patches.wgsl.j2` finds input pixels, `nhwc` or not, and the filter's sizes."""
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
        depth=size.depth,
        channels=size.channels,
    )
