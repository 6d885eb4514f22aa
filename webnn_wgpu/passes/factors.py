"""Products and quotients with constant numbers."""

from __future__ import annotations

from ..ir.graph import Node
from .matching import match_of
from .patterns import AnyNumber, Variable
from .rewriting import Rewriter

x, factor, divisor = Variable("x"), AnyNumber("factor"), AnyNumber("divisor")

multiplied = x * factor
SCALED = multiplied | x / divisor


def unscaled(r: Rewriter, node: Node | None) -> tuple[int, float] | None:
    """Return the operand that a node multiplies by a constant number, and that number, or None for another node."""
    match = match_of(r, SCALED, node)
    if match is None:
        return None
    if multiplied in match:
        return match[x], match[factor]
    return (match[x], 1 / match[divisor]) if match[divisor] else None
