"""Means over the pixels of images that the kernel of a product stores, so that no other dispatch reads the images for that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..kernels.element import QUAD
from ..kernels.terms import OPAQUE_ZERO
from ._partial_sums import operands_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costs import Choice, ProductSize
    from ..ir.graph import Node
    from ._def import Lowering, PixelMean
    from ._factors import Factor
    from ._product_kernel import ProductKernel

PIXEL_MEANS = ("averagePool2d", "reduceMean")
"""The operators that may take the mean over all pixels of an image."""


def is_pixel_mean(node: Node, shape: Sequence[int]) -> bool:
    """Return whether a node takes the mean over all pixels of each image [images, height, width, channels] of some shape."""
    attrs, extent = node.attrs, tuple(shape[1:3])
    if node.op == "reduceMean":
        return tuple(attrs["axes"]) == (1, 2)
    whole = tuple(attrs.get("window_dimensions", ())) == extent and tuple(attrs.get("dilations", ())) == (1, 1)
    return node.op == "averagePool2d" and attrs["layout"] == "nhwc" and whole and not any(attrs["padding"])


@dataclass(frozen=True)
class PooledImages:
    """The images that a product computes, each of which one row of workgroups reduces to its mean.

    Attributes:
        mean: the mean.
        a: the left factor, a matrix for each image.
        size: the sizes of the product, a matrix for each image.
        choice: the choice of the kernel, with its tile.
    """

    mean: PixelMean
    a: Factor
    size: ProductSize
    choice: Choice

    @classmethod
    def of(cls, low: Lowering, a: Factor, b: Factor, size: ProductSize, choice: Choice) -> PooledImages | None:
        """Return the images, or None if no mean follows or a dispatch of its own is better.

        Args:
            low: the node.
            a: the left factor, whose rows are the pixels of all images.
            b: the right factor.
            size: the sizes of the product.
            choice: the choice of the kernel.
        """
        found = low.pool
        if found is None or low.part is not None or choice.variant != "tiled" or size.N % QUAD or math.prod(b.batch) != 1:
            return None
        if not operands_fit(low, [factor.size_bytes for factor in (a, b)]):
            return None
        images, *extent, _ = low.output().shape
        pixels = math.prod(extent)
        size = replace(size, M=pixels, matrices=images)
        tile = low.target.costs.products.pooling_tile(choice, size)
        if tile is None:
            return None
        shape = (pixels, a.columns) if images == 1 else (images, pixels, a.columns)
        return cls(found, replace(a, shape=shape), size, replace(choice, tile=tile.sides))

    @property
    def batch(self) -> tuple[int, ...]:
        """The dimensions that the images are numbered by."""
        return self.a.batch

    def finish(self, kernel: ProductKernel) -> None:
        """Declare the parameters, and that the last operand of a kernel is the mean and not the result of the product."""
        epilogue = self.mean.epilogue
        kernel.params |= {"pooled": True, "behind": epilogue.expression if epilogue else None}
        if epilogue:
            kernel.fields += [field for field in epilogue.uniforms if field[0] != OPAQUE_ZERO]
            kernel.features += epilogue.expression.features
        if OPAQUE_ZERO not in {name for name, *_ in kernel.fields}:
            kernel.uniform(OPAQUE_ZERO, 0)
        kernel.operands[-1] = self.mean.output
