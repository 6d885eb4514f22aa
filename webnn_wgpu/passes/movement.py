"""Transposes and reshapes that follow each other become one; transposes that leave memory as it is become views."""

from __future__ import annotations

from ..ir.graph import Graph, Node
from .cleanup import drop_identities
from .rewriting import Rewriter, rewrite


def merge_movement(graph: Graph) -> Graph:
    """Merge transposes, and reshapes, and make reshapes of transposes that only move dimensions of size 1."""
    merged = rewrite(graph, _transposes, _reshapes)
    # Back where they began, they change nothing.
    return graph if merged is graph else drop_identities(merged)


def _transposes(r: Rewriter, node: Node) -> bool:
    if node.op != "transpose":
        return False
    value, permutation, sources = node.operands[0], node.attrs["permutation"], [node]
    if (first := r.made(value, "transpose")) is not None:
        value, sources = first.operands[0], [first, node]
        permutation = tuple(first.attrs["permutation"][d] for d in permutation)
    large = [d for d in permutation if r.shape(value)[d] != 1]
    if large == sorted(large):
        r.add("reshape", (value,), {"new_shape": r.shape(node.outputs[0])}, sources, node.outputs[0])
        return True
    if first is None:
        return False
    r.add("transpose", (value,), {"permutation": permutation}, sources, node.outputs[0])
    return True


def _reshapes(r: Rewriter, node: Node) -> bool:
    first = r.made(node.operands[0], "reshape") if node.op == "reshape" else None
    if first is None:
        return False
    r.add("reshape", (first.operands[0],), {"new_shape": node.attrs["new_shape"]}, (first, node), node.outputs[0])
    return True
