"""The costs of recurrent networks: which kernels go through their steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from .cooperative import CooperativeTile
from .sizes import Choice

STEP_WORKGROUP = 64
"""Invocations per workgroup of the `steps` kernel (`shaders/ops/recurrent.steps.wgsl.j2`)."""

SHARED_ROWS = 2
"""The maximum number of batch rows of a workgroup of the `steps` kernel, if invocations share sums. It reads the weights once
for them. With eight invocations to a sum, each then has one unit and row.
"""


@dataclass(frozen=True, kw_only=True)
class RecurrentSize:
    """The sizes of a recurrent network on which the choice of its kernel depends.

    Attributes:
        steps: time steps.
        directions: 1 or 2.
        rows: batch rows.
        hidden: hidden units.
        gates: gates of a unit.
        element_bytes: the size of a weight, in bytes.
        step_dispatches: the dispatches of a step, if each step has its own: 2 if gru resets before the product.
        layers: layers that make their steps together, all of these sizes. Each but the first also multiplies its input.
    """

    steps: int
    directions: int
    rows: int
    hidden: int
    gates: int
    element_bytes: int
    step_dispatches: int
    layers: int = 1

    @property
    def weights(self) -> int:
        """Recurrent weights of a direction."""
        return self.gates * self.hidden * self.hidden

    @property
    def chains(self) -> int:
        """States that follow each other step by step: those of directions, or of layers."""
        return self.directions * self.layers

    @property
    def weight_bytes(self) -> int:
        """The size of the recurrent weights of a direction, in bytes."""
        return self.weights * self.element_bytes


@dataclass(frozen=True, kw_only=True)
class RecurrentCosts(ABC):
    """Costs of gru, lstm and their cells.

    Attributes:
        most_kept_weights: recurrent weights of a unit that an invocation of the `persistent` kernel keeps, at most. The text
            is unrolled over them.
        keeps_without_subgroups: whether the `persistent` kernel is taken on a device without subgroups too.
        subgroup_rows: batch rows of a workgroup of the subgroup kernel, if there are several.
        most_step_iterations: iterations of all loops that an invocation of the subgroup kernel may make in a dispatch.
        sequence_invocations: invocations of a workgroup of the `sequence` kernel at most, if the device can run as many.
        sequence_registers: registers of 32 bits that an invocation of the `sequence` kernel has for recurrent weights, those
            that it holds for all steps and those that it reads: a multiple of 16.
    """

    most_kept_weights: int
    keeps_without_subgroups: bool
    subgroup_rows: int
    most_step_iterations: int
    sequence_invocations: int
    sequence_registers: int

    @abstractmethod
    def choose(self, size: RecurrentSize, *, several: bool, in_way: Mapping[str, str]) -> Choice:
        """Return the kernel variant.

        Args:
            size: the network.
            several: whether directions and batch rows make up several workgroups.
            in_way: why a variant cannot be had, by variant.
        """

    def cooperative_tile(self, size: RecurrentSize, *, kept: bool = True) -> CooperativeTile | None:
        """Return the tile of the `cooperative` kernel, or None if workgroups of the device should not wait for each other.

        Args:
            size: the network.
            kept: whether workgroups keep their weights. One that computes everything alone keeps none.
        """
        return None

    @abstractmethod
    def shares_of_sums(self, invocations: int) -> int:
        """Return how many invocations share a sum of the `steps` kernel: 1, or at least 8.

        Args:
            invocations: the invocations of a step, if none share sums.
        """

    def choose_stack(self, size: RecurrentSize, copies: int, *, in_way: Mapping[str, str]) -> Choice:
        """Return "stack" if layers should make their steps in common dispatches, each layer a step behind the one below.

        Otherwise "cooperative", if workgroups should make all steps of all layers side by side, or "turns", if those of one
        layer at a time. Or else "layers".

        Args:
            size: the layers. The sequence of each is the input of the next one.
            copies: dispatches that copy states into and out of a stack.
            in_way: why layers cannot have a variant, by variant.
        """
        return Choice("layers", f"kernels of a single layer keep its weights, so {size.layers} layers follow each other")

    def sequence_rows(self, directions: int, rows: int) -> int:
        """Return how many batch rows a workgroup of the `sequence` kernel takes, where registers do not hold all weights.

        Args:
            directions: 1 or 2.
            rows: batch rows.
        """
        return 1
