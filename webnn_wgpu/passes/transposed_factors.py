"""Products of transposed factors and of heads, which kernels read and write as they are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.caps import Caps
from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops._quads import fits_binding
from ..ops.matmul import MATMUL, TRANSPOSED_MATMUL, reads_heads
from ..ops.strided import TRANSPOSE
from ..ops.views import RESHAPE
from .rewriting import Rewriter, rewrite

_HEADS = (0, 2, 1, 3)
"""The permutation that leads from [batch, rows, heads, columns] to [batch, heads, rows, columns], and back."""


def read_transposed_factors(graph: Graph, target: Target) -> Graph:
    """Multiply the operands of transposes that swap the last two dimensions, where kernels read these as fast as others.

    Where they also read heads beside each other, no transpose moves heads before or behind products either.
    """
    passes = target.costs.passes
    graph = rewrite(graph, _product, at=(MATMUL.name,)) if passes.reads_transposed else graph
    if not passes.reads_heads:
        return graph
    graph = rewrite(graph, partial(_of_heads, caps=target.caps), at=(MATMUL.name, TRANSPOSED_MATMUL.name))
    return rewrite(graph, partial(_into_heads, caps=target.caps), at=(TRANSPOSE.name,))


def _product(r: Rewriter, node: Node) -> bool:
    transposes = [_swap(r, value) for value in node.operands]
    if not any(transposes):
        return False
    factors = [swap.operands[0] if swap else value for swap, value in zip(transposes, node.operands, strict=True)]
    options = {name: swap is not None for name, swap in zip(("a_transpose", "b_transpose"), transposes, strict=True)}
    sources = [*(swap for swap in transposes if swap), node]
    r.add(TRANSPOSED_MATMUL.name, factors, options, sources, node.outputs[0])
    return True


def _swap(r: Rewriter, value: int) -> Node | None:
    """Return the transpose that made a value, if it swaps the last two dimensions alone."""
    made = r.made(value, TRANSPOSE.name)
    rank = len(r.shape(value))
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return made if made is not None and tuple(made.attrs["permutation"]) == swapped else None


def _of_heads(r: Rewriter, node: Node, *, caps: Caps) -> bool:
    """Read the heads of factors where they are."""
    found = [_heads(r, value) for value in node.operands]
    if not any(found) or not _fit(r, node, caps):
        return False
    factors = list(node.operands)
    options: dict[str, int] = {}
    sources: list[Node] = []
    for i, nodes in enumerate(found):
        if nodes:
            batch, *heads, rows, columns = r.shape(factors[i])
            factors[i] = r.reshaped(nodes[0].operands[0], (batch, rows, *heads, columns), nodes)
            options[f"{'ab'[i]}_heads"] = len(heads)
            sources += nodes
    r.add(TRANSPOSED_MATMUL.name, factors, _options(node, **options), (*sources, node), node.outputs[0])
    return True


def _heads(r: Rewriter, value: int) -> Sequence[Node]:
    """Return the transpose that moved the heads of a value, and the view behind it that cuts them into groups, if any."""
    view = r.made(value, RESHAPE.name)
    move = r.made(view.operands[0] if view else value, TRANSPOSE.name)
    if move is None or tuple(move.attrs["permutation"]) != _HEADS:
        return ()
    nodes = (move, view) if view else (move,)
    return nodes if reads_heads(r.type(value)) and _in_groups(r.shape(value), r.shape(move.outputs[0])) else ()


def _into_heads(r: Rewriter, node: Node, *, caps: Caps) -> bool:
    """Store a product's result as heads beside each other."""
    if tuple(node.attrs["permutation"]) != _HEADS:
        return False
    view = r.made_for_one(node.operands[0], RESHAPE.name)
    product = r.made_for_one(view.operands[0] if view else node.operands[0], MATMUL.name, TRANSPOSED_MATMUL.name)
    if product is None or not _fit(r, product, caps):
        return False
    shape = r.shape(product.outputs[0])
    if not _in_groups(shape, r.shape(node.operands[0])) or any(len(r.shape(x)) != len(shape) for x in product.operands):
        return False
    options = _options(product, heads=len(shape) - 3)
    sources = [product, *([view] if view else []), node]
    if not view:
        r.add(TRANSPOSED_MATMUL.name, product.operands, options, sources, node.outputs[0])
        return True
    stored = r.add(TRANSPOSED_MATMUL.name, product.operands, options, sources)
    r.add(RESHAPE.name, (stored,), {"new_shape": r.shape(node.outputs[0])}, sources, node.outputs[0])
    return True


def _in_groups(shape: Sequence[int], moved: Sequence[int]) -> bool:
    """Return whether a shape is [batch, heads, rows, columns], with any dimensions for the heads."""
    batch, heads, *matrix = moved
    return shape[0] == batch and math.prod(shape[1:-2]) == heads and list(shape[-2:]) == matrix


def _options(product: Node, **changed: Any) -> dict[str, Any]:
    return {**(product.attrs if product.op == TRANSPOSED_MATMUL.name else {}), **changed}


def _fit(r: Rewriter, product: Node, caps: Caps) -> bool:
    """Return whether a product has no heads in its result yet, and all its values fit a binding."""
    values = (*product.operands, product.outputs[0])
    return not product.attrs.get("heads") and all(fits_binding(r.type(value), caps) for value in values)
