"""gelu as exporters write it."""

from __future__ import annotations

import math

from ..ir.graph import Graph
from .patterns import Number, Operator, Variable, product
from .rules import Rule, apply_rules

x = Variable("x")
erf, gelu = Operator("erf"), Operator("gelu")
SQRT_2, SQRT_HALF = Number(math.sqrt(2), "sqrt(2)"), Number(math.sqrt(0.5), "sqrt(1/2)")

RULES = (Rule(name="gelu", pattern=product(0.5, x, 1 + erf(x / SQRT_2 | x * SQRT_HALF)), result=gelu(x)),)


def recognize_gelu(graph: Graph) -> Graph:
    """Replace products that are gelu by the operator."""
    return apply_rules(graph, *RULES)
