"""The gradient of a convolution's filter, from operands with their channels last: one product, which passes make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.data_types import FLOATS
from ..costs import Choice, ProductSize
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels import select
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, grid_1d
from ..kernels.tiles import tile_uniforms
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef
from ._def import Operand as OperandDef
from ._partial_sums import TEMPLATES as PARTIAL_SUMS
from ._partial_sums import PartialSums, most_parts
from ._product import HIGHEST_BLOCK
from ._product_kernel import ProductKernel, finish
from ._rows import to_type, wide
from .interfaces.bounds import sums
from .interfaces.cost import Cost
from .interfaces.family import Family

_TEMPLATE = KernelTemplate("filter_gradient", ("tile", "parted", "rest", "c_read", "expression", "extra_reads"))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    gradient, x, attrs = call.input(0), call.input(1), call.attrs
    call.require(gradient.shape[0] == x.shape[0], "gradient and input must have as many images", got=call.describe())
    (height, width), channels = attrs["kernel"], x.shape[3]
    return (call.output(x.data_type, (gradient.shape[3], height, width, channels)),)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    gradient, x = arrays
    assert gradient is not None
    assert x is not None
    g = wide(gradient).reshape(-1, gradient.shape[3])
    _, height, width, _ = gradient.shape
    (top, left), (stride_y, stride_x), (dilation_y, dilation_x) = attrs["padding"], attrs["strides"], attrs["dilations"]
    rows, columns = attrs["kernel"]
    # As many zeros behind the image as the last pixel under the last tap takes.
    below = max(0, (height - 1) * stride_y + (rows - 1) * dilation_y + 1 - top - x.shape[1])
    beside = max(0, (width - 1) * stride_x + (columns - 1) * dilation_x + 1 - left - x.shape[2])
    padded = np.pad(wide(x), ((0, 0), (top, below), (left, beside), (0, 0)))
    result = np.zeros(outputs[0].shape)
    with np.errstate(all="ignore"):
        for ky, kx in np.ndindex(rows, columns):
            y, z = ky * dilation_y, kx * dilation_x
            under = padded[:, y : y + (height - 1) * stride_y + 1 : stride_y, z : z + (width - 1) * stride_x + 1 : stride_x]
            result[:, ky, kx] = g.T @ under.reshape(-1, x.shape[3])
    return [to_type(result, outputs[0])]


@dataclass(frozen=True)
class _Sizes:
    """The sizes of a node, by which its kernel finds input pixels."""

    gradient: tuple[int, ...]
    input: tuple[int, ...]
    attrs: Attrs

    @property
    def product(self) -> ProductSize:
        """The product: output channels x (taps x input channels), with a sum over all output pixels."""
        *pixels, rows = self.gradient
        return ProductSize(rows, math.prod(self.attrs["kernel"]) * self.input[3], math.prod(pixels))

    @property
    def in_quads(self) -> bool:
        """Whether the kernel reads the input in quads of channels."""
        return self.input[3] % QUAD == 0

    def uniforms(self, steps: int) -> dict[str, int]:
        """Return the uniforms of a kernel that moves so many pixels on from slice to slice, modulo 2^32."""
        attrs, (_, out_height, out_width, _) = self.attrs, self.gradient
        _, in_height, in_width, depth = self.input
        (stride_y, stride_x), (pad_y, pad_x) = attrs["strides"], attrs["padding"]
        column = depth // QUAD if self.in_quads else depth
        row = in_width * column
        image = in_height * row
        images, rest = divmod(steps, out_height * out_width)
        walk_y, walk_x = (n * stride for n, stride in zip(divmod(rest, out_width), (stride_y, stride_x), strict=True))
        row_x, image_y = out_width * stride_x, out_height * stride_y
        found = {
            "out_height": out_height,
            "out_width": out_width,
            "in_height": in_height,
            "in_width": in_width,
            "in_image": image,
            "in_row": row,
            "in_column": column,
            "kernel_width": attrs["kernel"][1],
            "stride_y": stride_y,
            "stride_x": stride_x,
            "dilation_y": attrs["dilations"][0],
            "dilation_x": attrs["dilations"][1],
            "pad_y": pad_y,
            "pad_x": pad_x,
            "depth": depth,
            "walk_x": walk_x,
            "walk_y": walk_y,
            "walk_place": images * image + walk_y * row + walk_x * column,
            "past_x": row_x - pad_x,
            "past_y": image_y - pad_y,
            "row_x": row_x,
            "row_place": stride_y * row - row_x * column,
            "image_y": image_y,
            "image_place": image - image_y * row,
        }
        return {name: value % 2**32 for name, value in found.items()}


def _lower(low: Lowering) -> list[KernelCall]:
    sizes = _Sizes(low.input(0).shape, low.input(1).shape, low.attrs)
    size, element = sizes.product, low.input().data_type
    # The image is the right factor here, whose copies the estimate takes for those of a matrix.
    choice = low.measured(select.with_tiles("tiled", texture=False)) or Choice("tiled", "pixels as steps of the sum")
    tile, count = low.target.costs.products.tile_and_parts(
        choice, size, most_rows=HIGHEST_BLOCK, most_parts=most_parts(low, size)
    )
    parts = PartialSums.of(size, tile, count)
    kernel = ProductKernel()
    kernel.bind(Binding(name="gradient", access="read", element=element), low.value(0))
    kernel.bind(Binding(name="input", access="read", element=element, quad=sizes.in_quads), low.value(1))
    kernel.params |= {"tile": tile, "parted": parts is not None, "rest": tile.rest(size.K, whole=False)}
    tiles = tile_uniforms(ProductSize(size.M, size.N, size.K, parts.count if parts else 1), tile.rows, tile.columns)
    kernel.uniforms(M=size.M, N=size.N, K=size.K, **tiles, **sizes.uniforms(tile.depth))
    whole, grid = size.N % QUAD == 0, grid_1d(tiles["tiles"], low.caps)
    if parts is None:
        finish(kernel, low, whole, _read, None, row=size.N)
        return [kernel.call(_TEMPLATE, grid, choice.reason)]
    parts.declare(kernel, low, _read)
    half = element == "float16"
    return [
        kernel.call(_TEMPLATE, grid, f"{choice.reason}, in {parts.count} parts"),
        parts.added(low, _read, None, half=half, whole=whole, row=size.N, into=None),
    ]


def _read(shape: Sequence[int]) -> str:
    """Refuse it: there is neither an addend nor an epilogue."""
    raise AssertionError


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    return 2 * output.num_elements * math.prod(types[0].shape[:3])


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    gradient = operands[0]
    assert gradient is not None
    return math.prod(gradient.shape[:3])


FILTER_GRADIENT = OpDef(
    name="filterGradient",
    operands=(
        OperandDef(name="gradient", data_types=FLOATS, min_rank=4, max_rank=4),
        OperandDef(name="input", data_types=FLOATS, same_as="gradient", min_rank=4, max_rank=4),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(
        Attr("kernel", "uints"),
        Attr("padding", "uints", (0, 0)),
        Attr("strides", "uints", (1, 1)),
        Attr("dilations", "uints", (1, 1)),
    ),
    templates=(_TEMPLATE, *PARTIAL_SUMS),
    family=Family.PRODUCT,
    without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
    cost=Cost(_operations),
    bounds=sums(_terms),
    internal=True,
)
"""The gradient [O, h, w, C] of a filter, from the gradient [N, H, W, O] of the convolution's result and its input.

`kernel` is [h, w], and `padding` the rows above and the columns on the left of the input.
"""

OPS = (FILTER_GRADIENT,)
