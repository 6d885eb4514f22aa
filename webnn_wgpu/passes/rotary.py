"""Rotary position embedding as exporters write it: x * cos + turned(x) * sin.

turned(x) is the second half of x's last dimension, negated, before the first; or, where neighbours are the pairs, the second of
each, negated, before the first. x may be the first elements of all heads, to which the others are joined again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Graph, Node
from .heads import HEADS_LAST, Heads, heads_of
from .rewriting import Rewriter, rewrite

_BY_ELEMENT = ("cos", "sin", "cast", "identity")


def recognise_rotary_embedding(graph: Graph) -> Graph:
    """Replace such sums by the operator, whose tables hold each angle once."""
    return rewrite(graph, _rotary, _with_the_rest)


@dataclass(frozen=True)
class _Turned:
    """A value whose pairs are turned by a right angle.

    Attributes:
        x: the value.
        interleaved: whether a pair are neighbours, or else an element of each half.
        nodes: what turns them.
    """

    x: int
    interleaved: bool
    nodes: tuple[Node, ...]


def _rotary(r: Rewriter, node: Node) -> bool:
    shape = r.shape(node.outputs[0])
    if node.op != "add" or len(shape) != 4 or shape[3] % 2 or r.type(node.outputs[0]).data_type not in FLOATS:
        return False
    for straight, turning in (node.operands, node.operands[::-1]):
        direct, turned = r.made_for_one(straight, "mul"), r.made_for_one(turning, "mul")
        if direct is None or turned is None:
            return False
        for rotated, sin in (turned.operands, turned.operands[::-1]):
            found = _turned_halves(r, rotated) or _turned_neighbours(r, rotated)
            if found is None or found.x not in direct.operands or r.shape(found.x) != shape:
                continue
            cos = direct.operands[direct.operands[0] == found.x]
            tables = (cos, sin) if r.shape(cos) == r.shape(sin) else ()
            axis = next((axis for axis in (1, 2) if _is_table(r, sin, shape, axis)), None)
            if axis is None or not tables or not all(_repeats(r, table, found.interleaved) for table in tables):
                continue
            rows = [_by_row(r, _half(r, table, found.interleaved, direct), axis, direct) for table in tables]
            nodes = (*found.nodes, direct, turned, node)
            _turn(r, found.x, rows, nodes, node.outputs[0], axis=axis, interleaved=found.interleaved)
            return True
    return False


def _with_the_rest(r: Rewriter, node: Node) -> bool:
    """Turn the first elements of all heads where they are, if they were cut off for that and joined to the others again."""
    if node.op != "concat" or len(node.operands) != 2 or len(r.shape(node.outputs[0])) != 4:
        return False
    turned, rest = node.operands
    view = r.made(turned, "reshape")
    embedding = r.made(turned if view is None else view.operands[0], "x.rotary_embedding")
    if embedding is None or not r.inner(turned):
        return False
    # Rows of heads are a view of what was cut.
    rows = None if view is None else r.made(embedding.operands[0], "reshape")
    first, behind = _part_of(r, embedding.operands[0] if rows is None else rows.operands[0]), _part_of(r, rest)
    if first is None or behind is None or (first.value, 0, first.size) != (behind.value, first.start, behind.start):
        return False
    axis = 1 if view is None else 2
    if r.shape(node.outputs[0]) != r.shape(first.value) or embedding.attrs["heads"] != r.shape(first.value)[axis]:
        return False
    nodes = tuple(n for n in (first.cut, behind.cut, rows, embedding, view, node) if n is not None)
    tables, interleaved = embedding.operands[1:], embedding.attrs["interleaved"]
    _turn(r, first.value, tables, nodes, node.outputs[0], axis=axis, interleaved=interleaved)
    return True


def _turn(
    r: Rewriter,
    x: int,
    tables: Sequence[int],
    nodes: tuple[Node, ...],
    output: int | None,
    *,
    axis: int,
    interleaved: bool,
) -> int:
    """Add the operator, whose heads are the dimension `axis` of x, and return its result, which is `output` if that is given.

    It turns rows of heads before the transpose that tells these apart, if there is one: attention then does without. What is
    joined to the rest of each head stays where it is until that is found.
    """
    options = {"heads": r.shape(x)[axis], "interleaved": interleaved, "rotary_dim": 2 * r.shape(tables[0])[-1]}
    if axis == 2:
        batch, length, count, size = r.shape(x)
        rows = r.reshaped(x, (batch, length, count * size), nodes)
        turned = r.add("x.rotary_embedding", (rows, *tables), options, nodes)
        return r.add("reshape", (turned,), {"new_shape": r.shape(x)}, nodes, output)
    joined = output is not None and any(n.op == "concat" and n.attrs["axis"] == 3 for n in r.readers(output))
    scaling = r.made(x, "mul", "div")
    unscaled = None if scaling is None or joined else r.with_factor(scaling)
    if scaling is not None and unscaled is not None and _in_rows(r, unscaled[0]) is not None:
        turned = _turn(r, unscaled[0], tables, (scaling, *nodes), None, axis=axis, interleaved=interleaved)
        operands = [turned if value == unscaled[0] else value for value in scaling.operands]
        return r.add(scaling.op, operands, {}, (scaling, *nodes), output)
    heads = None if joined else _in_rows(r, x)
    if heads is None or heads.rows is None:
        return r.add("x.rotary_embedding", (x, *tables), options, nodes, output)
    nodes = (*heads.view.nodes, *nodes)
    turned = r.add("x.rotary_embedding", (heads.in_rows(r, heads.rows, nodes), *tables), options, nodes)
    apart = r.add("reshape", (turned,), {"new_shape": (heads.batch, heads.length, heads.count, heads.size)}, nodes)
    return r.add("transpose", (apart,), {"permutation": HEADS_LAST}, nodes, output)


def _in_rows(r: Rewriter, x: int) -> Heads | None:
    """Return matrices by head as heads, if those lie in rows of [batch, length] that are not by head as well."""
    heads = heads_of(r, x, r.shape(x))
    rows = None if heads is None else heads.rows
    return heads if heads is not None and rows is not None and not rows.length_first and not heads.plain(r) else None


@dataclass(frozen=True)
class _Part:
    """Neighbouring elements of a value's last dimension.

    Attributes:
        value: what they are cut from.
        start: the first of them.
        size: how many they are.
        cut: the node that cuts them off, a slice or split.
    """

    value: int
    start: int
    size: int
    cut: Node


def _part_of(r: Rewriter, value: int) -> _Part | None:
    """Return what a value is cut from along the last dimension, if it is."""
    cut = r.made(value, "slice", "split")
    if cut is None:
        return None
    whole, size = r.shape(cut.operands[0]), r.shape(value)[-1]
    if cut.op == "split":
        before = cut.outputs[: cut.outputs.index(value)]
        along = cut.attrs["axis"] == len(whole) - 1
        return _Part(cut.operands[0], sum(r.shape(o)[-1] for o in before), size, cut) if along else None
    along = r.shape(value)[:-1] == whole[:-1] and set(cut.attrs["strides"] or (1,)) == {1}
    return _Part(cut.operands[0], cut.attrs["starts"][-1], size, cut) if along else None


def _turned_halves(r: Rewriter, value: int) -> _Turned | None:
    """Return x of concat(-second half, first half)."""
    concat = r.made_for_one(value, "concat")
    if concat is None or len(concat.operands) != 2 or concat.attrs["axis"] != len(r.shape(value)) - 1:
        return None
    negation, left = r.made_for_one(concat.operands[0], "neg"), _part_of(r, concat.operands[1])
    right = _part_of(r, negation.operands[0]) if negation else None
    if negation is None or left is None or right is None:
        return None
    half = r.shape(left.value)[-1] // 2
    if (left.value, 0, half, half, half) != (right.value, left.start, left.size, right.start, right.size):
        return None
    return _Turned(left.value, False, (left.cut, right.cut, negation, concat))


def _turned_neighbours(r: Rewriter, value: int) -> _Turned | None:
    """Return x of [-x[1], x[0], -x[3], x[2], ...], which is stacked along a new last dimension."""
    view = r.made_for_one(value, "reshape")
    concat = r.made_for_one(view.operands[0], "concat") if view is not None else None
    if view is None or concat is None or len(concat.operands) != 2:
        return None
    pairs, size = r.shape(concat.outputs[0]), math.prod(r.shape(value)[-1:])
    if pairs != (*r.shape(value)[:-1], size // 2, 2):
        return None
    (odd, *negated), (even, *kept) = _unviewed(r, concat.operands[0]), _unviewed(r, concat.operands[1])
    negation = r.made_for_one(odd, "neg")
    if negation is None or concat.attrs["axis"] != len(pairs) - 1:
        return None
    odd, *inner = _unviewed(r, negation.operands[0])
    first, second = _every_second(r, even), _every_second(r, odd)
    if first is None or second is None or (first[0], 0, 1) != (second[0], first[1], second[1]):
        return None
    return _Turned(first[0], True, (*first[2], *second[2], *inner, negation, *negated, *kept, concat, view))


def _unviewed(r: Rewriter, value: int) -> tuple[int, *tuple[Node, ...]]:
    """Return what a value was before it got or lost a last dimension of 1, and the node that did that."""
    view = r.made(value, "reshape")
    if view is None:
        return (value,)
    before, after = r.shape(view.operands[0]), r.shape(value)
    return (view.operands[0], view) if after in ((*before, 1), before[:-1]) else (value,)


def _every_second(r: Rewriter, value: int) -> tuple[int, int, tuple[Node, ...]] | None:
    """Return what every second element was taken from along the last dimension, the first of them, and the nodes for it."""
    part = _part_of(r, value)
    pairs = None if part is None else r.made(part.value, "reshape")
    if part is not None and pairs is not None and part.size == 1:
        whole = r.shape(pairs.operands[0])
        split = r.shape(part.value) == (*whole[:-1], math.prod(whole[-1:]) // 2, 2)
        return (pairs.operands[0], part.start, (pairs, part.cut)) if split else None
    cut = r.made(value, "slice")
    if cut is None or cut.attrs["strides"] is None:
        return None
    (x,), (*outer, size), (*_, start) = cut.operands, r.shape(cut.operands[0]), cut.attrs["starts"]
    steps = (*(1 for _ in outer), 2)
    whole = r.shape(value) == (*outer, size // 2) and cut.attrs["strides"] == steps
    return (x, start, (cut,)) if whole else None


def _is_table(r: Rewriter, value: int, shape: tuple[int, ...], axis: int) -> bool:
    """Return whether a value is a table that all heads, which are the dimension `axis`, have in common."""
    own = _of_rank_4(r.shape(value))
    allowed = [{1, length} for length in shape]
    allowed[axis], allowed[3] = {1}, {shape[3]}
    return all(length in lengths for length, lengths in zip(own, allowed, strict=True))


def _of_rank_4(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (4 - len(shape)) + shape


def _repeats(r: Rewriter, value: int, interleaved: bool) -> bool:
    """Return whether rows are known to hold each number twice: in both halves, or next to each other."""
    array, size = r.constants.get(value), r.shape(value)[-1] if r.shape(value) else 1
    if array is not None:
        first, second = (_once(array, interleaved, which) for which in (0, 1))
        return bool(np.array_equal(first, second, equal_nan=True))
    node = r.made(value, *_BY_ELEMENT, "mul", "reshape", "expand", "slice", "gather", "concat")
    if node is None:
        return False
    if node.op == "concat":
        parts = node.operands
        if node.attrs["axis"] < len(r.shape(value)) - 1:
            return all(_repeats(r, part, interleaved) for part in dict.fromkeys(parts))
        return not interleaved and len(parts) == 2 and parts[0] == parts[1]
    if node.op == "mul":
        scaled = r.with_number(node)
        return scaled is not None and _repeats(r, scaled[0], interleaved)
    source = r.shape(node.operands[0])
    if node.op == "reshape" and interleaved and source == (*r.shape(value)[:-1], size // 2, 2):
        return _is_doubled(r, node.operands[0])
    if node.op == "gather" and (node.attrs["axis"] == len(source) - 1):
        return False
    return bool(source) and source[-1] == size and _repeats(r, node.operands[0], interleaved)


def _is_doubled(r: Rewriter, value: int) -> bool:
    """Return whether the two elements of the last dimension are known to be one twice."""
    node = r.made(value, "expand", "concat")
    if node is not None and node.op == "concat":
        return node.attrs["axis"] == len(r.shape(value)) - 1 and node.operands[0] == node.operands[-1]
    return node is not None and r.shape(node.operands[0])[-1:] == (1,)


def _once(array: Array, interleaved: bool, which: int) -> Array:
    """Return every number of a table's rows once, from the first place or the second."""
    half = array.shape[-1] // 2
    return array[..., which::2] if interleaved else array[..., which * half : (which + 1) * half]


def _half(r: Rewriter, table: int, interleaved: bool, source: Node) -> int:
    """Return a table whose rows have each number once. All layers have the same."""
    key, array, shape = ("half", table), r.constants.get(table), r.shape(table)
    if key not in r.remembered and array is not None:
        r.remembered[key] = r.constant(_once(array, interleaved, 0), table)
    elif key not in r.remembered:
        sizes = (*shape[:-1], shape[-1] - 1 if interleaved else shape[-1] // 2)
        place = {"starts": (0,) * len(shape), "sizes": sizes, "strides": (*(1 for _ in shape[1:]), 2 if interleaved else 1)}
        r.remembered[key] = r.add("slice", (table,), place, (source,))
    return r.remembered[key]


def _by_row(r: Rewriter, table: int, axis: int, source: Node) -> int:
    """Return a table without its dimension of heads."""
    shape = list(_of_rank_4(r.shape(table)))
    del shape[axis]
    return r.reshaped(table, shape, (source,))
