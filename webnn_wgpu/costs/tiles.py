"""The tiles that the kernels of matrix products are written for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.errors import MLTypeError


@dataclass(frozen=True, kw_only=True)
class BlockTile:
    """The part of a matrix product that one workgroup of the tiled kernel computes (`shaders/lib/tiled_product.wgsl.j2`).

    Attributes:
        rows, columns: sides of the tile, in elements of the result.
        own_rows, own_columns: the numbers of its rows and columns that each invocation computes.
        step: the elements of the sum that each group of invocations has in workgroup memory at once, a multiple of 4.
        splits: groups of invocations that share the sums. Each computes the whole tile for its part of every slice.

    Example:
        >>> tile = BlockTile(rows=128, columns=128, own_rows=8, own_columns=8, step=8)
        >>> tile.invocations, tile.local_bytes_per_multiply_add, str(tile)
        (256, 1.0, '128x128')
    """

    rows: int
    columns: int
    own_rows: int
    own_columns: int
    step: int
    splits: int = 1

    @property
    def sides(self) -> tuple[int, ...]:
        """The numbers that name the tile: its sides, and the groups that share the sums if there are several."""
        return (self.rows, self.columns, *((self.splits,) if self.splits > 1 else ()))

    @property
    def depth(self) -> int:
        """Elements of the sum in a slice: those of all groups."""
        return self.step * self.splits

    def rest(self, steps: int, *, whole: bool) -> str:
        """Return which slice of a sum has fewer steps than the others: "start", "end", or "" for none.

        Args:
            steps: the length of the sum.
            whole: whether the kernel reads the left factor in quads of steps, so that a shorter first slice has whole quads.
        """
        if steps % self.depth == 0:
            return ""
        return "start" if whole and steps > self.depth else "end"

    @property
    def results(self) -> int:
        """Results that an invocation computes."""
        return self.own_rows * self.own_columns

    @property
    def invocations(self) -> int:
        """Invocations of the workgroup."""
        return self.rows * self.columns // self.results * self.splits

    @property
    def copies_a(self) -> int:
        """Quads that each invocation copies of a slice of the left factor, at most."""
        return -(-self.rows * self.depth // (4 * self.invocations))

    @property
    def copies_b(self) -> int:
        """Quads that each invocation copies of a slice of the right factor, at most."""
        return -(-self.columns * self.depth // (4 * self.invocations))

    @property
    def shares_steps(self) -> bool:
        """Whether all invocations copy the same steps of the left factor, if neighbors copy neighboring rows."""
        return self.rows % self.invocations == 0

    @property
    def local_bytes_per_multiply_add(self) -> float:
        """Bytes of float32 that an invocation reads from workgroup memory for each of its multiply-adds."""
        return 4 * (self.own_rows + self.own_columns) / self.results

    def __str__(self) -> str:
        return "x".join(map(str, self.sides))


BLOCK_TILES = (
    BlockTile(rows=128, columns=128, own_rows=8, own_columns=8, step=8),
    BlockTile(rows=128, columns=64, own_rows=8, own_columns=8, step=8),
    BlockTile(rows=64, columns=128, own_rows=8, own_columns=8, step=8),
    # For few columns, which many convolutions of large images have. It reads workgroup memory half as often as 64x32.
    BlockTile(rows=128, columns=32, own_rows=8, own_columns=8, step=8),
    BlockTile(rows=64, columns=64, own_rows=4, own_columns=8, step=8),
    BlockTile(rows=32, columns=64, own_rows=4, own_columns=4, step=16),
    BlockTile(rows=64, columns=32, own_rows=4, own_columns=4, step=16),
    BlockTile(rows=32, columns=32, own_rows=4, own_columns=4, step=8),
    BlockTile(rows=64, columns=64, own_rows=8, own_columns=8, step=4, splits=4),
    BlockTile(rows=64, columns=64, own_rows=4, own_columns=8, step=8, splits=2),
    BlockTile(rows=32, columns=64, own_rows=4, own_columns=8, step=4, splits=4),
    BlockTile(rows=32, columns=32, own_rows=4, own_columns=4, step=8, splits=4),
    BlockTile(rows=16, columns=32, own_rows=4, own_columns=4, step=8, splits=4),
    BlockTile(rows=16, columns=16, own_rows=4, own_columns=4, step=8, splits=8),
    BlockTile(rows=16, columns=16, own_rows=4, own_columns=4, step=4, splits=16),
    # Rows of three taps with multiples of 16 channels are whole slices of 48 steps.
    BlockTile(rows=16, columns=16, own_rows=4, own_columns=4, step=4, splits=12),
)
"""The tiles of the tiled kernel, larger ones first. Each fits WebGPU's default limits.

These are 256 invocations, and 16 KiB of workgroup memory.
"""


def block_tile(sides: Iterable[float]) -> BlockTile:
    """Return the tile of the tiled kernel that has some sides, and some groups that share the sums behind them.

    Raises:
        MLTypeError: there is none.
    """
    sides = tuple(sides)
    for tile in BLOCK_TILES:
        if tile.sides == sides:
            return tile
    allowed = ", ".join(map(str, BLOCK_TILES))
    got = "x".join(f"{side:g}" for side in sides)
    raise MLTypeError("no tile of the tiled kernel has these sides", got=got, allowed=allowed)


@dataclass(frozen=True, kw_only=True)
class WinogradTile:
    """The part of a 3 x 3 convolution that one workgroup computes (`shaders/ops/winograd.tiled.wgsl.j2`).

    Each of the 16 positions in a patch has 4 x 4 invocations.

    Attributes:
        own_rows, own_columns: the numbers of patches and of output channels that each invocation multiplies: 4 or 8, and 8.
        step: the input channels of a slice, 4 or 8.

    Example:
        >>> tile = WinogradTile(own_rows=8, own_columns=8, step=4)
        >>> tile.rows, tile.columns, tile.local_bytes, str(tile)
        (32, 32, 16384, '32x32x4')
    """

    own_rows: int
    own_columns: int
    step: int

    invocations = 256
    """Invocations of the workgroup."""

    @property
    def rows(self) -> int:
        """Patches of 2 x 2 output pixels."""
        return 4 * self.own_rows

    @property
    def columns(self) -> int:
        """Output channels."""
        return 4 * self.own_columns

    @property
    def sides(self) -> tuple[int, int, int]:
        """The numbers that name the tile: its patches and channels, and the channels of a slice."""
        return self.rows, self.columns, self.step

    @property
    def results(self) -> int:
        """Sums of an invocation."""
        return self.own_rows * self.own_columns

    @property
    def local_bytes(self) -> int:
        """Bytes of workgroup memory."""
        return self.step << 12

    @property
    def local_bytes_per_multiply_add(self) -> float:
        """Bytes of float32 that an invocation reads from workgroup memory for each of its multiply-adds."""
        return 4 * (self.own_rows + self.own_columns) / self.results

    @property
    def copies(self) -> int:
        """Quads of the filter that each invocation copies of a slice."""
        return 4 * self.step * self.columns // self.invocations

    @property
    def halves(self) -> int:
        """Invocations that share the transform of a patch in a channel."""
        return 1 if self.rows * self.step >= self.invocations else 2

    @property
    def transforming(self) -> int:
        """Invocations that transform a patch in a channel, or half of it."""
        return self.halves * self.step * self.rows

    def __str__(self) -> str:
        return "x".join(map(str, self.sides))


WINOGRAD_TILES = (
    WinogradTile(own_rows=8, own_columns=8, step=8),
    WinogradTile(own_rows=8, own_columns=8, step=4),
    WinogradTile(own_rows=4, own_columns=8, step=8),
    WinogradTile(own_rows=4, own_columns=8, step=4),
)
"""The tiles of Winograd's algorithm in one kernel. Those of 4 channels in a slice fit WebGPU's default limits."""

PLAIN_ROWS = (1, 2, 4, 8)
"""Rows that an invocation of the plain kernel may take."""

MOST_QUADS = 32
"""Quads that a lane of the subgroup kernel sums up at most. A driver's compiler takes as long as there are such quads."""

TALL_ROWS = 25
"""Rows of a higher tile. Two of these hold the 7 x 7 pixels that many networks end in, for which tiles of 16 rows would fill
three and a sixteenth.
"""

HALF_QUADS = (2.5, 1.5, 0.5)
"""Quads per lane of tiles that are whole for 16, 48 and 80 columns, of which those of whole quads would waste a part."""

LARGE_TILE = (32, 2)
"""Rows and quads per lane of the largest tile, for large products without a texture: its loads serve the most products."""

WIDE_QUADS = 3
"""Quads per lane of a wider tile, for results whose columns fill it: its products take the fewest loads."""


def common_tiles(*, texture: bool) -> list[tuple[int, float]]:
    """Return the rows and the quads per lane of the subgroup kernel's common tiles, with `b` in a texture or not."""
    candidates = (16, 8, 4, 2, 1) if texture else (32, 16, 8, 4, 2, 1)
    return [(rows, quads) for rows in candidates for quads in (2, 1) if rows * quads <= MOST_QUADS]


def subgroup_tiles(*, texture: bool) -> list[tuple[int, float]]:
    """Return the rows and the quads per lane of all the subgroup kernel's tiles, with `b` in a texture or not."""
    rare: list[tuple[int, float]] = [LARGE_TILE]
    if texture:
        rare = [(TALL_ROWS, 2), (TALL_ROWS, 1), *((16, quads) for quads in (WIDE_QUADS, *HALF_QUADS))]
    return rare + common_tiles(texture=texture)
