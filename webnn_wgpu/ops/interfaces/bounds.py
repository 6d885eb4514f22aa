"""Bounds: the maximum permitted errors of a device's results, in ULP, or relative to the sizes of the terms of a sum.

A bound holds for one operator whose reference has exactly the device's operands, so no errors accumulate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.data_types import FLOATS
from ...ir.graph import Array, Attrs, Node
from ...ir.types import TensorType

EPSILON = 2.0**-23
"""The relative distance of neighboring float32 numbers. A rounding has half this error at most."""

SMALLEST = 2.0**-126
"""Smallest normal float32. WGSL lets devices take smaller numbers for zero."""

DIVERGED = 1e3
"""States of a recurrent network beyond this diverge, and so do their roundings."""

Reference = Callable[[Sequence["Array | None"], Attrs, tuple[TensorType, ...]], Sequence[Array]]
"""Computes an operator with numpy: operands, canonical attributes and output types give the outputs."""


@dataclass(frozen=True, kw_only=True)
class ReferenceResults:
    """An operator's results by its reference.

    Attributes:
        node: the node.
        operands: its operands.
        expected: its results.
        types: types of the outputs, as float32.
        reference: computes the operator.
    """

    node: Node
    operands: Sequence[Array | None]
    expected: Sequence[Array]
    types: Sequence[TensorType]
    reference: Reference

    def operand(self, index: int = 0) -> Array:
        """Return an operand that is given."""
        found = self.operands[index]
        assert found is not None
        return found

    def of(self, operands: Sequence[Array | None], attrs: Attrs | None = None) -> list[Array]:
        """Return the results of the reference for other operands, and for other attributes if `attrs` is given."""
        with np.errstate(all="ignore"):
            return list(self.reference(operands, self.node.attrs if attrs is None else attrs, tuple(self.types)))


Allowed = Callable[[ReferenceResults], "list[Array] | None"]
"""Returns the maximum error of each element of every output, before it is rounded to the output's type. None means that the
operands are beyond any promise."""
Reached = Callable[[ReferenceResults, Array], "list[Array]"]
"""Returns the maximum change of each element of every output if each element of the first operand has an error of some size."""
Terms = Callable[[Attrs, Sequence["Array | None"]], int]
"""Returns how many numbers are added up in an element, at most."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The maximum permitted errors of an operator's results.

    Attributes:
        tolerance: the maximum error of a float32 result against the reference in ULP, for operands of ordinary size. None
            means that it depends on shapes or values.
        allowed: returns the maximum errors of float results for any operands. None means that `tolerance` applies.
        any_size: whether `allowed` supports operands so large that sums of their products may overflow.
        integers: returns the maximum errors of integer results.
        contracted: whether a driver may keep a result exact for a subsequent sum, for example in a fused multiply-add.
        unsure: returns the elements that may be NaN or not, depending on roundings.
        reached: returns the maximum changes of the results by errors of the first operand, for an operator that may follow
            others in a fused node. None stands for element-wise operators, whose references tell the changes.
    """

    tolerance: float | None = None
    allowed: Allowed | None = None
    any_size: bool = False
    integers: Callable[[Attrs], float] = lambda attrs: 0.0
    contracted: bool = False
    unsure: Callable[[ReferenceResults], Array] | None = None
    reached: Reached | None = None


def ulp(tolerance: float) -> Bounds:
    """Return the bounds of so many units in the last place."""
    return Bounds(tolerance=tolerance)


EXACT = ulp(0)
"""Results that are the reference's to the last bit."""


def spacing(expected: Array) -> Array:
    """Return the distance of each element to the next number of its type."""
    finite = np.where(np.isfinite(expected), np.abs(expected), expected.dtype.type(0))
    return np.asarray(np.spacing(finite), np.float64)


def sizes(operands: Sequence[Array | None]) -> list[Array | None]:
    """Return the operands without signs, in float32: an operator makes of them the sizes of its terms."""
    return [None if a is None else np.abs(a).astype(np.float32) for a in operands]


# Sums: each term may be off by as many roundings as there are additions --------------------------------------------------


def sums(terms: Terms, tolerance: float | None = None) -> Bounds:
    """Return the bounds of sums of so many terms, which may cancel."""

    def allowed(found: ReferenceResults) -> list[Array]:
        positive = {n: abs(v) if isinstance(v, float) else v for n, v in found.node.attrs.items()}
        count = terms(found.node.attrs, found.operands)
        each = found.of(sizes(found.operands), positive)
        return [np.nan_to_num(count * EPSILON * s.astype(np.float64), nan=0, posinf=0) for s in each]

    def reached(found: ReferenceResults, off: Array) -> list[Array]:
        # Sums are linear in the first operand. Its errors may all go the way in which a sum grows.
        positive = {n: abs(v) if isinstance(v, float) else v for n, v in found.node.attrs.items()}
        _, *others = sizes(found.operands)
        moved, still = (found.of([x, *others], positive) for x in (off.astype(np.float32), np.zeros(off.shape, np.float32)))
        return [m.astype(np.float64) - s for m, s in zip(moved, still, strict=True)]

    return Bounds(tolerance=tolerance, allowed=allowed, reached=reached)


def relative(found: ReferenceResults, terms: int) -> list[Array]:
    """Return the bounds of results that are rounded once for each term, and do not cancel."""
    return [np.nan_to_num((terms + 4) * EPSILON * np.abs(e.astype(np.float64)), posinf=0) for e in found.expected]


def roots(terms: Terms) -> Bounds:
    """Return the bounds of roots of sums of squares, of which squares of numbers below 1e-19 vanish."""

    def allowed(found: ReferenceResults) -> list[Array]:
        count = terms(found.node.attrs, found.operands)
        lost = count * SMALLEST
        vanished = (
            lost / np.maximum(np.nan_to_num(e.astype(np.float64), posinf=np.inf), np.sqrt(lost)) for e in found.expected
        )
        return [bound + more for bound, more in zip(relative(found, count), vanished, strict=True)]

    return Bounds(allowed=allowed)


def mean_reached(found: ReferenceResults, off: Array) -> list[Array]:
    """Return the maximum changes of means by errors of the elements: the means of the errors."""
    return found.of([off])


# Operators whose results depend on their operands as a whole ------------------------------------------------------------


def _conditioned(found: ReferenceResults, least: float = 0.0) -> list[Array]:
    """Return some roundings of the largest result, or of `least`, plus the effect of a few roundings of the operands."""
    rng = np.random.default_rng(0)
    wide = [None if a is None else a.astype(np.float32) if str(a.dtype) in FLOATS else a for a in found.operands]
    shaken = [a if a is None or a.dtype.kind != "f" else _shaken(a, rng) for a in wide]
    allowed: list[Array] = []
    for m, e in zip(found.of(shaken), found.of(wide), strict=True):
        finite = np.isfinite(m) & np.isfinite(e)
        off = np.max(np.abs(m[finite].astype(np.float64) - e[finite]), initial=0)
        allowed.append(np.full(e.shape, 4 * off + 2.0**-19 * float(np.max(np.abs(e[finite]), initial=least))))
    return allowed


def _shaken(array: Array, rng: np.random.Generator) -> Array:
    largest = 3.4e38  # a number that would become infinite stays as it is
    factors = 1 + rng.choice((-1, 1), array.shape) * np.float32(8 * EPSILON)
    return np.where(np.abs(array) < largest, array * factors, array).astype(np.float32)


CONDITIONED = Bounds(allowed=_conditioned, any_size=True)
"""As far as a few roundings of the operands move the results."""


def _recurrent(found: ReferenceResults) -> list[Array] | None:
    exact = found.of([None if a is None else a.astype(np.float32) for a in found.operands])
    if any(not np.all(np.abs(e) <= DIVERGED) for e in exact):
        return None
    return _conditioned(found, least=1.0)


RECURRENT = Bounds(allowed=_recurrent)
"""As far as a few roundings of the operands move the states, unless these diverge."""


def _largest(found: ReferenceResults) -> list[Array]:
    return [np.full(e.shape, 2.0**-19 * float(np.max(np.abs(e[np.isfinite(e)]), initial=0))) for e in found.expected]


OF_LARGEST = Bounds(allowed=_largest)
"""Some roundings of the largest result, for kernels of which only the results are known."""
