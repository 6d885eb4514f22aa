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
    # A sum with -0 returns the other operand unchanged, also if that is -0.
    Rule(
        name="product with a number", pattern=(x * number).of(*FLOATS), result=linear(x, alpha=number, beta=-0.0), where=WHERE
    ),
    Rule(name="sum with a number", pattern=(x + number).of(*FLOATS), result=linear(x, alpha=1.0, beta=number), where=WHERE),
    Rule(name="number subtracted", pattern=(x - number).of(*FLOATS), result=linear(x, alpha=1.0, beta=negated), where=WHERE),
    Rule(
        name="subtraction from a number",
        pattern=(number - x).of(*FLOATS),
        result=linear(x, alpha=-1.0, beta=number),
        where=WHERE,
    ),
)


def take_numbers_along(graph: Graph) -> Graph:
    """Write products with constant numbers, and sums and differences, as linear: alpha * x + beta."""
    return apply_rules(graph, *RULES)
