"""gelu as exporters write it: x / 2 * (1 + erf(x / sqrt(2))), the factors in any order."""

from __future__ import annotations

import math

import numpy as np

from ..ir.graph import Graph, Node
from .rewriting import Rewriter, rewrite


def recognise_gelu(graph: Graph) -> Graph:
    """Replace products that are gelu by the operator."""
    return rewrite(graph, _gelu)


def _gelu(r: Rewriter, node: Node) -> bool:
    if node.op != "mul":
        return False
    factors, products = _factors(r, node)
    numbers = [r.number(f) for f in factors]
    if len(factors) != 3 or numbers.count(0.5) != 1:
        return False
    others = [f for f, number in zip(factors, numbers, strict=True) if number is None]
    for x, bell in (others, others[::-1]) if len(others) == 2 else ():
        inside = _one_plus_erf(r, bell)
        if inside is not None and inside[0] == x and r.shape(x) == r.shape(node.outputs[0]):
            r.add("gelu", (x,), {}, (*inside[1], *products, node), node.outputs[0])
            return True
    return False


def _factors(r: Rewriter, node: Node) -> tuple[list[int], list[Node]]:
    """Return the factors of a product of at most three, and the products that only it reads."""
    factors, products = list(node.operands), list[Node]()
    for value in node.operands:
        product = r.made_for_one(value, "mul")
        if product is not None and len(factors) == 2:
            at = factors.index(value)
            factors[at : at + 1] = product.operands
            products.append(product)
    return factors, products


def _one_plus_erf(r: Rewriter, value: int) -> tuple[int, tuple[Node, ...]] | None:
    """Return x and the nodes of 1 + erf(x / sqrt(2))."""
    plus = r.made_for_one(value, "add")
    if plus is None or (found := r.with_number(plus)) is None or found[1] != 1:
        return None
    erf = r.made_for_one(found[0], "erf")
    inside = erf and r.made_for_one(erf.operands[0], "div", "mul")
    if erf is None or inside is None:
        return None
    if inside.op == "div":
        x, number, wanted = inside.operands[0], r.number(inside.operands[1]), math.sqrt(2)
    elif (found := r.with_number(inside)) is not None:
        x, number, wanted = *found, math.sqrt(0.5)
    else:
        return None
    # What is nearest in the data type; some exporters computed it in float32.
    spacing = float(np.spacing(r.type(x).numpy.type(wanted)))
    return (x, (inside, erf, plus)) if number is not None and abs(number - wanted) <= spacing else None
