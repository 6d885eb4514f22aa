"""How far the dispatches of a model fill a GPU: which of them have enough subgroups for all of its SIMDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hardware.report import shares_of_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.hardware.report import Row

SUBGROUPS = 160
"""Subgroups of 32 that fill a GPU: two for each SIMD of 40 compute units of RDNA."""

ASIDE = 0.01
"""The share of a model's work below which a dispatch is left aside."""


def filling_share(rows: Sequence[Row]) -> float:
    """Return which share of a model's work dispatches with enough subgroups do, those of little work aside."""
    shares = shares_of_work(rows)
    counted = [(share, row) for share, row in zip(shares, rows, strict=True) if share >= ASIDE]
    total = sum(share for share, _ in counted)
    return sum(share for share, row in counted if row.dispatch.subgroups(32) >= SUBGROUPS) / total if total else 1.0


def narrow_dispatches(rows: Sequence[Row]) -> list[str]:
    """Return a line for each dispatch with too few subgroups, those with most work first and those of little work aside."""
    shares = shares_of_work(rows)
    narrow = [(s, row) for s, row in zip(shares, rows, strict=True) if s >= ASIDE and row.dispatch.subgroups(32) < SUBGROUPS]
    return [
        f"{share:6.1%} {row.dispatch.label:32.32} {row.dispatch.subgroups(32):4} subgroups of 32  {row.dispatch.kernel:60.60}"
        for share, row in sorted(narrow, key=lambda pair: -pair[0])
    ]
