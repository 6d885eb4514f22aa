"""gelu as exporters write it, and its derivative as gradients state it."""

from __future__ import annotations

import math

from ..ir.graph import Graph
from ..ops.activation import GELU_SLOPE
from .patterns import Apply, Number, Operator, Pattern, Variable, product
from .rules import Rule, apply_rules

x = Variable("x")
erf, exp, gelu, linear, where = (Operator(name) for name in ("erf", "exp", "gelu", "linear", "where"))
SQRT_2, SQRT_HALF = Number(math.sqrt(2), "sqrt(2)"), Number(math.sqrt(0.5), "sqrt(1/2)")


def _times(factor: float, x: Pattern) -> Apply:
    return linear(x, alpha=factor, beta=-0.0)


_BELOW = Operator("lesser")(x, -1.0).named("below")
_CUMULATED = where(
    _BELOW,
    gelu(x).shared() / where(_BELOW, x, -1.0),
    _times(0.5, linear(erf(_times(math.sqrt(0.5), x)), alpha=1.0, beta=1.0)),
).named("cumulated")
_DENSITY = _times(1 / math.sqrt(2 * math.pi), exp(_times(-0.5, x * x))).named("density")

RULES = (
    Rule(name="gelu", pattern=product(0.5, x, 1 + erf(x / SQRT_2 | x * SQRT_HALF)), result=gelu(x)),
    # Of float32 alone: the derivative for float16 is computed in float32, and gelu is not.
    Rule(name="derivative of gelu", pattern=(_CUMULATED + x * _DENSITY).of("float32"), result=Operator(GELU_SLOPE.name)(x)),
)


def recognize_gelu(graph: Graph) -> Graph:
    """Replace products that are gelu, and sums that are its derivative, by the operators."""
    return apply_rules(graph, *RULES)
