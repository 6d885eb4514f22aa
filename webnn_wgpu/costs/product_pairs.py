"""The division of the kernel that computes two products of few rows, and the cost of computing the first one repeatedly."""

from __future__ import annotations

from dataclasses import dataclass

from .few_rows import RowTile
from .rates import CORE_BYTES_PER_NS, DEPENDENT_DISPATCH_NS, LOADS_NS

INVOCATIONS = 256
"""Invocations of a workgroup, WebGPU's default limit."""

MOST_HIDDEN = 64
"""Most columns of the first product. A kernel of its own gives more of them a subgroup each, and so all cores of a GPU work."""

MOST_PARTS = 4 * INVOCATIONS
"""Most parts of sums that a workgroup keeps, in 4 KiB of its memory."""

MOST_OWN = 4
"""Most rows of the second product's weights that an invocation reads. It does so at its start, and keeps a quad of each."""

_LANES = (4, 8, 16, 32, 64)
"""Invocations that share a hidden number. Each reads a quad of weights, so that four of them read 64 contiguous bytes."""

_MOST_AHEAD = 8
"""Most quads of weights that an invocation reads before it multiplies them. With those of the row they take 64 registers."""

_WORTHWHILE_SHARE = 0.75
"""The share of a dispatch's time that the first product may take in each workgroup. Estimates err."""


@dataclass(frozen=True, kw_only=True)
class PairTile:
    """How the workgroups of two products share their work (`shaders/ops/product_pair.wgsl.j2`).

    Attributes:
        lanes: the invocations that share a hidden number, which is a result of the first product.
        ahead: the quads of weights that each of them reads before it multiplies them.
        waits: how often an invocation waits for weights of the first product.
        columns: the tile of the second product.
        own: the rows of the second product's weights that an invocation reads.
    """

    lanes: int
    ahead: int
    waits: int
    columns: RowTile
    own: int

    @property
    def invocations(self) -> int:
        """Invocations of a workgroup."""
        return INVOCATIONS


def pair_tile(steps: int, hidden: int, columns: int) -> PairTile:
    """Return the tile in which invocations wait the least often for weights of the first product, and read the fewest.

    Workgroups compute as many columns as their invocations have registers for, because each workgroup computes all hidden
    numbers.

    Args:
        steps: the length of the sums of the first product, a multiple of 4.
        hidden: the columns of the first product, which is the length of the sums of the second one.
        columns: the columns of the second product.

    Example:
        >>> pair_tile(672, 28, 672)
        PairTile(lanes=8, ahead=7, waits=3, columns=RowTile(rows=1, lanes=32, shares=8, narrow=False), own=4)
    """
    beside = next(n for n in (64, 32, 16, 8, 4) if n == 4 or (hidden * n <= MOST_OWN * INVOCATIONS and 4 * n < 2 * columns))
    shares, found = INVOCATIONS // beside, list[tuple[int, int, int, int]]()
    for lanes in _LANES:
        rounds, most = -(-hidden * lanes // INVOCATIONS), -(-steps // (4 * lanes))
        # Some invocations may have a quad less than others. Those behind the last whole group are read one by one.
        counts = range(max(1, steps // (4 * lanes)), most + 1)
        for ahead in range(1, min(most, _MOST_AHEAD) + 1):
            waits = rounds * (most // ahead + max(count % ahead for count in counts))
            if lanes * hidden <= MOST_PARTS:
                found.append((waits, rounds * most, lanes, ahead))
    waits, _, lanes, ahead = min(found)
    return PairTile(
        lanes=lanes,
        ahead=ahead,
        waits=waits,
        columns=RowTile(rows=1, lanes=beside, shares=shares),
        own=-(-hidden // shares),
    )


def repeating_pays(tile: PairTile, workgroups: int, cores: int, weights_bytes: int) -> bool:
    """Return whether workgroups that compute a product repeatedly take less time than a dispatch that computes it once.

    Args:
        tile: the tile.
        workgroups: the workgroups of the kernel.
        cores: cores of the GPU.
        weights_bytes: the bytes of the product's weights.
    """
    reading_ns = max(weights_bytes / CORE_BYTES_PER_NS, tile.waits * LOADS_NS)
    return -(-workgroups // cores) * reading_ns < _WORTHWHILE_SHARE * DEPENDENT_DISPATCH_NS
