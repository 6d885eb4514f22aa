"""Winograd's F(2x2, 3x3): 3 x 3 convolutions with 16 multiplications for four pixels instead of 36."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ..kernels.element import QUAD
from ..kernels.packing import Chain, WinogradFilter
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, Temp, grid_1d
from ._factors import Factor
from ._patches import patch_uniforms
from ._product import Addend, Kernel, Read, finish, product_calls

if TYPE_CHECKING:
    from ..kernels.select_convolution import ConvolutionSize
    from ._def import Lowering

_INPUT = KernelTemplate("winograd.input")
_OUTPUT = KernelTemplate("winograd.output", ("form", "half", "c_read", "expression", "extra_reads"))
TEMPLATES = (_INPUT, _OUTPUT)
"""The templates of the transforms."""


def winograd_calls(
    low: Lowering, size: ConvolutionSize, weights: Packed, bias: Addend | None, read: Read, reason: str
) -> list[KernelCall]:
    """Return the kernel calls: transform of the input, sixteen matrix products at once, transform back with the epilogue.

    What lies between is float32. Where the input holds infinity or NaN, so does the whole patch of 2 x 2 output pixels.

    Args:
        low: the node.
        size: its sizes; `select_convolution.obstacle` has been asked.
        weights: the filter, packed as [1, 3, 3, channels, output channels].
        bias: what is added, one element per channel.
        read: where the bias and the epilogue's operands are found.
        reason: why Winograd's algorithm was chosen.
    """
    (patches_y, patches_x), (out_height, out_width) = size.patches, size.output
    patches = size.images * patches_y * patches_x
    transformed = Temp("transformed input", 16 * patches * size.depth * 4)
    sums = Temp("sums", 16 * patches * size.columns * 4)

    kernel = Kernel()
    quads = size.nhwc
    kernel.bind(Binding("input", "read", low.input().data_type, quad=quads), low.value(0))
    kernel.bind(Binding("output", "write", "float32", quad=True), transformed)
    # The patches are the pixels of a convolution with strides of 2.
    patch_uniforms(kernel, replace(size, output=size.patches, strides=(2, 2)), nhwc=size.nhwc)
    items = patches * size.depth // QUAD
    kernel.uniforms(items=items)
    first = kernel.call(_INPUT, grid_1d(-(-items // 64), low.caps), reason)

    a = Factor(transformed, "float32", (16, patches, size.depth))
    b = Factor(Packed(weights.value, Chain(weights.packing, WinogradFilter())), "float32", (16, size.depth, size.columns))
    products = product_calls(low, a, b, into=sums)

    kernel = Kernel()
    kernel.bind(Binding("sums", "read", "float32", quad=True), sums)
    kernel.params |= {"form": "nhwc" if size.nhwc else "nchw", "half": low.input().data_type == "float16"}
    items = patches * size.columns // QUAD
    kernel.uniforms(
        items=items,
        patches_y=patches_y,
        patches_x=patches_x,
        out_height=out_height,
        out_width=out_width,
        pixels=math.prod(size.output),
        channels=size.channels,
        N=size.columns,
    )
    finish(kernel, low, size.nhwc, read, bias, row=size.columns)
    last = kernel.call(_OUTPUT, grid_1d(-(-items // 64), low.caps), "transformed back")
    return [first, *products, last]
