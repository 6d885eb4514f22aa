"""Gradients of element-wise arithmetic. The gradient of an operand that was broadcast is summed down to its shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...core.data_types import FLOATS
from ..interfaces.gradient import GradientCall, GradientRule, GradientTerm

Derivative: TypeAlias = Callable[[GradientTerm, GradientTerm, GradientTerm], GradientTerm]
"""Returns the gradient of an operator's only operand from the result's gradient, the operand and the result."""


def of_one(derivative: Derivative) -> GradientRule:
    """Return the rule of an operator of one operand."""
    return lambda call: (derivative(call.gradient, call.x, call.y),)


def of_two(
    derivatives: Callable[[GradientTerm, GradientTerm, GradientTerm, GradientTerm], Sequence[GradientTerm]],
) -> GradientRule:
    """Return the rule of an operator of two operands that broadcast.

    Args:
        derivatives: returns the gradients of both operands, in the result's shape, from the result's gradient, the operands
            and the result.
    """

    def rule(call: GradientCall) -> Sequence[GradientTerm]:
        a, b = call.given(0), call.given(1)
        found = derivatives(call.gradient, a, b, call.y)
        return [gradient.summed_to(operand.shape) for gradient, operand in zip(found, (a, b), strict=True)]

    return rule


def in_float32(derivative: Derivative) -> Derivative:
    """Return a derivative that is computed in float32 and rounded once: float16 would round its constants and its parts."""

    def wide(g: GradientTerm, x: GradientTerm, y: GradientTerm) -> GradientTerm:
        return derivative(*(term.cast("float32") for term in (g, x, y))).cast(g.type.data_type)

    return wide


def signs(x: GradientTerm) -> GradientTerm:
    """Return 1, 0 or -1 for each element, by comparisons, so that the derivative of the result is 0."""
    positive, negative = x.compared("greater", 0.0), x.compared("lesser", 0.0)
    return positive.cast(x.type.data_type) - negative.cast(x.type.data_type)


def _pow(g: GradientTerm, a: GradientTerm, e: GradientTerm, y: GradientTerm) -> Sequence[GradientTerm]:
    # The factor e makes the base's gradient 0 for an exponent of 0. The power must be finite there.
    power = a.apply("pow", e.where(e.compared("notEqual", 0.0), 1.0) - 1)
    # The logarithm of a base that is not positive must not become the NaN of a product with 0.
    positive = a.compared("greater", 0.0)
    logarithm = a.where(positive, 1.0).apply("log")
    return g * (e * power), (g * (y * logarithm)).where(positive)


def _extremum(comparison: str) -> GradientRule:
    """Return the rule of max or min. Equal operands get half of the gradient each."""

    def gradients(g: GradientTerm, a: GradientTerm, b: GradientTerm, y: GradientTerm) -> Sequence[GradientTerm]:
        first = (g * 0.5).where(a.compared("equal", b), g.where(a.compared(comparison, b)))
        return first, g - first

    return of_two(gradients)


def _remainder(g: GradientTerm, a: GradientTerm, b: GradientTerm, y: GradientTerm) -> Sequence[GradientTerm]:
    return g, -(g * ((a - y) / b))


def _where(call: GradientCall) -> Sequence[GradientTerm | None]:
    condition, a, b = (call.given(i) for i in range(3))
    g = call.gradient
    return None, g.where(condition).summed_to(a.shape), g.number(0.0).where(condition, g).summed_to(b.shape)


def _cast(call: GradientCall) -> Sequence[GradientTerm | None]:
    source = call.x.type.data_type
    return (call.gradient.cast(source) if source in FLOATS else None,)


ABS = of_one(lambda g, x, y: g * signs(x))
COS = of_one(lambda g, x, y: -(g * x.apply("sin")))
ERF = of_one(in_float32(lambda g, x, y: g * (2 / math.sqrt(math.pi) * (-x.square()).apply("exp"))))
EXP = of_one(lambda g, x, y: g * y)
LOG = of_one(lambda g, x, y: g / x)
NEG = of_one(lambda g, x, y: -g)
RECIPROCAL = of_one(lambda g, x, y: -(g * y.square()))
SIN = of_one(lambda g, x, y: g * x.apply("cos"))
SQRT = of_one(lambda g, x, y: 0.5 * g / y)
TAN = of_one(lambda g, x, y: g * (1 + y.square()))
SAME = of_one(lambda g, x, y: g)
"""The rule of `identity`, and of roundings to a smaller float format, which training passes straight through."""

ACOS = of_one(lambda g, x, y: -(g / (1 - x.square()).apply("sqrt")))
ACOSH = of_one(lambda g, x, y: g / (x.square() - 1).apply("sqrt"))
ASIN = of_one(lambda g, x, y: g / (1 - x.square()).apply("sqrt"))
ASINH = of_one(lambda g, x, y: g / (x.square() + 1).apply("sqrt"))
ATAN = of_one(lambda g, x, y: g / (1 + x.square()))
ATANH = of_one(lambda g, x, y: g / (1 - x.square()))
COSH = of_one(lambda g, x, y: g * x.apply("x.sinh"))
SINH = of_one(lambda g, x, y: g * x.apply("x.cosh"))

ADD = of_two(lambda g, a, b, y: (g, g))
SUB = of_two(lambda g, a, b, y: (g, -g))
MUL = of_two(lambda g, a, b, y: (g * b, g * a))
DIV = of_two(lambda g, a, b, y: (g / b, -(g / b * y)))
MAX = _extremum("greater")
MIN = _extremum("lesser")
POW = of_two(_pow)
REMAINDER = of_two(_remainder)

WHERE: GradientRule = _where
CAST: GradientRule = _cast
