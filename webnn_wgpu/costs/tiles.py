"""The tiles that the kernels of matrix products are written for."""

from __future__ import annotations

TILE_SIDES = (8, 16)
"""Sides of the tiled kernel's workgroups, in invocations. Its tiles are 4 times as wide and high."""

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

WIDE_QUADS = 3
"""Quads per lane of a wider tile, for results whose columns fill it: its products take the fewest loads."""


def common_tiles(*, texture: bool) -> list[tuple[int, float]]:
    """Return the rows and the quads per lane of the subgroup kernel's common tiles, with `b` in a texture or not."""
    candidates = (16, 8, 4, 2, 1) if texture else (32, 16, 8, 4, 2, 1)
    return [(rows, quads) for rows in candidates for quads in (2, 1) if rows * quads <= MOST_QUADS]


def subgroup_tiles(*, texture: bool) -> list[tuple[int, float]]:
    """Return the rows and the quads per lane of all the subgroup kernel's tiles, with `b` in a texture or not."""
    rare: list[tuple[int, float]] = []
    if texture:
        rare = [(TALL_ROWS, 2), (TALL_ROWS, 1), *((16, quads) for quads in (WIDE_QUADS, *HALF_QUADS))]
    return rare + common_tiles(texture=texture)
