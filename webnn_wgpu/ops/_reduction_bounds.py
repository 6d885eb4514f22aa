"""The bounds of reductions: the maximum permitted errors of their results."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from .interfaces.bounds import EPSILON, Bounds, ReferenceResults, relative, roots, sizes, spacing, sums


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    """Return the number of elements that are reduced to one, plus one."""
    x, axes = operands[0], attrs["axes"]
    assert x is not None
    return math.prod(x.shape[a] for a in (range(x.ndim) if axes is None else axes)) + 1


def _product(found: ReferenceResults) -> list[Array] | None:
    size: Array = np.nan_to_num(np.abs(found.operand().astype(np.float64)), nan=1, posinf=1)
    largest = np.maximum(size, 1).prod()
    smallest = np.where((size == 0) | (size > 1), 1, size).prod()
    # Products of some of the factors must neither overflow nor vanish, whichever are multiplied first.
    if largest > 1e37 or smallest < 1e-37:
        return None
    return relative(found, _terms(found.node.attrs, found.operands))


def _cancelled(found: ReferenceResults) -> Array:
    """Return the maximum relative errors of sums."""
    x, attrs, out = found.operand().astype(np.float32), found.node.attrs, found.types[0]
    (positive,) = sizes([x])
    assert positive is not None
    with np.errstate(all="ignore"):
        total, size = (_sum(a, attrs["axes"], out.shape).astype(out.numpy).astype(np.float64) for a in (x, positive))
        return np.asarray(_terms(attrs, found.operands) * EPSILON * size / np.abs(total))


def _sum(x: Array, axes: tuple[int, ...] | None, shape: tuple[int, ...]) -> Array:
    return np.add.reduce(x.astype(np.float64), axis=axes).reshape(shape)


def _log_sum(found: ReferenceResults) -> list[Array]:
    off = _cancelled(found)
    # A sum that is nothing but roundings has no logarithm to speak of.
    bound = np.where(off > 0.25, np.inf, np.nan_to_num(2 * off, posinf=0))
    return [bound + 4 * spacing(found.expected[0].astype(np.float32))]


def _log_sum_exp(found: ReferenceResults) -> list[Array]:
    x = found.operand()
    largest = np.max(np.abs(x[np.isfinite(x)]), initial=0)
    count = _terms(found.node.attrs, found.operands)
    return [np.full(found.expected[0].shape, EPSILON * (count + 8 + 2 * float(largest)))]


SUM = sums(_terms)
"""The bounds of reductions to a sum, which may cancel."""

ROOT = roots(_terms)
"""The bounds of the root of a sum of squares."""

PRODUCT = Bounds(allowed=_product)
"""The bounds of reduceProduct."""

LOG_SUM = Bounds(allowed=_log_sum, unsure=lambda found: np.asarray(_cancelled(found) >= 1))
"""The bounds of reduceLogSum. A sum that cancels may be negative or not as roundings decide, and have no logarithm."""

LOG_SUM_EXP = Bounds(allowed=_log_sum_exp)
"""The bounds of reduceLogSumExp."""
