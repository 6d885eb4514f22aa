"""Rotary position embedding as exporters write it: x * cos + turned(x) * sin.

turned(x) is the second half of x's last dimension, negated, before the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Graph, Node
from .attention import HEADS_LAST
from .rewriting import Rewriter, rewrite

_BY_ELEMENT = ("cos", "sin", "cast", "identity")


def recognise_rotary_embedding(graph: Graph) -> Graph:
    """Replace such sums by the operator, whose tables hold each angle once."""
    halves: dict[int, int] = {}
    """Tables, and what holds half of each: all layers have the same."""
    return rewrite(graph, lambda r, node: _rotary(r, node, halves))


def _rotary(r: Rewriter, node: Node, halves: dict[int, int]) -> bool:
    shape = r.shape(node.outputs[0])
    if node.op != "add" or len(shape) != 4 or shape[3] % 2 or r.type(node.outputs[0]).data_type not in FLOATS:
        return False
    for straight, turning in (node.operands, node.operands[::-1]):
        direct, turned = r.made_for_one(straight, "mul"), r.made_for_one(turning, "mul")
        if direct is None or turned is None:
            return False
        for rotated, sin in (turned.operands, turned.operands[::-1]):
            found = _turned(r, rotated)
            if found is None or found[0] not in direct.operands or r.shape(found[0]) != shape:
                continue
            x, nodes = found
            cos = direct.operands[direct.operands[0] == x]
            if all(_is_table(r, table, shape) for table in (cos, sin)) and r.shape(cos) == r.shape(sin):
                tables = [_by_row(r, _half(r, table, halves, direct), direct) for table in (cos, sin)]
                _turn(r, x, tables, (*nodes, direct, turned, node))
                return True
    return False


def _turn(r: Rewriter, x: int, tables: Sequence[int], nodes: tuple[Node, ...]) -> None:
    """Add the operator: before the transpose that tells heads apart, if there is one, which attention then does without."""
    _, heads, length, size = r.shape(x)
    options = {"heads": heads, "interleaved": False, "rotary_dim": size}
    apart = r.made(x, "transpose")
    if apart is None or apart.attrs["permutation"] != HEADS_LAST:
        r.add("x.rotary_embedding", (x, *tables), options, nodes, nodes[-1].outputs[0])
        return
    rows, view = r.shape(apart.operands[0]), r.made(apart.operands[0], "reshape")
    nodes = (*(() if view is None else (view,)), apart, *nodes)
    turned = r.reshaped(apart.operands[0], (rows[0], length, heads * size), nodes)
    turned = r.add("x.rotary_embedding", (turned, *tables), options, nodes)
    split = r.add("reshape", (turned,), {"new_shape": rows}, nodes)
    r.add("transpose", (split,), {"permutation": HEADS_LAST}, nodes, nodes[-1].outputs[0])


def _turned(r: Rewriter, value: int) -> tuple[int, tuple[Node, ...]] | None:
    """Return x and the nodes of concat(-second half, first half)."""
    concat = r.made_for_one(value, "concat")
    if concat is None or len(concat.operands) != 2 or concat.attrs["axis"] != len(r.shape(value)) - 1:
        return None
    negated, first = concat.operands
    negation, left = r.made_for_one(negated, "neg"), _part(r, first)
    right = _part(r, negation.operands[0]) if negation else None
    if negation is None or left is None or right is None:
        return None
    (x, start, before), (same, middle, behind) = left, right
    half = r.shape(x)[-1] // 2
    if x != same or (start, middle) != (0, half) or r.shape(first) != r.shape(negated) or r.shape(first)[-1] != half:
        return None
    return x, (before, behind, negation, concat)


def _part(r: Rewriter, value: int) -> tuple[int, int, Node] | None:
    """Return what a value is cut from along the last dimension, from where on, and the node that cuts."""
    cut = r.made(value, "slice", "split")
    if cut is None:
        return None
    shape = r.shape(cut.operands[0])
    if cut.op == "split":
        before = cut.outputs[: cut.outputs.index(value)]
        return (cut.operands[0], sum(r.shape(o)[-1] for o in before), cut) if cut.attrs["axis"] == len(shape) - 1 else None
    whole = r.shape(value)[:-1] == shape[:-1] and set(cut.attrs["strides"] or (1,)) == {1}
    return (cut.operands[0], cut.attrs["starts"][-1], cut) if whole else None


def _is_table(r: Rewriter, value: int, shape: tuple[int, ...]) -> bool:
    """Return whether all heads have a table in common, whose rows hold each number twice."""
    own = (1,) * (4 - len(r.shape(value))) + r.shape(value)
    fits = own[0] in (1, shape[0]) and own[1] == 1 and own[2] in (1, shape[2]) and own[3] == shape[3]
    return fits and _repeats(r, value)


def _repeats(r: Rewriter, value: int) -> bool:
    """Return whether the halves of the last dimension are known to be equal."""
    array, size = r.constants.get(value), r.shape(value)[-1] if r.shape(value) else 1
    if array is not None:
        return bool(np.array_equal(array[..., : size // 2], array[..., size // 2 :], equal_nan=True))
    node = r.made(value, *_BY_ELEMENT, "mul", "reshape", "expand", "slice", "gather", "concat")
    if node is None:
        return False
    if node.op == "concat":
        parts = node.operands
        doubled = node.attrs["axis"] == len(r.shape(value)) - 1 and len(parts) == 2 and parts[0] == parts[1]
        return doubled or (node.attrs["axis"] < len(r.shape(value)) - 1 and all(_repeats(r, part) for part in parts))
    if node.op == "mul":
        scaled = r.with_number(node)
        return scaled is not None and _repeats(r, scaled[0])
    source = r.shape(node.operands[0])
    if node.op == "gather" and (node.attrs["axis"] == len(source) - 1):
        return False
    return bool(source) and source[-1] == size and _repeats(r, node.operands[0])


def _half(r: Rewriter, table: int, halves: dict[int, int], source: Node) -> int:
    """Return the first half of a table's rows."""
    array, shape = r.constants.get(table), r.shape(table)
    if table not in halves and array is not None:
        halves[table] = r.constant(array[..., : shape[-1] // 2], table)
    elif table not in halves:
        sizes = (*shape[:-1], shape[-1] // 2)
        options = {"starts": (0,) * len(shape), "sizes": sizes, "strides": None}
        halves[table] = r.add("slice", (table,), options, (source,))
    return halves[table]


def _by_row(r: Rewriter, table: int, source: Node) -> int:
    """Return a table without a dimension of heads."""
    shape = r.shape(table)
    return r.reshaped(table, (shape[0], *shape[2:]) if len(shape) == 4 else shape[-2:], (source,))
