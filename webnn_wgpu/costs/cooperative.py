"""How the workgroups of a GPU divide a recurrent network among them, if they compute all time steps side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .recurrent import RecurrentSize

_QUAD = 4

_MOST_ROWS = 2
"""Batch rows of a workgroup at most: sums of more would not fit 16 KiB of workgroup memory."""

_INVOCATIONS = (256, 512)
"""Invocations of a workgroup. More of them hold more weights."""

_UNITS = (4, 8, 16, 32, 64)
"""Hidden units of a workgroup. Fewer units have shorter sums, and so fewer weights for each invocation."""


@dataclass(frozen=True, kw_only=True)
class CooperativeTile:
    """The part of a network whose weights a workgroup holds for all steps (`shaders/ops/recurrent.cooperative.wgsl.j2`).

    Attributes:
        units: hidden units of a workgroup, of all gates.
        invocations: invocations of a workgroup. `shares` of them share the sums of a unit.
        quads: quads of a state that an invocation multiplies, by weights in registers.
        rows: batch rows of a workgroup.

    Example:
        >>> tile = CooperativeTile(units=8, invocations=256, quads=2, rows=1)
        >>> tile.shares, tile.adders(sums=4), tile.local_bytes(sums=4, states=1)
        (32, 8, 6144)
    """

    units: int
    invocations: int
    quads: int
    rows: int

    @property
    def shares(self) -> int:
        """Invocations that share a sum."""
        return self.invocations // self.units

    def adders(self, sums: int) -> int:
        """Return how many invocations add up the shares of each sum, given the sums of a unit and batch row."""
        return max(1, min(self.shares // 4, self.invocations // (self.units * sums * self.rows)))

    def local_bytes(self, sums: int, states: int) -> int:
        """Return the bytes of workgroup memory: states of all units, and the sums of each invocation and adder."""
        of_states = states * self.shares * self.quads * _QUAD
        return 4 * self.rows * (of_states + sums * (self.invocations + self.adders(sums) * self.units))


def cooperative_tile(
    size: RecurrentSize, *, cores: int, registers: int, most_invocations: int, local_bytes: int
) -> CooperativeTile | None:
    """Return the tile whose weights fit registers, and of which each core gets one at most. None if there is none.

    A core can hold several such workgroups, so all of them run side by side even where others occupy some of the cores.

    Args:
        size: the network.
        cores: cores of the device.
        registers: registers of 32 bits that an invocation has for weights.
        most_invocations: invocations that a workgroup may have.
        local_bytes: bytes of workgroup memory that a workgroup may have.

    Example:
        >>> from webnn_wgpu.costs import RecurrentSize
        >>> size = RecurrentSize(steps=100, directions=1, rows=1, hidden=256, gates=4, element_bytes=4, step_dispatches=1)
        >>> cooperative_tile(size, cores=40, registers=64, most_invocations=256, local_bytes=16384)
        CooperativeTile(units=8, invocations=256, quads=2, rows=1)
    """
    rows = min(size.rows, _MOST_ROWS)
    chains = size.chains * -(-size.rows // rows)
    # Layers also read the state of the layer below. Gru has two sums of n then.
    states = 1 if size.layers == 1 else 2
    sums = size.gates + (size.layers > 1 and size.gates == 3)
    for invocations in _INVOCATIONS:
        for units in _UNITS:
            quads = -(-size.hidden * units // (_QUAD * invocations))
            tile = CooperativeTile(units=units, invocations=invocations, quads=quads, rows=rows)
            fits = invocations <= most_invocations and tile.local_bytes(sums, states) <= local_bytes
            if fits and chains * -(-size.hidden // units) <= cores and states * size.gates * quads * _QUAD <= registers:
                return tile
    return None
