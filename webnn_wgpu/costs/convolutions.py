"""The costs of convolutions: which kernels compute one, and how its work is divided."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sizes import Choice
from .tiles import WINOGRAD_TILES, WinogradTile

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .products import ProductCosts
    from .sizes import ConvolutionSize

_WORTH_LARGE = 1.3
"""The time of a small tile of Winograd's algorithm in one kernel counts as so many times its estimate, if large ones keep half
of the cores busy. A small tile reads 1.48 bytes of workgroup memory for each multiply-add, a large one 1.0."""


@dataclass(frozen=True, kw_only=True)
class ConvolutionCosts(ABC):
    """Costs of convolutions.

    Attributes:
        products: the costs of the matrix products in convolutions.
        winograd_part_bytes: the minimum size of the intermediate results of a part in bytes, if Winograd's algorithm processes
            the patches in several parts.
        most_winograd_parts: parts at most.
        most_local_bytes: bytes of workgroup memory that a workgroup may have.
        written_width: most taps in a row that the depthwise kernel has written out instead of a loop.
        wide_taps: taps in a row from which on neighboring pixels share most of their inputs, so that an invocation of the
            depthwise kernel may compute eight pixels.
        taps_in_texture: whether the depthwise kernel reads constant filters from a texture.
        sums_over_pixels: whether the tiled kernel computes gradients of filters from images in place faster than a convolution
            from transposed copies of them.
    """

    products: ProductCosts
    winograd_part_bytes: int
    most_winograd_parts: int
    most_local_bytes: int
    written_width: int
    wide_taps: int
    taps_in_texture: bool
    sums_over_pixels: bool

    def choose(self, size: ConvolutionSize, possible: Collection[str]) -> Choice:
        """Return the kernel variant for a convolution, one of those that are possible for it on the device."""
        if "pointwise" in possible:
            return Choice("pointwise", "one tap: a matrix product")
        if size.groups > 1 and "depthwise" in possible:
            return Choice("depthwise", "one input channel per group")
        if "winograd" in possible and (variant := self._winograd(size, possible)):
            return Choice(variant, f"3 x 3 with {size.depth} and {size.columns} channels: fewer multiplications")
        return self._choose(size, possible)

    @abstractmethod
    def _winograd(self, size: ConvolutionSize, possible: Collection[str]) -> str:
        """Return a variant of Winograd's algorithm, or "" if its transforms take more time than they save."""

    def winograd_tile(self, choice: Choice, size: ConvolutionSize) -> WinogradTile:
        """Return the tile of Winograd's algorithm in one kernel: the choice's, or the one that takes the least time."""
        fitting = self.winograd_tiles(size)
        if choice.tile:
            return next(tile for tile in fitting if tile.sides == choice.tile)
        tiles = [tile for tile in fitting if tile.results <= self.products.most_results] or fitting[-1:]
        blocks, product = self.products.blocks, size.winograd_product
        filling = [tile for tile in tiles if 2 * -(-product.M // tile.rows) * -(-product.N // tile.columns) >= blocks.cores]
        most = max((tile.results for tile in filling), default=0)

        def cycles(tile: WinogradTile) -> float:
            return blocks.winograd_cycles(tile, size) * (_WORTH_LARGE if tile.results < most else 1)

        return min(tiles, key=cycles)

    def winograd_tiles(self, size: ConvolutionSize) -> list[WinogradTile]:
        """Return the tiles of that kernel that suit a convolution and the device."""
        return [tile for tile in WINOGRAD_TILES if tile.local_bytes <= self.most_local_bytes and size.depth % tile.step == 0]

    @abstractmethod
    def _choose(self, size: ConvolutionSize, possible: Collection[str]) -> Choice:
        """Return the variant for a convolution of several taps and channels in a group."""

    @abstractmethod
    def depthwise_pixels(self, size: ConvolutionSize, step: int, possible: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the rows and columns of pixels that an invocation of the depthwise kernel computes.

        Args:
            size: the convolution.
            step: input pixels from one pixel to the next, if pixels share their input. Otherwise 0.
            possible: pairs of rows and columns, the largest first.
        """

    @abstractmethod
    def writes_out_taps(self, taps: int, pixels: int) -> bool:
        """Return whether the depthwise kernel has all taps written out instead of a loop over rows of taps.

        Args:
            taps: the number of taps.
            pixels: the pixels of an invocation.
        """

    def winograd_parts(self, size: ConvolutionSize) -> int:
        """Return the number of parts in which Winograd's algorithm processes the patches of 2 x 2 output pixels."""
        patches, widest = size.images * math.prod(size.patches), max(size.depth, size.columns)
        # Each part reads the whole filter, whose size must not exceed twice the part itself.
        most = min(self.most_winograd_parts, 2 * patches // widest)
        return max(1, min(most, -(-patches * 16 * 4 * widest // self.winograd_part_bytes)))
