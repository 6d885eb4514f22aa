"""The tiles of the kernels for products of few rows, whose workgroups share the sums of a few columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .architectures import CORE_INVOCATIONS

if TYPE_CHECKING:
    from .sizes import ProductSize

MOST_ROWS = 8
"""Rows of the highest tile."""

_MOST_SUMS = 1024
"""Quads of sums that a workgroup keeps: they take 16 KiB of workgroup memory, WebGPU's default limit."""

_MOST_INVOCATIONS = 256
"""Invocations of the largest workgroup, WebGPU's default limit."""

_LEAST_INVOCATIONS = 64
"""Invocations of the smallest workgroup, a subgroup of any GPU but Qualcomm's."""

_MOST_LANES = 32
"""The maximum number of invocations beside each other, unless sums are short. A subgroup then reads 512 contiguous bytes of
float32."""

_RUN_BYTES = 64
"""Bytes of a row of weights that invocations beside each other read at least, if tiles of so many columns keep the device busy.

An H200 takes 32 us for 1 x 4096 x 11008 in float16 with runs of 64 bytes, and 135 us with 32. For 1 x 768 x 50304 in float32,
runs of 32 bytes take 109 us, of 64 bytes 59, and of 128 or more 42.
"""

_SHORT_RUN_BYTES = 32
"""The same, if tiles are few. For 1 x 3072 x 768 in float32, an H200 takes 12.8 us with runs of 32 bytes, 16.3 us with 64."""

_BUSY_WORKGROUPS = 1.5
"""Workgroups for each core from which on tiles are not few. For 256 workgroups on 132 cores, runs of 32 bytes take 1.6 times as
long as runs of 64."""

_NARROW_SHARES = 64
"""Shares of a narrow tile: with its 4 invocations beside each other they make the largest workgroup."""

_NARROW_STEPS = 4
"""Steps of each of these at most: an invocation reads all of them before it multiplies."""

_STEP_LATENCY_CYCLES = 400
"""Clock cycles of a step: reading four quads of weights. An NVIDIA H200 takes some 800 for steps one after the other, but
kernels read those of several steps at once."""

_STEP_SLOTS = 24
"""Issue slots of a step besides multiply-adds."""

_FINISH_SLOTS = 40
"""Issue slots of an invocation for each row, to add up the shares."""

_START_CYCLES = 2000
"""Clock cycles of the start and the end of a workgroup."""


@dataclass(frozen=True, kw_only=True)
class RowTile:
    """The part of a matrix product that one workgroup of a kernel for few rows computes (`shaders/lib/shares.wgsl.j2`).

    Attributes:
        rows: the number of rows of the tile. Each invocation keeps sums of all rows.
        lanes: the number of invocations beside each other, a power of two. Each computes a quad of columns.
        shares: the number of invocations that share each sum, a power of two.
        narrow: whether each invocation computes a single column instead, and a step is one element of the sum instead of four.
            Then four invocations beside each other have a quad.

    Example:
        >>> tile = RowTile(rows=2, lanes=8, shares=32)
        >>> tile.columns, tile.invocations, str(tile)
        (32, 256, '2x32x32')
    """

    rows: int
    lanes: int
    shares: int
    narrow: bool = False

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.lanes if self.narrow else self.lanes * 4

    @property
    def invocations(self) -> int:
        """Invocations of the workgroup."""
        return self.lanes * self.shares

    def ahead(self, steps: int) -> int:
        """Return how many steps an invocation reads before it multiplies them, so that it waits the least often.

        The operands of a step take 16 registers. Steps behind the last whole group wait one by one.

        Args:
            steps: the iterations of a sum.

        Example:
            >>> tile = RowTile(rows=1, lanes=4, shares=64)
            >>> [tile.ahead(64 * own) for own in (1, 2, 3, 4, 5, 6)]
            [1, 2, 3, 4, 4, 3]
        """
        own, most = max(1, -(-steps // self.shares)), 4 if self.rows <= 2 else 2
        return min(range(1, most + 1), key=lambda ahead: own // ahead + own % ahead)

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}x{self.shares}"


def row_tile(
    size: ProductSize,
    *,
    most_rows: int,
    steps: int,
    cores: int,
    multiply_adds: int,
    lane_bytes: int = 16,
    may_be_narrow: bool = False,
) -> RowTile:
    """Return the tile that takes the least time, the widest one of equal ones.

    Wide tiles leave less to add up in workgroup memory, and read longer runs of weights. Tiles with many shares have short sums
    and many workgroups. A sum has at least as many shares as the tile has rows, because the shares store the results of the
    rows. More shares than steps, rounded up to a power of two, would have no work.

    A short row whose quads of columns have a core each leaves most of the device idle. Its invocations then take one column and
    an element each, so that eight times as many subgroups have work. AMD's compiler makes 162 to 175 instructions of that for a
    subgroup, instead of 148 to 152. For 1 x 48 x 1152, an H200 takes 7.1 to 7.8 us in every tile that was tried.

    Args:
        size: the sizes of the product.
        most_rows: the maximum number of rows of the tile. Tiles have 1, 2, 4 or 8 rows.
        steps: the iterations of a sum.
        cores: cores of the device.
        multiply_adds: multiply-adds of a core per clock: the invocations of which it issues an instruction.
        lane_bytes: the bytes of a row of weights that an invocation reads at once.
        may_be_narrow: whether the kernel has narrow tiles.

    Example:
        >>> from webnn_wgpu.costs import ProductSize
        >>> str(row_tile(ProductSize(1, 4096, 4096), most_rows=8, steps=1024, cores=40, multiply_adds=128))
        '1x16x64'
    """
    rows = next(n for n in (1, 2, 4, MOST_ROWS) if n >= min(size.M, most_rows, MOST_ROWS))
    invocations = min(_MOST_INVOCATIONS, _MOST_SUMS // rows)
    wanted = max(rows, 1 << max(0, steps - 1).bit_length())

    def workgroups(columns: int) -> int:
        return size.matrices * -(-size.M // rows) * -(-size.N // columns)

    if may_be_narrow and size.M == 1 and size.K <= _NARROW_STEPS * _NARROW_SHARES and workgroups(4) <= cores:
        shares = 1 << max(size.K - 1, _LEAST_INVOCATIONS // 4 - 1).bit_length()
        return RowTile(rows=1, lanes=4, shares=min(shares, _NARROW_SHARES), narrow=True)
    are_few = workgroups(4 * _RUN_BYTES // lane_bytes) < _BUSY_WORKGROUPS * cores
    least_lanes = (_SHORT_RUN_BYTES if are_few else _RUN_BYTES) // lane_bytes
    tiles: list[RowTile] = []
    lanes = min(invocations // rows, max(_MOST_LANES, _LEAST_INVOCATIONS // wanted))
    while lanes >= least_lanes:
        tile = RowTile(rows=rows, lanes=lanes, shares=min(wanted, invocations // lanes))
        if tile.invocations >= _LEAST_INVOCATIONS:
            tiles.append(tile)
        lanes //= 2

    def cycles(tile: RowTile) -> float:
        busiest, own = -(-workgroups(tile.columns) // cores), -(-steps // tile.shares)
        rounds = -(-busiest * tile.invocations // CORE_INVOCATIONS)
        issued = busiest * tile.invocations * (own * (_STEP_SLOTS + 16 * rows) + _FINISH_SLOTS * rows) / multiply_adds
        return rounds * (own * _STEP_LATENCY_CYCLES + _START_CYCLES) + issued

    return min(tiles, key=cycles)
