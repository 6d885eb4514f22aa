"""The costs of recurrent networks: which kernels go through their steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .sizes import Choice


@dataclass(frozen=True, kw_only=True)
class RecurrentCosts(ABC):
    """Costs of gru, lstm and their cells.

    Attributes:
        most_kept_weights: recurrent weights of a unit that an invocation of the `persistent` kernel keeps, at most. The text
            is unrolled over them.
        keeps_without_subgroups: whether the `persistent` kernel is taken on a device without subgroups too.
        subgroup_rows: batch rows of a workgroup of the subgroup kernel, where there are several.
        most_step_iterations: iterations of all loops that an invocation of the subgroup kernel may make in a dispatch.
        sequence_invocations: invocations of a workgroup of the `sequence` kernel, if the device can run as many.
        shares_of_sums: invocations that share a sum of the `steps` kernel.
    """

    most_kept_weights: int
    keeps_without_subgroups: bool
    subgroup_rows: int
    most_step_iterations: int
    sequence_invocations: int
    shares_of_sums: int

    @abstractmethod
    def choose(self, *, steps: int, weights: int, several: bool, in_way: Mapping[str, str]) -> Choice:
        """Return the kernel variant.

        Args:
            steps: how many steps.
            weights: recurrent weights of a direction.
            several: whether directions and batch rows make up several workgroups.
            in_way: why a variant cannot be had, by variant.
        """
