"""Constant numbers as options of an operator instead of operands."""

from __future__ import annotations

import math

from ..core.data_types import FLOATS
from ..ir.graph import Graph
from .patterns import AnyNumber, Operator, Variable
from .rules import Computed, Conditions, Rule, apply_rules

x, number, linear = Variable("x"), AnyNumber("number"), Operator("linear")
negated = Computed("-number", lambda m: -m[number])


WHERE: Conditions = {"the number is finite": lambda m: math.isfinite(m[number])}

RULES = (
    # A sum with -0 is what it was, also where that is -0.
    Rule("product with a number", (x * number).of(*FLOATS), linear(x, alpha=number, beta=-0.0), where=WHERE),
    Rule("sum with a number", (x + number).of(*FLOATS), linear(x, alpha=1.0, beta=number), where=WHERE),
    Rule("number subtracted", (x - number).of(*FLOATS), linear(x, alpha=1.0, beta=negated), where=WHERE),
    Rule("subtraction from a number", (number - x).of(*FLOATS), linear(x, alpha=-1.0, beta=number), where=WHERE),
)


def take_numbers_along(graph: Graph) -> Graph:
    """Write products with constant numbers, and sums and differences, as linear: alpha * x + beta."""
    return apply_rules(graph, *RULES)
