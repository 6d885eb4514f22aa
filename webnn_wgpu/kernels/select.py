"""Choosing the kernel of a matrix product from the device's capabilities and the product's sizes, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..core.caps import Caps

VARIANTS = ("subgroup", "tiled", "gemv", "plain")
"""The kernels of matrix products; each is a template `shaders/ops/matmul.<variant>.wgsl.j2`."""

SUBGROUP_SIZES = (4, 8, 16)
"""Subgroup sizes the subgroup kernel is written for: those of software adapters, one to a lane of the processor's vectors."""

GEMV_ROWS = 4
"""Most rows for which hardware takes the `gemv` kernel: a tile would compute 64 rows to keep these."""

LARGE_TILES = 128
"""Tiles of 64 x 64 from which on hardware takes them: fewer leave it idle, and 32 x 32 makes four times as many."""

TILE_SIDES = (8, 16)
"""Sides of the tiled kernel's workgroups, in invocations."""

PLAIN_ROWS = (1, 2, 4, 8)
"""Rows that an invocation of the plain kernel may take."""

MOST_QUADS = 32
"""Quads that a lane of the subgroup kernel sums up at most."""

_TEXTURE_NS, _BUFFER_NS = 5.6, 15.5
"""What loading a quad for 8 lanes costs on a software adapter (lavapipe, measured): from a texture, from a buffer."""

_PRODUCT_NS = 6.2
"""What 8 lanes' products of four numbers with a quad cost there, sums included (measured: 41 GFLOP/s on a core)."""

TALL_ROWS = 25
"""Rows of a higher tile, two of which hold the 7 x 7 pixels that many networks end in, where of 16 rows they would fill three
and a sixteenth.
"""

_HALF_QUADS = (2.5, 1.5, 0.5)
"""Quads per lane of tiles that are whole for 16, 48 and 80 columns, of which those of whole quads would waste a part."""

_HALF_SHARE = 0.52
"""The share of what a quad costs that half a quad does."""

WIDE_QUADS = 3
"""Quads per lane of a wider tile, for results whose columns fill it: its products take the fewest loads."""

_WORTH_TALL, _WORTH_HALVES, _WORTH_WIDE = (0.1, 500_000), (0.1, 150_000), (0.03, 15_000)
"""What the higher tile, one of half quads and the wider one must save, of a product's time and in nanoseconds: drivers take up
to a quarter of a second longer to compile the former and a twentieth for the latter, which hundreds of runs win back, or of a
network with several such products.
"""

WORTH_A_KERNEL_NS = 100_000
"""What a product must gain by tiles of its own to be worth one more kernel, of core time: a thousand runs win back the tenth of
a second that drivers take to compile it.
"""


@dataclass(frozen=True)
class ProductSize:
    """A matrix product: `matrices` times [M, K] x [K, N].

    Attributes:
        M: rows.
        N: columns.
        K: length of the sums.
        matrices: how many products.
    """

    M: int
    N: int
    K: int
    matrices: int = 1


Tile: TypeAlias = tuple[float, ...]
"""The sides of a tile in a variant's own units; all are whole but the quads of the subgroup kernel."""


@dataclass(frozen=True)
class Choice:
    """The kernel variant to take, and why, for people; and its tile, where that is not left to the heuristics."""

    variant: str
    reason: str
    tile: Tile = ()


def spelled(variant: str, tile: Tile = ()) -> str:
    """Return the name of a variant with a tile.

    >>> spelled("subgroup", (16, 2)), unspelled("subgroup:16x2.5"), unspelled("gemv")
    ('subgroup:16x2', ('subgroup', (16, 2.5)), ('gemv', ()))
    """
    return f"{variant}:{'x'.join(f'{side:g}' for side in tile)}" if tile else variant


def unspelled(name: str) -> tuple[str, Tile]:
    """Return the variant and the tile that a name means; raises ValueError where it means none."""
    variant, _, tile = name.partition(":")
    return variant, tuple(float(side) if "." in side else int(side) for side in tile.split("x")) if tile else ()


def choose(caps: Caps, size: ProductSize) -> Choice:
    """Return the kernel variant for a matrix product on a device.

    Example:
        >>> choose(Caps(adapter_type="DiscreteGPU"), ProductSize(512, 512, 512)).reason
        'hardware GPU: tiles in workgroup memory'
    """
    if not caps.is_cpu:
        kind = "unknown adapter, taken for hardware" if caps.adapter_type == "Unknown" else "hardware GPU"
        if size.M <= GEMV_ROWS:
            return Choice("gemv", f"{kind}, {size.M} row(s): split sums")
        return Choice("tiled", f"{kind}: tiles in workgroup memory")
    if supports(caps, "subgroup"):
        return Choice("subgroup", f"software adapter with subgroups of {caps.subgroup_size}")
    return Choice("plain", "software adapter without subgroups: sums in registers")


def supports(caps: Caps, variant: str) -> bool:
    """Return whether a device can run a variant; all but `subgroup` run on every device."""
    return variant != "subgroup" or ("subgroup" in caps.features and caps.subgroup_size in SUBGROUP_SIZES)


def subgroup_tile(caps: Caps, size: ProductSize, *, texture: bool, wide: bool = False) -> tuple[int, float]:
    """Return the rows and the quads of columns per lane of the subgroup kernel's tiles: those that take the least time.

    More rows load `b` less often. But a driver's compiler takes as long as there are quads in a lane's part of a tile, so these
    are 32 at most, unless a higher tile wastes much less, or half a quad does, or a wider one is filled; with `b` in a texture,
    16 rows of two are faster than 32 of one.

    Args:
        caps: what the device can do.
        size: sizes of the product.
        texture: whether `b` lies in a texture.
        wide: whether the wider tile may be taken. Networks of convolutions have products of many sizes: for the few that fill
            it they would compile another kernel.
    """

    def nanoseconds(tile: tuple[int, float]) -> float:
        return tile_nanoseconds(caps, size, *tile, texture=texture)

    best = min(_common_tiles(texture=texture), key=nanoseconds)
    if not texture or best[0] != 16:
        return best
    rare = [((TALL_ROWS, best[1]), _WORTH_TALL), *(((16, quads), _WORTH_HALVES) for quads in _HALF_QUADS)]
    rare += [((16, WIDE_QUADS), _WORTH_WIDE)] * wide
    takes = nanoseconds(best)
    worth = [tile for tile, (share, least) in rare if takes - nanoseconds(tile) > max(least, share * takes)]
    return min(worth, key=nanoseconds, default=best)


def tile_of(caps: Caps, choice: Choice, size: ProductSize, *, texture: bool, wide: bool = False) -> tuple[int, float]:
    """Return the rows and the quads of columns per lane of the subgroup kernel's tiles for a choice that may name them."""
    rows, quads = choice.tile or subgroup_tile(caps, size, texture=texture, wide=wide)
    return int(rows), quads if texture else max(1, int(quads))


def with_tiles(variant: str, *, texture: bool) -> list[str]:
    """Return the names of a variant with each of the tiles it is written for.

    Args:
        variant: one of matrix products, or of convolutions, whose `implicit` has the tiles of `subgroup`.
        texture: whether `b` is a constant, which may lie in a texture.

    >>> with_tiles("tiled", texture=False), with_tiles("gemv", texture=False)
    (['tiled:8', 'tiled:16'], ['gemv'])
    """
    if variant in ("subgroup", "implicit"):
        return [spelled(variant, tile) for tile in _subgroup_tiles(texture=texture)]
    sides = {"tiled": TILE_SIDES, "plain": PLAIN_ROWS}.get(variant, ())
    return [spelled(variant, (side,)) for side in sides] or [variant]


def _subgroup_tiles(*, texture: bool) -> list[tuple[int, float]]:
    rare: list[tuple[int, float]] = []
    if texture:
        rare = [(TALL_ROWS, 2), (TALL_ROWS, 1), *((16, quads) for quads in (WIDE_QUADS, *_HALF_QUADS))]
    return rare + _common_tiles(texture=texture)


def _common_tiles(*, texture: bool) -> list[tuple[int, float]]:
    candidates = (16, 8, 4, 2, 1) if texture else (32, 16, 8, 4, 2, 1)
    return [(rows, quads) for rows in candidates for quads in (2, 1) if rows * quads <= MOST_QUADS]


def subgroup_nanoseconds(caps: Caps, size: ProductSize, *, texture: bool) -> float:
    """Return about how long the subgroup kernel takes for a product on one core."""
    return tile_nanoseconds(caps, size, *subgroup_tile(caps, size, texture=texture), texture=texture)


def tile_nanoseconds(caps: Caps, size: ProductSize, rows: float, quads: float, *, texture: bool) -> float:
    """Return about how long the subgroup kernel takes on one core for a product in tiles of some rows and quads per lane."""
    lanes = caps.subgroup_size
    tiles = -(-size.M // rows) * -(-size.N // (lanes * quads * 4))
    a_loads = -(-rows // lanes) * _BUFFER_NS
    b_loads = 4 * quads * (_TEXTURE_NS if texture else _BUFFER_NS)
    products = rows * (int(quads) + (_HALF_SHARE if quads % 1 else 0)) * _PRODUCT_NS
    return size.matrices * tiles * size.K / 4 * (a_loads + b_loads + products)


def tile_side(size: ProductSize) -> int:
    """Return the side of the tiled kernel's workgroups in invocations: its tiles are 4 times as wide and high."""
    large = -(-size.M // 64) * -(-size.N // 64) * size.matrices
    return TILE_SIDES[large >= LARGE_TILES]


def plain_rows(size: ProductSize) -> int:
    """Return the rows per invocation of the plain kernel."""
    return next((rows for rows in PLAIN_ROWS if size.M <= rows), PLAIN_ROWS[-1])
