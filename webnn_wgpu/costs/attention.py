"""The costs of attention: which kernel computes it, and how its rows and keys are divided."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from .sizes import Choice


@dataclass(frozen=True, kw_only=True)
class AttentionCosts(ABC):
    """Costs of attention.

    Attributes:
        busy_units: units below which the keys are shared among several.
        shortest_part: keys of a part at least: combining shorter ones costs more than is gained.
        decode_keys: keys of a part of the `decode` kernel.
        long_keys: keys from which on compiling a larger kernel pays.
        subgroup_barriers: whether kernels in subgroups synchronize them, where the device has such barriers.
    """

    busy_units: int
    shortest_part: int
    decode_keys: int
    long_keys: int
    subgroup_barriers: bool

    @abstractmethod
    def choose(self, possible: Collection[str], rows: int, keys: int, columns: int) -> Choice:
        """Return the kernel variant.

        Args:
            possible: the variants that there are for the device and the sizes.
            rows: rows of queries for each head of keys.
            keys: how many keys.
            columns: width of a head of values.
        """

    @abstractmethod
    def plain_rows(self, rows: int) -> int:
        """Return how many of `rows` rows an invocation of the `plain` kernel takes."""

    def subgroup_rows(self, rows: int, quads: int) -> int:
        """Return the rows of a unit of the `subgroup` kernel.

        More rows share each load of keys and values; but their sums must not be so many that compiling takes long.

        Args:
            rows: rows of queries for each head of keys.
            quads: quads of columns for each lane.
        """
        most = 8 if quads > 4 else 16
        return next((r for r in (1, 2, 4, 8, 16) if rows <= r < most), most)

    def key_quads(self, rows: int) -> int:
        """Return how many quads of keys each lane of the `subgroup` kernel takes at once in units of some rows."""
        # With 16 rows 2 are a little faster, but take twice as long to compile.
        return 1 if rows == 16 else 2

    def keys_at_once(self, length: int, lanes: int) -> int:
        """Return how many keys the `queries` kernel takes at once: such a number that the last block is nearly full."""
        # The weights of 64 keys fill half of the workgroup memory that every device has, or with 16 lanes all of it.
        wide = length >= self.long_keys and lanes <= 8
        return 64 if wide else min(32, 40, key=lambda keys: -(-length // keys) * keys)

    def parts_of_keys(self, units: int, keys: int) -> int:
        """Return how many invocations or workgroups are to share the keys of a unit, given how many units there are."""
        return min(-(-self.busy_units // units), keys // self.shortest_part) if units < self.busy_units else 1
