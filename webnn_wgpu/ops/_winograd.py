"""Winograd's F(2x2, 3x3): 3 x 3 convolutions with 16 multiplications for four pixels instead of 36.

Variant `winograd_tiled` is one kernel, which transforms patches, multiplies them and transforms the sums back. Variant
`winograd` is three kernels, whose products may be in the registers of subgroups.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ..kernels import select
from ..kernels.element import QUAD
from ..kernels.packing import Chain, WinogradFilter
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, Temp, grid_1d
from ..kernels.tiles import tile_uniforms
from ._factors import Factor
from ._patches import Patches, patch_uniforms
from ._product import product_calls
from ._product_kernel import Addend, ProductKernel, Read, finish

if TYPE_CHECKING:
    from ..costs import Choice, ConvolutionSize, Target
    from ._def import Lowering

_INPUT = KernelTemplate("winograd.input")
_OUTPUT = KernelTemplate("winograd.output", ("form", "half", "c_read", "expression", "extra_reads"))
_TILED = KernelTemplate("winograd.tiled", ("tile", "nhwc", "form", "c_read", "expression", "extra_reads"))
TEMPLATES = (_INPUT, _OUTPUT, _TILED)
"""The templates of the transforms, and of the kernel that does everything."""

_WHOLE_TILES = 64
"""Rows that are whole tiles of the products' kernels, but for those in the registers of a subgroup."""


def winograd_calls(
    low: Lowering, size: ConvolutionSize, weights: Packed, bias: Addend | None, read: Read, reason: str
) -> list[KernelCall]:
    """Return the kernel calls: transform of the input, sixteen matrix products at once, transform back with the epilogue.

    The transformed values are float32, and 4 times as large as the input and the output. Therefore the kernels process the
    patches in parts, one after the other in the same memory. An infinity or NaN in the input spreads to the whole patch of
    2 x 2 output pixels.

    Args:
        low: the node.
        size: the sizes of a convolution for which `select_convolution.obstacle` found no obstacle.
        weights: the filter, packed as [1, 3, 3, channels, output channels].
        bias: the addend, one element per channel.
        read: returns how the kernel addresses the bias and the epilogue's operands.
        reason: the reason for Winograd's algorithm.
    """
    patches = size.images * math.prod(size.patches)
    step = _patches_of_part(low.target, size, patches)
    parts = -(-patches // step)
    calls: list[KernelCall] = []
    for number, start in enumerate(range(0, patches, step), 1):
        why = reason if parts == 1 else f"{reason}, part {number} of {parts}"
        calls += _calls_of_part(low, size, start, step, weights, bias, read, why)
    return calls


def _patches_of_part(target: Target, size: ConvolutionSize, patches: int) -> int:
    """Return how many patches are done at a time, so that memory is saved, tiles are full and the device can bind them."""
    caps, costs = target.caps, target.costs
    parts = costs.convolutions.winograd_parts(size)
    rows = _WHOLE_TILES
    if select.supports(caps, "subgroup"):
        rows, _ = costs.products.subgroup_tile(size.winograd_product, texture=True)
    largest = caps.limit("max-storage-buffer-binding-size") // (16 * 4 * max(size.depth, size.columns))
    return min(patches, largest, -(-patches // (parts * rows)) * rows)


def _calls_of_part(
    low: Lowering,
    size: ConvolutionSize,
    start: int,
    step: int,
    weights: Packed,
    bias: Addend | None,
    read: Read,
    reason: str,
) -> list[KernelCall]:
    """Return the calls for at most `step` patches from `start` on. All parts use the same scratch memory."""
    (patches_y, patches_x), (out_height, out_width) = size.patches, size.output
    patches = size.images * patches_y * patches_x
    count = min(step, patches - start)
    transformed = Temp("transformed input", 16 * step * size.depth * 4)
    sums = Temp("sums", 16 * step * size.columns * 4)

    kernel = ProductKernel()
    quads = size.nhwc
    kernel.bind(Binding(name="input", access="read", element=low.input().data_type, quad=quads), low.value(0))
    kernel.bind(Binding(name="output", access="write", element="float32", quad=True), transformed)
    # The patches are the pixels of a convolution with strides of 2.
    patch_uniforms(kernel, Patches.of(replace(size, output=size.patches, strides=(2, 2)), nhwc=size.nhwc))
    items = count * size.depth // QUAD
    kernel.uniforms(items=items, first=start)
    first = kernel.call(_INPUT, grid_1d(-(-items // 64), low.caps), reason)

    a = Factor(transformed, "float32", (16, count, size.depth))
    b = Factor(_transformed(low, weights), "float32", (16, size.depth, size.columns))
    products = product_calls(low, a, b, into=sums)

    kernel = ProductKernel()
    kernel.bind(Binding(name="sums", access="read", element="float32", quad=True), sums)
    kernel.params |= {"form": "nhwc" if size.nhwc else "nchw", "half": low.input().data_type == "float16"}
    items = count * size.columns // QUAD
    kernel.uniforms(
        items=items,
        first=start,
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
    share = count / patches
    return [replace(first, share=share), *products, replace(last, share=share)]


def _transformed(low: Lowering, weights: Packed) -> Packed:
    """Return the transformed filter: [16, channels, output channels]."""
    return Packed(weights.value, Chain(weights.packing, WinogradFilter(low.zero_point(1))))


def winograd_call(
    low: Lowering, size: ConvolutionSize, weights: Packed, bias: Addend | None, read: Read, choice: Choice
) -> KernelCall:
    """Return the call of the kernel that transforms, multiplies and transforms back, with the epilogue.

    Args:
        low: the node.
        size: its sizes.
        weights: the filter, packed as [1, 3, 3, channels, output channels].
        bias: the addend, one element per channel.
        read: returns how the kernel addresses the bias and the epilogue's operands.
        choice: the choice of the kernel, which may name a tile.
    """
    tile, product = low.target.costs.convolutions.winograd_tile(choice, size), size.winograd_product
    kernel = ProductKernel()
    kernel.bind(Binding(name="input", access="read", element=low.input().data_type), low.value(0))
    kernel.bind(Binding(name="weights", access="read", element="float32", quad=True), _transformed(low, weights))
    # The patches are two pixels apart.
    patch_uniforms(kernel, Patches.of(replace(size, strides=(2, 2)), nhwc=size.nhwc))
    patches_y, patches_x = size.patches
    tiles = tile_uniforms(replace(product, matrices=1), tile.rows, tile.columns)
    kernel.uniforms(patches_y=patches_y, patches_x=patches_x, M=product.M, N=product.N, **tiles)
    kernel.params |= {"tile": tile, "nhwc": size.nhwc, "form": "nhwc" if size.nhwc else "nchw"}
    finish(kernel, low, size.nhwc, read, bias, row=size.columns)
    return kernel.call(_TILED, grid_1d(tiles["tiles"], low.caps), choice.reason)
