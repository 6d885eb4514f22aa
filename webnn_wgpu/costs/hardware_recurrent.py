"""Costs of recurrent networks on GPUs: a dispatch for all time steps, or a dispatch for each, which layers may share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .cooperative import CooperativeTile, cooperative_tile
from .rates import CORE_BYTES_PER_NS, DEPENDENT_DISPATCH_NS, DeviceRates
from .recurrent import SHARED_ROWS, STEP_WORKGROUP, RecurrentCosts, RecurrentSize
from .sizes import UNLIMITED, Choice

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEP_NS = 3800.0
"""Time of a dispatch that is a time step, besides the weights. It fits networks of 64 to 1024 units on an H200."""

_WAVE_NS = 4500.0
"""Time of a dispatch in which each layer of a stack makes a step, besides the weights. It fits 11 stacks on an H200."""

_STEP_READING_SHARE = 0.55
"""The share of the rate of the cache that cores share, at which a time step reads weights. Its few invocations wait for them.

It fits the same networks. Weights of more than some 35 MB are read at half of the rate: an H200's cache does not hold them.
"""

_FEWEST_SHARES = 8
"""Invocations that share a sum of the `steps` kernel at least. A GPU has invocations to spare. Estimated."""

_MOST_SHARES = 32
"""Invocations that share a sum of the `steps` kernel at most. The two beside each other read 32 bytes of a row of float32
weights, as much as an NVIDIA GPU reads at least. An H200 gains 2 to 6 % from 64 in larger workgroups, for up to 512 units. It
loses half for 2048, whose weights its cache does not hold."""

_SEQUENCE_STEP_NS = 1500.0
"""Time of a step of the `sequence` kernel besides reading weights: barriers and dependent arithmetic.

An H200 took 1.1 us for lstm with 64 units, and 4.8 with 128, of whose weights it reads a part in each step.
"""

_COOPERATIVE_STEP_NS = 2500.0
"""Time of a step of the `cooperative` kernel: a word goes to the cache that cores share and back, and three barriers.

Estimated: 0.7 us for that way, besides a step of the `sequence` kernel, which took an H200 1.1 us with 64 units.
"""

_ALONE_PANEL_NS = 3000.0
"""Time in which a single workgroup computes a step of its units, besides reading weights: four barriers. Estimated."""

_WORTH_COOPERATION = 0.7
"""The share of the time of other kernels that the `cooperative` kernel may take at most: its estimate is not measured."""

_COOPERATIVE_DISPATCHES = 2
"""Dispatches of the `cooperative` kernel besides its own: one clears the exchanged words, one ends at once."""

_WORTH_STEPS = 0.7
"""The share of the time that a dispatch per step must take at most: each also takes time of the host."""

_LONGEST_DISPATCH_NS = 500_000_000.0
"""The maximum estimated time of a dispatch. Windows ends a dispatch after 2 s, and a small GPU may take several times as long
as the estimate."""

_MOST_SEQUENCE_ROWS = 4
"""The maximum number of batch rows of a workgroup of the `sequence` kernel. With more rows, a core would multiply for longer
than it reads."""


@dataclass(frozen=True, kw_only=True)
class HardwareRecurrent(RecurrentCosts):
    """Costs of recurrent networks on a GPU.

    One workgroup computes all time steps on one core. In every step, it reads the weights that its registers do not hold. A
    dispatch per step reads them with all cores, but waits for the preceding dispatch. For lstm with 256 units, an H200 took
    21.5 us for a step in one dispatch, and 4.8 us in a dispatch per step. Where workgroups run side by side, they compute all
    steps in one dispatch too: each holds some of the weights in registers, and they exchange the states after each step.

    Attributes:
        rates: the rates of the GPU.
        side_by_side: whether workgroups that have begun all go on, though others wait for them.
        most_local_bytes: bytes of workgroup memory that a workgroup may have.
    """

    rates: DeviceRates
    side_by_side: bool
    most_local_bytes: int

    def cooperative_tile(self, size: RecurrentSize, *, kept: bool = True) -> CooperativeTile | None:
        """Return the tile of the `cooperative` kernel, or None if no tile fits or workgroups may not run side by side."""
        if not self.side_by_side:
            return None
        return cooperative_tile(
            size,
            cores=self.rates.cores if kept else UNLIMITED,
            registers=self.sequence_registers if kept else UNLIMITED,
            most_invocations=self.sequence_invocations,
            local_bytes=self.most_local_bytes,
        )

    def choose(self, size: RecurrentSize, *, several: bool, in_way: Mapping[str, str]) -> Choice:
        """Return a kernel that computes all time steps in one dispatch, or the one with a dispatch for each time step."""
        if size.steps == 1:
            return Choice("steps", "a single step")
        if in_way.get("sequence"):
            return Choice("steps", in_way["sequence"])
        sequence_ns, steps_ns = self._sequence_step_ns(size), self._steps_step_ns(size)
        if not in_way.get("cooperative") and self._may_cooperate(size):
            cooperative_ns = self._cooperative_step_ns(size)
            if cooperative_ns < _WORTH_COOPERATION * min(sequence_ns, steps_ns):
                return Choice(
                    "cooperative",
                    f"{size.weights} recurrent weights, about {cooperative_ns / 1000:.1f} us a step in workgroups side by side,"
                    f" {steps_ns / 1000:.0f} us in a dispatch per step",
                )
        if size.steps * sequence_ns > _LONGEST_DISPATCH_NS:
            return Choice(
                "steps", f"one dispatch would take about {size.steps * sequence_ns / 1e9:.1f} s, and drivers end long ones"
            )
        estimates = f"about {sequence_ns / 1000:.0f} us a step in one dispatch, {steps_ns / 1000:.0f} us in a dispatch per step"
        variant = "steps" if steps_ns < _WORTH_STEPS * sequence_ns else "sequence"
        return Choice(variant, f"{size.weights} recurrent weights, {estimates}")

    def choose_stack(self, size: RecurrentSize, copies: int, *, in_way: Mapping[str, str]) -> Choice:
        """Return the faster one. A stack has fewer dispatches. Layers alone read the weights for their input only once."""
        own = self.choose(replace(size, layers=1), several=False, in_way=in_way)
        if own.variant == "sequence":
            return Choice("layers", f"each layer is one dispatch: {own.reason}")
        layers = size.layers
        waves = size.steps + layers - 1
        # All layers but the first multiply their input within the step.
        wave_ns = _WAVE_NS + self._reading_ns(size, matrices=2 * layers - 1)
        stack_ns = waves * wave_ns + copies * DEPENDENT_DISPATCH_NS
        step_ns = self._cooperative_step_ns(size) if own.variant == "cooperative" else self._steps_step_ns(size)
        layers_ns = layers * size.steps * step_ns + (layers - 1) * DEPENDENT_DISPATCH_NS
        stack_us, layers_us = stack_ns / 1000, layers_ns / 1000
        if not in_way.get("cooperative") and self._may_cooperate(size):
            together_ns = waves * self._cooperative_step_ns(size) + copies * DEPENDENT_DISPATCH_NS
            if together_ns < min(layers_ns, _WORTH_COOPERATION * stack_ns):
                estimates = (
                    f"about {together_ns / 1000:.0f} us in workgroups side by side, {layers_us:.0f} us one after the other"
                )
                return Choice("cooperative", estimates)
        may_turn = own.variant == "cooperative" and not in_way.get("turns") and self._may_cooperate(size, kept=False)
        if may_turn and layers_ns <= stack_ns:
            # One dispatch clears the exchanged words of all layers, and one would compute all of them again.
            turns_us = layers_us - (layers - 1) * _COOPERATIVE_DISPATCHES * DEPENDENT_DISPATCH_NS / 1000
            return Choice("turns", f"about {turns_us:.0f} us, a dispatch for each layer, {stack_us:.0f} us in common ones")
        estimates = f"about {stack_us:.0f} us in {waves} common dispatches, {layers_us:.0f} us one after the other"
        return Choice("stack" if stack_ns < layers_ns else "layers", estimates)

    def shares_of_sums(self, invocations: int) -> int:
        """Return as many as give each core a workgroup, 8 to 32.

        The loop over the weights then waits for memory the least often. More shares would read shorter runs of weights.
        """
        shares = _FEWEST_SHARES
        while shares < _MOST_SHARES and invocations * shares < STEP_WORKGROUP * self.rates.cores:
            shares *= 2
        return shares

    def sequence_rows(self, directions: int, rows: int) -> int:
        """Return one, unless the workgroups of all batch rows together read more weights than the shared cache delivers."""
        taken = 1
        busy = self.rates.bytes_per_ns / CORE_BYTES_PER_NS
        while taken < _MOST_SEQUENCE_ROWS and directions * -(-rows // taken) > busy:
            taken *= 2
        return taken

    def _sequence_step_ns(self, size: RecurrentSize) -> float:
        """Return the time of a step if all steps are one dispatch."""
        register_bytes = 4 * self.sequence_registers * self.sequence_invocations
        # A half of the registers is for the weights that are read.
        streamed_bytes = 0 if size.weight_bytes <= register_bytes else size.weight_bytes - register_bytes // 2
        own_rows = self.sequence_rows(size.directions, size.rows) if streamed_bytes else 1
        workgroups = size.directions * -(-size.rows // own_rows)
        rounds = -(-workgroups // self.rates.cores)
        reading_ns = max(rounds / CORE_BYTES_PER_NS, workgroups / self.rates.bytes_per_ns) * streamed_bytes
        return rounds * _SEQUENCE_STEP_NS + reading_ns

    def _may_cooperate(self, size: RecurrentSize, *, kept: bool = True) -> bool:
        """Return whether a tile fits, and no dispatch takes too long, even where a single workgroup computes everything."""
        tile = self.cooperative_tile(size, kept=kept)
        if tile is None:
            return False
        # It computes the panels of all layers one after the other, and reads their weights in every step.
        panels = size.layers * -(-size.hidden // tile.units)
        read_bytes = (2 * size.layers - 1) * size.weight_bytes
        alone_ns = panels * _ALONE_PANEL_NS + read_bytes / CORE_BYTES_PER_NS
        return size.steps * max(alone_ns, _COOPERATIVE_STEP_NS) <= _LONGEST_DISPATCH_NS

    def _cooperative_step_ns(self, size: RecurrentSize) -> float:
        """Return the time of a step of the `cooperative` kernel, with a step's share of the dispatches besides."""
        return _COOPERATIVE_STEP_NS + _COOPERATIVE_DISPATCHES * DEPENDENT_DISPATCH_NS / size.steps

    def _steps_step_ns(self, size: RecurrentSize) -> float:
        """Return the time of a step that is a dispatch, or two."""
        return size.step_dispatches * _STEP_NS + self._reading_ns(size, matrices=size.directions)

    def _reading_ns(self, size: RecurrentSize, *, matrices: int) -> float:
        """Return the time in which a step reads as many matrices of weights."""
        read_bytes = matrices * -(-size.rows // SHARED_ROWS) * size.weight_bytes
        return read_bytes / (self.rates.bytes_per_ns * _STEP_READING_SHARE)
