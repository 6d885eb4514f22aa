"""Constant numbers as options of an operator instead of operands."""

from __future__ import annotations

import math

from ..core.data_types import FLOATS
from ..ir.graph import Graph, Node
from .rewriting import Rewriter, rewrite


def take_numbers_along(graph: Graph) -> Graph:
    """Write products with constant numbers, and sums and differences, as linear: alpha * x + beta."""
    return rewrite(graph, _linear)


def _linear(r: Rewriter, node: Node) -> bool:
    if node.op not in ("mul", "add", "sub") or r.type(node.outputs[0]).data_type not in FLOATS:
        return False
    found = r.with_number(node)
    if found is None or not math.isfinite(found[1]):
        return False
    x, number = found
    if node.op == "sub" and x != node.operands[0]:
        alpha, beta = -1.0, number
    else:
        # A sum with -0 is what it was, also where that is -0.
        alpha, beta = (number, -0.0) if node.op == "mul" else (1.0, number if node.op == "add" else -number)
    r.add("linear", (x,), {"alpha": alpha, "beta": beta}, (node,), node.outputs[0])
    return True
