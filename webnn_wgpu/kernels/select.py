"""The kernels of matrix products: the variants that a device can run, and the names of their tiles. Costs choose among them."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.caps import Caps
from ..costs import Tile
from ..costs.tiles import BLOCK_TILES, PLAIN_ROWS, subgroup_tiles

VARIANTS = ("subgroup", "tiled", "gemv", "plain")
"""The kernels of matrix products. Each is a template `shaders/ops/matmul.<variant>.wgsl.j2`."""

SUBGROUP_SIZES = (4, 8, 16)
"""Subgroup sizes the subgroup kernel is written for: those of software adapters, one to a lane of the processor's vectors."""


def spelled(variant: str, tile: Tile = ()) -> str:
    """Return the name of a variant with a tile.

    >>> spelled("subgroup", (16, 2)), unspelled("subgroup:16x2.5"), unspelled("gemv")
    ('subgroup:16x2', ('subgroup', (16, 2.5)), ('gemv', ()))
    """
    return f"{variant}:{'x'.join(f'{side:g}' for side in tile)}" if tile else variant


def unspelled(name: str) -> tuple[str, Tile]:
    """Return the variant and the tile of a name, or raise ValueError if it has none."""
    variant, _, tile = name.partition(":")
    return variant, tuple(float(side) if "." in side else int(side) for side in tile.split("x")) if tile else ()


def supports(caps: Caps, variant: str) -> bool:
    """Return whether a device can run a variant. All variants but `subgroup` run on every device."""
    return variant != "subgroup" or ("subgroup" in caps.features and caps.subgroup_size in SUBGROUP_SIZES)


def possible(caps: Caps) -> list[str]:
    """Return the variants that a device can run."""
    return [variant for variant in VARIANTS if supports(caps, variant)]


def with_tiles(variant: str, *, texture: bool, winograd: Sequence[Tile] = ()) -> list[str]:
    """Return the names of a variant with each of the tiles it is written for.

    Args:
        variant: one of matrix products, or of convolutions, whose `implicit` has the tiles of `subgroup`.
        texture: whether `b` is a constant, which may be in a texture.
        winograd: the tiles of Winograd's algorithm in one kernel, which depend on the convolution.

    >>> with_tiles("tiled", texture=False)[:2], with_tiles("gemv", texture=False)
    (['tiled:128x128', 'tiled:128x64'], ['gemv'])
    """
    if variant in ("subgroup", "implicit"):
        return [spelled(variant, tile) for tile in subgroup_tiles(texture=texture)]
    tiles: dict[str, list[Tile]] = {
        "tiled": [tile.sides for tile in BLOCK_TILES],
        "plain": [(rows,) for rows in PLAIN_ROWS],
        "winograd_tiled": list(winograd),
    }
    return [spelled(variant, tile) for tile in tiles.get(variant, ())] or [variant]
