"""Gradients of reductions, running sums and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..interfaces.gradient import GradientCall, GradientRule, GradientTerm
from .elementwise import signs


def _reduction(
    derivative: Callable[[GradientTerm, GradientTerm, GradientTerm, tuple[int, ...]], GradientTerm],
) -> GradientRule:
    """Return the rule of a reduction.

    Args:
        derivative: returns the operand's gradient, or one that broadcasts to it, from the result's gradient and the operand,
            the result, and the reduced dimensions. Gradient and result have the operand's rank.
    """

    def rule(call: GradientCall) -> Sequence[GradientTerm]:
        x, axes = call.x, tuple(call.attrs["axes"])
        kept = [1 if d in axes else size for d, size in enumerate(x.shape)]
        return (derivative(call.gradient.reshaped(kept), x, call.y.reshaped(kept), axes).expanded(x.shape),)

    return rule


def _count(x: GradientTerm, axes: Sequence[int]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _extremum(g: GradientTerm, x: GradientTerm, y: GradientTerm, axes: tuple[int, ...]) -> GradientTerm:
    """Divide the gradient among the elements that equal the result."""
    chosen = x.compared("equal", y).cast(x.type.data_type)
    return chosen * (g / chosen.summed(axes, keep=True))


def _product(g: GradientTerm, x: GradientTerm, y: GradientTerm, axes: tuple[int, ...]) -> GradientTerm:
    """Multiply the gradient by the product of all other elements, without a division by elements that may be 0."""
    order = [*(d for d in range(x.rank) if d not in axes), *axes]
    rows = x.permuted(order)
    flat = rows.reshaped((rows.type.num_elements // _count(x, axes), _count(x, axes)))
    before, after = (
        flat.apply("x.cumulative_product", axis=1, exclusive=True, reversed=backward) for backward in (False, True)
    )
    others = (before * after).reshaped(rows.shape).permuted([order.index(d) for d in range(x.rank)])
    return g * others


def _nonzero(y: GradientTerm) -> GradientTerm:
    """Return the elements with 1 in place of 0, for quotients whose dividends are 0 too."""
    return y.where(y.compared("notEqual", 0.0), 1.0)


def cumulative_sum(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of running sums: running sums in the other direction."""
    return (_running(call, call.gradient),)


def cumulative_product(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of running products. It is NaN for elements that are 0."""
    return (_running(call, call.gradient * call.y) / call.x,)


def _running(call: GradientCall, terms: GradientTerm) -> GradientTerm:
    options = dict(call.attrs) | {"reversed": not call.attrs["reversed"]}
    return terms.apply("cumulativeSum", **options)


def softmax(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of softmax, from its result."""
    g, y = call.gradient, call.y
    return (y * (g - (g * y).summed((call.attrs["axis"],), keep=True)),)


def log_softmax(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of the logarithm of softmax, from its result."""
    g, y = call.gradient, call.y
    return (g - y.apply("exp") * g.summed((call.attrs["axis"] % y.rank,), keep=True),)


L1 = _reduction(lambda g, x, y, axes: g * signs(x))
L2 = _reduction(lambda g, x, y, axes: x * (g / _nonzero(y)))
LOG_SUM = _reduction(lambda g, x, y, axes: g * (-y).apply("exp"))
LOG_SUM_EXP = _reduction(lambda g, x, y, axes: g * (x - y).apply("exp"))
EXTREMUM = _reduction(_extremum)
MEAN = _reduction(lambda g, x, y, axes: (1 / _count(x, axes) * g.cast("float32")).cast(g.type.data_type))
PRODUCT = _reduction(_product)
SUM = _reduction(lambda g, x, y, axes: g)
SUM_SQUARE = _reduction(lambda g, x, y, axes: 2 * x * g)
