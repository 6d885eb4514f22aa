"""Casts of casts."""

from __future__ import annotations

from ..core.data_types import DATA_TYPES
from ..ir.graph import Graph, Node
from .rewriting import Rewriter, rewrite

_DIGITS = {"float16": 11, "float32": 24}
"""Binary digits up to which every integer is a float of the type."""


def holds(outer: str, inner: str) -> bool:
    """Return whether a data type has all the numbers of another.

    >>> holds("float32", "float16"), holds("float16", "float32"), holds("float16", "uint8"), holds("uint64", "int8")
    (True, False, True, False)
    """
    if outer == inner:
        return True
    if inner in _DIGITS:
        return outer in _DIGITS and _DIGITS[outer] > _DIGITS[inner]
    low, high = DATA_TYPES[inner].limits
    if outer in _DIGITS:
        return high < 2 ** _DIGITS[outer]
    return DATA_TYPES[outer].limits[0] <= low and high <= DATA_TYPES[outer].limits[1]


def merge_casts(graph: Graph) -> Graph:
    """Cast what a cast was made of, where that cast loses nothing."""
    return rewrite(graph, _cast)


def _cast(r: Rewriter, node: Node) -> bool:
    first = r.made(node.operands[0], "cast") if node.op == "cast" else None
    if first is None:
        return False
    inner, outer, wanted = (r.type(v).data_type for v in (first.operands[0], first.outputs[0], node.outputs[0]))
    if not holds(outer, inner):
        return False
    if outer in _DIGITS and inner not in _DIGITS and wanted not in _DIGITS and not holds(wanted, inner):
        # Floats saturate where integers wrap.
        return False
    r.add("cast", first.operands, {"data_type": wanted}, (first, node), node.outputs[0])
    return True
