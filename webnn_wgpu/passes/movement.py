"""Movements that follow each other become one: transposes, reshapes, and a split whose parts are put side by side again.

Transposes that leave memory as it is become views.
"""

from __future__ import annotations

from itertools import accumulate

from ..ir.graph import Graph, Node
from .cleanup import drop_identities
from .rewriting import Rewriter, rewrite


def merge_movement(graph: Graph) -> Graph:
    """Merge transposes, reshapes, and splits with concatenations, and make views of transposes that only move sizes of 1."""
    merged = rewrite(rewrite(graph, _transposes, _reshapes, _joined_parts), _lone_parts)
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


def _joined_parts(r: Rewriter, node: Node) -> bool:
    """Put what was split in the place of all of its parts, one after the other, in a concatenation along the same dimension."""
    if node.op != "concat":
        return False
    joined, sources = list(node.operands), [node]
    for split in dict.fromkeys(made for value in joined if (made := r.made(value, "split")) is not None):
        parts, first = list(split.outputs), joined.index(next(v for v in joined if v in split.outputs))
        if split.attrs["axis"] == node.attrs["axis"] and joined[first : first + len(parts)] == parts:
            joined[first : first + len(parts)] = split.operands
            sources.insert(0, split)
    if len(sources) == 1:
        return False
    r.add("concat", joined, node.attrs, sources, node.outputs[0])
    return True


def _lone_parts(r: Rewriter, node: Node) -> bool:
    """Make slices of the parts of a split that are read, where some are not."""
    read = [value for value in node.outputs if not r.inner(value, readers=0)] if node.op == "split" else []
    if not read or len(read) == len(node.outputs):
        return False
    shape, axis = r.shape(node.operands[0]), int(node.attrs["axis"])
    starts = dict(zip(node.outputs, accumulate((0, *node.attrs["splits"])), strict=False))
    for value in read:
        place = tuple(starts[value] if d == axis else 0 for d in range(len(shape)))
        r.add("slice", node.operands, {"starts": place, "sizes": r.shape(value)}, (node,), value)
    return True
