"""The costs of matrix products: which kernel computes one, and in which tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .few_rows import MOST_ROWS, RowTile, row_tile
from .product_pairs import MOST_HIDDEN, pair_tile, repeating_pays
from .sizes import UNLIMITED, Choice
from .tiles import BLOCK_TILES, HALF_QUADS, LARGE_TILE, PLAIN_ROWS, TALL_ROWS, WIDE_QUADS, BlockTile, block_tile, common_tiles

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .block_times import BlockTimes
    from .sizes import ProductSize

_WORTH_PARTS = 0.9
"""The share of a product's time that sums in parts must take at most. Estimates are off by some percent."""

_WORTH_FILLING = 0.95
"""The same if the workgroups of whole sums do not fill the GPU. Its cores then wait for memory more than estimates contain."""

_WORTH_SAVED = 0.98
"""The same if the product adds a projection, which saves the dispatch that the parts take."""

_FILLING_INVOCATIONS = 128
"""Invocations of each core that fill a GPU: four subgroups of 32, two for each SIMD of AMD's, or one for each of NVIDIA's."""

_PART_PENALTY = 1 / 256
"""The share of a product's time that the memory of a part of its sums is worth."""

Worth = tuple[float, float]
"""The minimum gain of a rare tile for a longer compilation: a share of the product's time, and nanoseconds."""


@dataclass(frozen=True, kw_only=True)
class SubgroupTimes:
    """Times of the kernel that computes products in the registers of a subgroup, for 8 lanes.

    Attributes:
        texture_ns: loading a quad from a texture.
        buffer_ns: loading a quad from a buffer.
        product_ns: multiplying four numbers with a quad, sums included.
        half_share: the share of a quad's time that half a quad takes.
        worth_tall, worth_halves, worth_wide: the minimum gains of the higher tile, the one of half quads and the wider one.
        worth_large: the minimum gain of the largest tile, which products without a texture may take.
        wide_words: whether loads from buffers take less time in words of 64 bits.
    """

    texture_ns: float
    buffer_ns: float
    product_ns: float
    half_share: float
    worth_tall: Worth
    worth_halves: Worth
    worth_wide: Worth
    worth_large: Worth
    wide_words: bool


@dataclass(frozen=True, kw_only=True)
class ProductCosts(ABC):
    """Costs of matrix products.

    Attributes:
        lanes: the invocations of a subgroup. 0 without subgroups.
        subgroup: times of the subgroup kernel.
        blocks: times of the tiled kernel.
        most_results: the maximum number of results of an invocation of the tiled kernel. More results take more registers,
            which reduces the occupancy.
        divides_sums: whether the tiled kernel may compute parts of sums in workgroups of their own.
        gemv_rows: the maximum number of rows for which the `gemv` kernel is better than tiles.
        integer_rows: the maximum number of rows of quantized numbers that are multiplied as integers. 0 for none.
    """

    lanes: int
    subgroup: SubgroupTimes
    blocks: BlockTimes
    most_results: int
    divides_sums: bool
    gemv_rows: int
    integer_rows: int

    @abstractmethod
    def choose(self, size: ProductSize, possible: Collection[str]) -> Choice:
        """Return the kernel variant for a product, one of those that are possible on the device."""

    def tile_of_workgroup(self, choice: Choice, size: ProductSize, *, most_rows: int) -> BlockTile:
        """Return the tile of workgroups whose invocations share no sums: the choice's, or the one that takes the least time.

        It is for kernels to which an element of a slice is much work: groups that share sums read many small slices.

        Args:
            choice: the choice of the kernel, which may name a tile.
            size: sizes of the product.
            most_rows: the maximum number of rows of a tile whose operands can be bound.
        """
        if choice.tile:
            return block_tile(choice.tile)
        tiles = [tile for tile in self._tiles(most_rows) if tile.splits == 1]
        return min(tiles, key=lambda tile: self.blocks.cycles(tile, 1, size))

    def _tiles(self, most_rows: int) -> list[BlockTile]:
        return [tile for tile in BLOCK_TILES if tile.rows <= most_rows and tile.results <= self.most_results]

    def tile_and_parts(
        self,
        choice: Choice,
        size: ProductSize,
        *,
        most_rows: int,
        most_parts: int,
        patch_reads: int = 0,
        normalized: bool = False,
        projected: bool = False,
    ) -> tuple[BlockTile, int]:
        """Return the tile of the tiled kernel's workgroups, and the parts of the sums that workgroups of their own compute.

        Args:
            choice: the choice of the kernel, which may name a tile.
            size: sizes of the product.
            most_rows: the maximum number of rows of a tile whose operands can be bound.
            most_parts: parts that the sums may be divided into.
            patch_reads: the number of reads of a quad of the left factor, if that is the patches of an image. Otherwise 0.
            normalized: whether the kernel normalizes the rows of the left factor.
            projected: whether the product adds a projection. That saves a dispatch, which parts may take.
        """
        tiles = [block_tile(choice.tile)] if choice.tile else self._tiles(most_rows)

        counts = [parts for parts in (2, 4, 8, 16) if parts <= most_parts and self.divides_sums]

        def cycles(candidate: tuple[BlockTile, int]) -> float:
            # Of nearly equal times the one with fewer parts is better, because parts take memory.
            takes = self.blocks.cycles(*candidate, size, patch_reads=patch_reads, normalized=normalized)
            return takes * (1 + _PART_PENALTY * candidate[1])

        whole = min(((tile, 1) for tile in tiles), key=cycles)
        candidates = [(tile, parts) for tile in tiles for parts in counts if size.K >= parts * 4 * tile.depth]
        parted = min(candidates, key=cycles, default=whole)
        worth = _WORTH_SAVED if projected else _WORTH_PARTS if self._fills(whole[0], size) else _WORTH_FILLING
        return parted if cycles(parted) < worth * cycles(whole) else whole

    def _fills(self, tile: BlockTile, size: ProductSize) -> bool:
        """Return whether the workgroups of a product in some tiles have enough invocations for all cores."""
        workgroups = size.matrices * -(-size.M // tile.rows) * -(-size.N // tile.columns)
        return workgroups * tile.invocations >= _FILLING_INVOCATIONS * self.blocks.cores

    def adds_together(self, size: ProductSize, count: int) -> bool:
        """Return whether `count` products of one size are computed and added up faster together than one after the other.

        Each of them alone may have too few tiles for all cores. Together, a second dispatch adds up their results.
        """
        if not self.divides_sums or size.M <= self.gemv_rows:
            return False
        together, _ = self._cycles_and_parts(replace(size, matrices=count))
        apart, _ = self._cycles_and_parts(size)
        return together + self.blocks.adding(count, size) < count * apart

    def normalizes(self, sizes: Sequence[ProductSize]) -> bool:
        """Return whether products normalize the rows of their left factor faster than a dispatch that does it for all of them.

        They do so in the tiled kernel, whose workgroups compute whole sums.

        Args:
            sizes: the sizes of all products of these rows.
        """
        if not self.divides_sums or any(size.M <= self.gemv_rows for size in sizes):
            return False
        apart = [self._cycles_and_parts(size) for size in sizes]
        if any(parts > 1 for _, parts in apart):
            return False
        together = [self._cycles_and_parts(size, most_parts=1, normalized=True) for size in sizes]
        more = sum(taken for taken, _ in together) - sum(taken for taken, _ in apart)
        return more < self.blocks.normalizing(sizes[0].M, sizes[0].K)

    def pooling_tile(self, choice: Choice, size: ProductSize) -> BlockTile | None:
        """Return the tile whose workgroups take the mean over all rows of a matrix, or None if another dispatch is to do that.

        The product alone may have lower tiles and parts of its sums. With the dispatch, that may take less time.

        Args:
            choice: the choice of the tiled kernel, which may name a tile.
            size: the sizes of the product. The rows of a matrix are the pixels of an image.
        """
        tiles = [block_tile(choice.tile)] if choice.tile else self._tiles(UNLIMITED)
        high = [tile for tile in tiles if tile.rows >= size.M]
        if not self.divides_sums or not high or size.M <= self.gemv_rows:
            return None
        tile = min(high, key=lambda tile: self.blocks.cycles(tile, 1, size))
        apart, _ = self._cycles_and_parts(replace(size, M=size.matrices * size.M, matrices=1))
        together = self.blocks.cycles(tile, 1, size, pooled=True)
        return tile if together < apart + self.blocks.pooling(size) else None

    def projects(self, last: ProductSize, projection: ProductSize) -> bool:
        """Return whether one product with the sums of two takes less time than both, of which one adds the other's results.

        The tiled kernel computes it.

        Args:
            last: the sizes of one of them.
            projection: those of the other, which differ in the length of the sums.
        """
        if not self.divides_sums or last.M <= self.gemv_rows:
            return False
        together, _ = self._cycles_and_parts(replace(last, K=last.K + projection.K), projected=True)
        return together < sum(self._cycles_and_parts(size)[0] for size in (last, projection))

    def pairs(self, first: ProductSize, last: ProductSize, element_bytes: int) -> bool:
        """Return whether one dispatch computes two products of few rows faster than two, although workgroups repeat the first.

        Args:
            first: the sizes of the product whose results are the left factor of the other one.
            last: those of the other.
            element_bytes: the bytes of an element of the first product's weights.
        """
        if not self.divides_sums or first.M > self.gemv_rows or first.N > MOST_HIDDEN:
            return False
        tile = pair_tile(first.K, first.N, last.N)
        workgroups = last.M * -(-last.N // tile.columns.columns)
        return repeating_pays(tile, workgroups, self.blocks.cores, first.K * first.N * element_bytes)

    def _cycles_and_parts(
        self, size: ProductSize, *, most_parts: int = UNLIMITED, normalized: bool = False, projected: bool = False
    ) -> tuple[float, int]:
        """Return the clock cycles of the tiled kernel in its best tile, and the parts of the sums then."""
        tile, parts = self.tile_and_parts(
            Choice("tiled", ""), size, most_rows=UNLIMITED, most_parts=most_parts, normalized=normalized, projected=projected
        )
        return self.blocks.cycles(tile, parts, size, normalized=normalized), parts

    def row_tile(
        self,
        size: ProductSize,
        *,
        steps: int,
        most_rows: int = MOST_ROWS,
        lane_bytes: int = 16,
        may_be_narrow: bool = False,
    ) -> RowTile:
        """Return the tile of the kernels for few rows.

        Args:
            size: sizes of the product.
            steps: iterations that a sum takes.
            most_rows: the maximum number of rows of a tile whose operands can be bound.
            lane_bytes: the bytes of a row of weights that an invocation reads at once.
            may_be_narrow: whether the kernel has narrow tiles.
        """
        return row_tile(
            size,
            most_rows=most_rows,
            steps=steps,
            cores=self.blocks.cores,
            multiply_adds=self.blocks.multiply_adds,
            lane_bytes=lane_bytes,
            may_be_narrow=may_be_narrow,
        )

    def plain_rows(self, size: ProductSize) -> int:
        """Return the rows per invocation of the plain kernel."""
        return next((rows for rows in PLAIN_ROWS if size.M <= rows), PLAIN_ROWS[-1])

    def subgroup_tile(self, size: ProductSize, *, texture: bool, wide: bool = False) -> tuple[int, float]:
        """Return the rows and the quads of columns per lane of the subgroup kernel's tiles: those that take the least time.

        More rows load `b` less often. A common tile is taken unless a higher tile wastes much less, or half a quad does, or a
        wider one is filled. A large product without a texture takes the largest tile. With `b` in a texture, 16 rows of two
        quads are faster than 32 of one.

        Args:
            size: sizes of the product.
            texture: whether `b` is in a texture.
            wide: whether the wider tile may be taken. Networks of convolutions have products of many sizes: for the few that
                fill it they would compile another kernel.
        """

        def nanoseconds(tile: tuple[int, float]) -> float:
            return self.tile_nanoseconds(size, *tile, texture=texture)

        best, times = min(common_tiles(texture=texture), key=nanoseconds), self.subgroup
        rare: list[tuple[tuple[int, float], Worth]] = []
        if not texture:
            rare = [(LARGE_TILE, times.worth_large)]
        elif best[0] == 16:
            rare = [((TALL_ROWS, best[1]), times.worth_tall), *(((16, quads), times.worth_halves) for quads in HALF_QUADS)]
            rare += [((16, WIDE_QUADS), times.worth_wide)] * wide
        takes = nanoseconds(best)
        worth = [tile for tile, (share, least) in rare if takes - nanoseconds(tile) > max(least, share * takes)]
        return min(worth, key=nanoseconds, default=best)

    def tile_of(self, choice: Choice, size: ProductSize, *, texture: bool, wide: bool = False) -> tuple[int, float]:
        """Return the subgroup kernel's tile for a choice, which may name one. The arguments are those of `subgroup_tile`."""
        rows, quads = choice.tile or self.subgroup_tile(size, texture=texture, wide=wide)
        return int(rows), quads if texture else max(1, int(quads))

    def subgroup_nanoseconds(self, size: ProductSize, *, texture: bool) -> float:
        """Return the approximate time of the subgroup kernel for a product on one core."""
        return self.tile_nanoseconds(size, *self.subgroup_tile(size, texture=texture), texture=texture)

    def tile_nanoseconds(self, size: ProductSize, rows: float, quads: float, *, texture: bool) -> float:
        """Return the approximate time of the subgroup kernel on one core for a tile of rows and quads of columns per lane."""
        lanes, times = self.lanes, self.subgroup
        tiles = -(-size.M // rows) * -(-size.N // (lanes * quads * 4))
        a_loads = -(-rows // lanes) * times.buffer_ns
        b_loads = 4 * quads * (times.texture_ns if texture else times.buffer_ns)
        products = rows * (int(quads) + (times.half_share if quads % 1 else 0)) * times.product_ns
        return size.matrices * tiles * size.K / 4 * (a_loads + b_loads + products)
