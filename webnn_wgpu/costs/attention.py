"""The costs of attention: which kernel computes it, and how its rows and keys are divided."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from .sizes import Choice


class KeyCopy(NamedTuple):
    """A quad of a key that each invocation copies to workgroup memory, relative to the invocation's first one.

    Attributes:
        key: the number of the key within the block.
        own_key: the number of the key among those of the invocation that reads it.
        x: the number of that invocation within its row.
    """

    key: int
    own_key: int
    x: int


class ValueCopy(NamedTuple):
    """A quad of a value that each invocation reads from the buffer, relative to the invocation's first one.

    Attributes:
        key: the number of the key among those whose values are read at once.
        quad: the number of the quad among an invocation's quads of columns.
    """

    key: int
    quad: int


@dataclass(frozen=True, kw_only=True)
class AttentionTile:
    """How a workgroup of the tiled kernel divides its work (`shaders/ops/attention.tiled.wgsl.j2`).

    A block of keys takes two products: scores are queries times keys, and sums are weights times values. An invocation has
    the same rows of both. The invocations of a row share the keys of its scores. For its sums some share the columns, and the
    others have the same columns for other keys. Their sums are added at the end.

    Attributes:
        rows, keys: sides of a block of scores.
        own_rows: the number of rows that an invocation has.
        own_keys: keys whose scores an invocation computes, a multiple of 4.
        depth: quads of queries and keys that are in workgroup memory at once.
        column_groups: the number of invocations that share the columns of a row's sums.
        quads: the quads of columns of each of these.
        halves: whether an invocation and a partner compute the scores of both, each over half of `depth`, and exchange sums.
            For 8 rows and 4 keys, this takes the bytes of workgroup memory for each multiply-add from 1.5 to 1.

    Example:
        >>> tile = AttentionTile(rows=64, keys=64, own_keys=8, depth=4, column_groups=4, quads=2)
        >>> tile.invocations, tile.across, tile.shares, tile.local_bytes(4), str(tile)
        (64, 8, 2, 16256, '64x64')
    """

    rows: int
    keys: int
    own_rows: int = 8
    own_keys: int
    depth: int
    column_groups: int
    quads: int
    halves: bool = False

    @property
    def invocations(self) -> int:
        """Invocations of the workgroup."""
        return self.down * self.across

    @property
    def down(self) -> int:
        """The number of invocations of the workgroup along the rows."""
        return self.rows // self.own_rows

    @property
    def across(self) -> int:
        """The number of invocations that share a row."""
        return self.keys // self.own_keys

    @property
    def shares(self) -> int:
        """The number of shares of the keys with separate sums."""
        return self.across // self.column_groups

    @property
    def steps(self) -> int:
        """Quads of values that an invocation takes from workgroup memory for each of its columns, until there are others."""
        return min(self.column_groups, max(1, _VALUE_QUADS // (4 * self.across * self.quads)))

    @property
    def query_copies(self) -> int:
        """Quads that each invocation copies of `depth` quads of the queries."""
        return max(1, self.depth * self.rows // self.invocations)

    @property
    def key_copies(self) -> list[KeyCopy]:
        """The quads that each invocation copies of `depth` quads of the keys."""
        at_once = self.invocations // self.depth
        beside, below = max(1, self.across // at_once), max(1, at_once // self.across)
        copies: list[KeyCopy] = []
        for i in range(self.depth * self.keys // self.invocations):
            own_key, x = i // beside * below, i % beside * at_once
            chunk, within = divmod(own_key, 4)
            copies.append(KeyCopy(key=4 * (chunk * self.across + x) + within, own_key=own_key, x=x))
        return copies

    @property
    def value_copies(self) -> list[ValueCopy]:
        """The quads that each invocation reads of the values that are taken at once.

        The `down` invocations with the same keys and columns share these: `steps` times `quads` times 4.
        """
        rows = range(0, self.steps * self.quads * 4, self.down)
        return [ValueCopy(key=m // (4 * self.quads) * 4 * self.shares + m % 4, quad=m // 4 % self.quads) for m in rows]

    @property
    def pitch(self) -> int:
        """Distance in workgroup memory of the quads of a key, which neighbors copy.

        The padding puts them into different memory banks. Tiles with 8 own keys have room for a single quad of it.
        """
        return self.across + (8 // self.depth if self.own_keys == 4 else 1)

    @property
    def plane_quads(self) -> int:
        """Quads of workgroup memory for one own key of each invocation of a row."""
        return (self.depth - 1) * self.pitch + self.across

    @property
    def planes(self) -> int:
        """The number of parts of `plane_quads` in workgroup memory, which the keys and the shared values take in turns."""
        of_values = self.steps * self.quads * 4 // self.depth if self.down > 1 else 0
        return max(self.own_keys, of_values)

    def iterations(self, size: int) -> int:
        """Return the loop iterations of a block, with queries and keys of some size."""
        return -(-size // (4 * self.depth)) + self.own_keys // 4 * self.column_groups // self.steps + 1

    def local_bytes(self, element_bytes: int) -> int:
        """Return the bytes of workgroup memory, with keys and values of some size."""
        of_rows = self.rows * (self.across * (16 + 4) + 8 + 16)
        return of_rows + 4 * element_bytes * self.planes * self.plane_quads

    def __str__(self) -> str:
        return f"{self.rows}x{self.keys}"


DECODE_ROWS = 8
"""Most rows of a workgroup of the `decode` kernel."""

DECODE_KEYS = 64
"""Keys that the invocations of a workgroup of the `decode` kernel share at once, for each key of an invocation."""

_DECODE_COLUMNS = 256
"""Elements of a key's head that an invocation of it loads at once, four times: 16 quads of keys and 16 of values."""

_VALUE_QUADS = 256
"""Most quads of values in workgroup memory at once, unless one step takes more."""

_LEAST_DIVIDED_KEYS = 256
"""Keys from which on the tiled kernel divides them among workgroups. An H200 takes 21 us for 197 keys in one part, and 26 us
in two with the dispatch that combines them."""

_LEAST_PART_KEYS = 64
"""Keys of a part of the tiled kernel at least, a block of most tiles. An H200 gains from parts of 128 keys."""

_WELL_FILLED = 2
"""Multiple of the workgroups that keep the device busy, from which on parts of the keys gain nothing."""

_WORTH_DIVIDING = 3.5
"""Multiple of the workgroups that keep the device busy, which parts of the keys make up at least.

A core then has several workgroups, which wait for memory in turns, until the end. With fewer parts, the combination costs as
much as they gain. An H200 takes 248 us for 6 heads of 1500 rows and keys in one part, 231 in two and 191 in four. For 8 heads
of 1024, it takes 161, 165 and 133. For 16 heads of 512, which are 128 wide, it takes 147, 161 and 129.
"""

_BLOCKS = ((64, 64, 8, 8, 4, False), (32, 64, 8, 4, 4, True), (16, 128, 8, 4, 2, True), (6, 256, 6, 4, 2, False))
"""Rows, keys, own rows, own keys, depth and halves of the tiled kernel's blocks, larger ones first. All have 64 invocations.

The last one is for keys that fill a single block. With 7 rows it would take more than 16 KiB of workgroup memory.
"""


def attention_tiles(columns: int) -> list[AttentionTile]:
    """Return the tiles of the tiled kernel that have registers for a head's columns, larger ones first."""
    tiles: list[AttentionTile] = []
    for rows, keys, own_rows, own_keys, depth, halves in _BLOCKS:
        across = keys // own_keys
        groups = [1 << i for i in range(across.bit_length())]
        # Three quads of 8 rows take 96 registers: they fit beside 32 scores, but not beside 64, as halves have.
        most = 3 if own_keys == 4 and across < 32 else 2
        fitting = [(n * quads, quads, n) for quads in range(2, most + 1) for n in groups if n * quads * 4 >= columns]
        if fitting:
            _, quads, column_groups = min(fitting)
            tiles.append(
                AttentionTile(
                    rows=rows,
                    keys=keys,
                    own_rows=own_rows,
                    own_keys=own_keys,
                    depth=depth,
                    column_groups=column_groups,
                    quads=quads,
                    halves=halves and quads == 2,
                )
            )
    return tiles


@dataclass(frozen=True, kw_only=True)
class AttentionCosts(ABC):
    """Costs of attention.

    Attributes:
        busy_units: units below which the keys are shared among several.
        busy_workgroups: workgroups of the tiled kernel that keep the device busy.
        shortest_part: keys of a part at least: combining shorter ones costs more than is gained.
        decode_keys: most keys of a part of the `decode` kernel.
        long_keys: keys from which on compiling a larger kernel pays.
        subgroup_barriers: whether kernels in subgroups synchronize them, if the device has such barriers.
        gradient_by_products: whether products with matrices of scores in memory compute gradients faster than kernels that
            compute the scores again.
        most_kept_bytes: weights that are kept for the gradient in that case. Products compute the attention too then.
    """

    busy_units: int
    busy_workgroups: int
    shortest_part: int
    decode_keys: int
    long_keys: int
    subgroup_barriers: bool
    gradient_by_products: bool
    most_kept_bytes: int

    @abstractmethod
    def choose(self, possible: Collection[str], rows: int, keys: int, columns: int) -> Choice:
        """Return the kernel variant.

        Args:
            possible: the variants that there are for the device and the sizes.
            rows: rows of queries for each head of keys.
            keys: the number of keys.
            columns: width of a head of values.
        """

    @abstractmethod
    def plain_rows(self, rows: int) -> int:
        """Return the number of rows, out of `rows`, of an invocation of the `plain` kernel."""

    def subgroup_rows(self, rows: int, quads: int) -> int:
        """Return the rows of a unit of the `subgroup` kernel.

        More rows share each load of keys and values, but too many sums make the compilation long.

        Args:
            rows: the rows of queries for each head of keys.
            quads: the quads of columns for each lane.
        """
        most = 8 if quads > 4 else 16
        return next((r for r in (1, 2, 4, 8, 16) if rows <= r < most), most)

    def key_quads(self, rows: int) -> int:
        """Return the number of quads of keys that each lane of the `subgroup` kernel takes at once, in units of some rows."""
        # With 16 rows 2 are a little faster, but take twice as long to compile.
        return 1 if rows == 16 else 2

    def keys_at_once(self, length: int, lanes: int) -> int:
        """Return the number of keys that the `queries` kernel takes at once, so that the last block is nearly full."""
        # The weights of 64 keys fill half of the workgroup memory that every device has, or with 16 lanes all of it.
        wide = length >= self.long_keys and lanes <= 8
        return 64 if wide else min(32, 40, key=lambda keys: -(-length // keys) * keys)

    def tile(self, rows: int, keys: int, columns: int, matrices: int) -> AttentionTile:
        """Return the tile of the tiled kernel: the largest of which there are enough to keep the device busy.

        Parts of the keys are the last choice, since another dispatch combines their results. A tile of few rows is better if
        the keys fill one of its blocks: more keys would be read too often.

        Args:
            rows: rows of queries for each head of keys.
            keys: the number of keys.
            columns: width of a head of values.
            matrices: heads of keys of all batches.
        """
        *tiles, lowest = attention_tiles(columns)

        def keeps_busy(tile: AttentionTile, parts: int) -> bool:
            tiles = -(-rows // tile.rows) * matrices
            return self._are_enough(tiles) if parts == 1 else tiles * parts >= self.busy_workgroups

        full = [tile for tile in tiles[:-1] if tile.rows < 2 * rows] + tiles[-1:]
        whole = [*full, lowest] if lowest.keys < 2 * keys <= 2 * lowest.keys else full
        divided = full if self._parts_pay(keys) else []
        candidates = [*((tile, 1) for tile in whole), *((tile, -(-keys // tile.keys)) for tile in divided)]
        return next((tile for tile, parts in candidates if keeps_busy(tile, parts)), candidates[-1][0])

    def decode_part(self, rows: int, keys: int, units: int, columns: int) -> tuple[int, int]:
        """Return the number of keys that an invocation of the `decode` kernel has at once, and the number of keys of a part.

        Where the keys have several parts, these are so short that they keep the device busy.

        Args:
            rows: rows of a unit.
            keys: the number of keys.
            units: the number of units without a division of the keys.
            columns: the width of a head, of queries or values, whichever is wider.
        """
        # The products fit workgroup memory, and what an invocation loads at once fits registers.
        own_keys = max(1, min(DECODE_ROWS // rows, _DECODE_COLUMNS // columns))
        part = self.decode_keys
        while (
            keys > max(part, 2 * DECODE_KEYS * own_keys)
            and part > DECODE_KEYS
            and not self._are_enough(units * -(-keys // part))
        ):
            part //= 2
        return min(own_keys, -(-min(keys, part) // DECODE_KEYS)), part

    def parts_of_keys(self, units: int, keys: int) -> int:
        """Return the number of invocations or workgroups that share the keys of a unit, given the number of units."""
        return min(-(-self.busy_units // units), keys // self.shortest_part) if units < self.busy_units else 1

    def parts_of_tiles(self, tiles: int, keys: int) -> int:
        """Return the number of workgroups of the tiled kernel that share the keys of a tile, given the number of tiles.

        It is a power of two.
        """
        if tiles >= _WELL_FILLED * self.busy_workgroups or not self._parts_pay(keys):
            return 1
        parts = 1
        while parts * tiles < _WORTH_DIVIDING * self.busy_workgroups and keys >= 2 * parts * _LEAST_PART_KEYS:
            parts *= 2
        return parts

    def _are_enough(self, tiles: int) -> bool:
        """Return whether tiles, or parts of the keys, are so many that smaller ones, which read more, would gain nothing.

        An eighth of the device may rather be idle.
        """
        return tiles >= 0.875 * self.busy_workgroups

    def _parts_pay(self, keys: int) -> bool:
        """Return whether the keys are so many that their division saves more than the dispatch that combines the parts."""
        return keys >= _LEAST_DIVIDED_KEYS
