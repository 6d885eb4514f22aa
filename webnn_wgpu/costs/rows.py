"""The costs of reduced, normalized or pooled rows: the invocations that work on a row, and the number of its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .sizes import Choice

if TYPE_CHECKING:
    from collections.abc import Collection


SHARING_INVOCATIONS = 256
"""Invocations of a workgroup that reduces neighboring columns, several of which share the rows of a column."""


@dataclass(frozen=True, kw_only=True)
class SharedColumns:
    """A division of the rows of neighboring columns among the invocations of workgroups.

    Attributes:
        lanes: the invocations that share the rows of four neighboring columns, a power of two.
        parts: the number of parts of the rows. Another dispatch combines the results of several.
    """

    lanes: int
    parts: int


@dataclass(frozen=True, kw_only=True)
class RowCosts(ABC):
    """Costs of kernels that work on rows: one invocation (`plain`), a `subgroup` or a `workgroup` to a row.

    Attributes:
        short_row: elements from which on a row is worth more than one invocation.
        many_rows: rows from which on one invocation takes each, where neighboring elements belong to different rows.
        combines_by_subgroups: whether workgroups combine values by subgroup operations, which work for subgroups of any size,
            before they do it in workgroup memory. That saves barriers.
        few_elements: the maximum number of elements whose range a single workgroup computes. For more elements, a kernel of
            many workgroups runs before.
        loads: items that an invocation reads at once to reduce them.
        range_loads: items that each invocation of that workgroup reads at once. 0 stands for a workgroup of few invocations,
            which read one element after the other.
    """

    short_row: int
    many_rows: int
    combines_by_subgroups: bool
    few_elements: int
    loads: int
    range_loads: int

    def choose(self, variants: Collection[str], rows: int, length: int, *, columns: bool) -> Choice:
        """Return the variant for rows.

        Args:
            variants: the existing ones of `plain`, `subgroup`, `workgroup`.
            rows: the number of rows.
            length: elements of a row.
            columns: whether neighboring elements belong to different rows.
        """
        if length < self.short_row:
            return Choice("plain", "short rows")
        if "plain" not in variants:
            return Choice(self._sharing(variants), "long rows")
        if columns and rows >= self.many_rows:
            return Choice("plain", "neighboring elements belong to different rows")
        return self._choose(variants, rows, length)

    @abstractmethod
    def _sharing(self, variants: Collection[str]) -> str:
        """Return the variant whose invocations share a row."""

    @abstractmethod
    def _choose(self, variants: Collection[str], rows: int, length: int) -> Choice:
        """Return the variant for long rows, given that all variants are possible."""

    @abstractmethod
    def parts(self, workgroups: int, items: int, lanes: int) -> int:
        """Return the number of parts of a row that keep the device busy. 0 or 1 if parts do not pay.

        Args:
            workgroups: the number of workgroups that work on whole rows.
            items: the items of a row.
            lanes: the invocations that share a row.
        """

    @abstractmethod
    def shared_columns(self, quads: int, length: int) -> SharedColumns | None:
        """Return how the invocations of workgroups share the rows of columns. None if one invocation is to reduce a column.

        Args:
            quads: the number of quads of neighboring columns.
            length: the number of rows.
        """

    @abstractmethod
    def reads_again(self, held: int, rows: int) -> bool:
        """Return whether invocations read a row again to normalize it instead of storing it from registers.

        Args:
            held: items that an invocation holds in registers.
            rows: the number of rows.
        """

    @abstractmethod
    def normalizes_sums(self, rows: int, length: int, parts: int) -> bool:
        """Return whether the kernel that adds up parts of sums also normalizes rows, each of which a workgroup takes then.

        Args:
            rows: the number of rows.
            length: elements of a row.
            parts: the number of parts of the sums.
        """


@dataclass(frozen=True, kw_only=True)
class PoolingCosts(ABC):
    """Costs of pooling.

    Attributes:
        many_results: results that keep the device busy without invocations that share windows.
        shared_window: elements from which on a window may be shared by several invocations.
        most_written: elements of the largest window that a kernel has written out instead of loops: more would take long to
            compile.
    """

    many_results: int
    shared_window: int
    most_written: int

    def choose(self, variants: Collection[str], taps: int, results: int) -> Choice:
        """Return the variant for windows of `taps` elements."""
        many = results >= self.many_results
        if "plain" in variants and (taps < self.shared_window or many):
            return Choice("plain", "many results" if many else "small windows")
        return self._choose(variants)

    @abstractmethod
    def _choose(self, variants: Collection[str]) -> Choice:
        """Return the variant for few large windows."""
