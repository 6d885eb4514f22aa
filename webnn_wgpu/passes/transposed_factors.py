"""Products of transposed factors, which the kernels of GPUs read as they are stored."""

from __future__ import annotations

from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops.matmul import MATMUL, TRANSPOSED_MATMUL
from ..ops.strided import TRANSPOSE
from .rewriting import Rewriter, rewrite


def read_transposed_factors(graph: Graph, target: Target) -> Graph:
    """Multiply the operands of transposes that swap the last two dimensions, where kernels read these as fast as others."""
    return rewrite(graph, _product, at=(MATMUL.name,)) if target.costs.passes.reads_transposed else graph


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
