"""The arguments and results of questions about costs: sizes of products and convolutions, tiles, choices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

UNLIMITED = 1 << 62
"""A limit that no number reaches."""

Tile: TypeAlias = tuple[float, ...]
"""The sides of a tile in a variant's own units. All are whole except the quads of the subgroup kernel."""


@dataclass(frozen=True)
class Choice:
    """The chosen kernel variant with the reason for people, and its tile unless the heuristics choose the tile."""

    variant: str
    reason: str
    tile: Tile = ()


@dataclass(frozen=True)
class ProductSize:
    """A matrix product: `matrices` times [M, K] x [K, N].

    Attributes:
        M: rows.
        N: columns.
        K: length of the sums.
        matrices: the number of products.
    """

    M: int
    N: int
    K: int
    matrices: int = 1


@dataclass(frozen=True, kw_only=True)
class ConvolutionSize:
    """The sizes of a convolution, independent of its layouts. Pairs are (height, width).

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

    @property
    def winograd_product(self) -> ProductSize:
        """The products of Winograd's algorithm: for each of 16 elements of a transformed patch, patches x channels."""
        return ProductSize(self.images * math.prod(self.patches), self.columns, self.depth, 16)
