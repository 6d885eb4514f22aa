"""Rotary position embedding as exporters write it: x * cos + turned(x) * sin.

turned(x) is the second half of x's last dimension, negated, before the first. If neighbors are the pairs, it is the second
element of each pair, negated, before the first. x may be the first elements of all heads, which a concatenation joins with the
other elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Graph, Node
from .factors import unscaled
from .heads import HEADS_LAST, Heads, heads_of
from .matching import Match
from .patterns import Apply, Operator, Variable
from .rewriting import Rewriter
from .rules import Conditions, Rule, apply_rules

_BY_ELEMENT = ("cos", "sin", "cast", "identity")


def recognize_rotary_embedding(graph: Graph) -> Graph:
    """Replace such sums by the operator, whose tables hold each angle once."""
    return apply_rules(graph, *RULES)


# ------------------------------------------------------------------------------------------------------------- formulas

concat, reshape, rotary_embedding = Operator("concat"), Operator("reshape"), Operator("x.rotary_embedding")
x, cos, sin = Variable("x"), Variable("cos"), Variable("sin")

first, second = Variable("first"), Variable("second")
negated_half = -second
halves = concat(negated_half, first)

even, odd = Variable("even"), Variable("odd")
# A reshape adds the last dimension of the pairs before or after the negation.
even_apart, odd_apart = reshape(even).shared(), reshape(odd).shared()
negated_odd = (-(odd_apart | odd)).named("negated")
negated_apart = reshape(negated_odd).shared()
pairs = concat(negated_apart | negated_odd, even_apart | even)
neighbors = reshape(pairs)

rest = Variable("rest")
by_head = rotary_embedding(first, cos, sin)
in_rows = rotary_embedding(reshape(first).shared(), cos, sin).shared()


@dataclass(frozen=True)
class _ElementRange:
    """Neighboring elements of a value's last dimension.

    Attributes:
        value: the value that has more elements.
        start: the number of the first element.
        size: the number of elements.
        cut: the node that selects them, a slice or split.
    """

    value: int
    start: int
    size: int
    cut: Node


_Turning: TypeAlias = Callable[[Match], "tuple[Node, ...] | None"]


def _from_halves(m: Match) -> tuple[Node, ...] | None:
    """Return the nodes that turn x, if it is cut in the middle of its last dimension, and joined along that."""
    left, right, shape = _part_of(m.r, m[first]), _part_of(m.r, m[second]), m.r.shape(m[x])
    if left is None or right is None or m[halves].attrs["axis"] != len(shape) - 1:
        return None
    half = shape[-1] // 2
    places = [(part.value, part.start, part.size) for part in (left, right)]
    return (left.cut, right.cut, m[negated_half], m[halves]) if places == [(m[x], 0, half), (m[x], half, half)] else None


def _from_neighbors(m: Match) -> tuple[Node, ...] | None:
    """Return the nodes that turn x, if it is cut into its even and odd elements, and joined to pairs."""
    evens, odds, shape = _every_second(m.r, m[even]), _every_second(m.r, m[odd]), m.r.shape(m[x])
    if evens is None or odds is None or (evens[:2], odds[:2]) != ((m[x], 0), (m[x], 1)):
        return None
    if m.r.shape(m.value(pairs)) != (*shape[:-1], shape[-1] // 2, 2) or m[pairs].attrs["axis"] != len(shape):
        return None
    inner = m.nodes_of(odd_apart, negated_odd, negated_apart, even_apart, pairs, neighbors)
    return (*evens[2], *odds[2], *inner)


def _axis_of_heads(m: Match) -> int | None:
    """Return the dimension of x along which tables are the same, if both are."""
    if m.r.shape(m[cos]) != m.r.shape(m[sin]):
        return None
    return next((axis for axis in (1, 2) if _is_table(m.r, m[sin], m.r.shape(m[x]), axis)), None)


def _rotary_rule(name: str, turned: Apply, parts: str, turning: _Turning, *, interleaved: bool) -> Rule:
    """Return the rule of an embedding whose pairs are halves or neighbors."""
    direct, rotated = x * cos, turned * sin
    whole = (direct + rotated).of(*FLOATS)

    def has_heads(m: Match) -> bool:
        shape = m.r.shape(m[x])
        return len(shape) == 4 and shape[3] % 2 == 0 and shape == m.r.shape(m.value(whole))

    def repeats(m: Match) -> bool:
        return all(_repeats(m.r, m[table], interleaved) for table in (cos, sin))

    def build(m: Match, node: Node) -> bool:
        r, source, axis, nodes = m.r, m[direct], _axis_of_heads(m), turning(m)
        assert axis is not None
        assert nodes is not None
        tables = [_by_row(r, _half(r, m[table], interleaved, source), axis, source) for table in (cos, sin)]
        _turn(r, m[x], tables, (*nodes, source, m[rotated], node), node.outputs[0], axis=axis, interleaved=interleaved)
        return True

    where: Conditions = {
        "x is [batch, heads, length, size] or [batch, length, heads, size], and size even": has_heads,
        parts: lambda m: turning(m) is not None,
        "cos and sin are the same for all heads": lambda m: _axis_of_heads(m) is not None,
        "their rows have each number twice, once for either of a pair": repeats,
    }
    return Rule(
        name=name, pattern=whole, result=rotary_embedding(x, cos, sin, interleaved=interleaved), where=where, build=build
    )


HALVES = _rotary_rule(
    "rotary embedding of halves", halves, "first and second are the halves of x", _from_halves, interleaved=False
)
NEIGHBORS = _rotary_rule(
    "rotary embedding of neighbors", neighbors, "even and odd are every second element of x", _from_neighbors, interleaved=True
)


def _rest_rule(name: str, pattern: Apply, embedding: Apply, axis: int) -> Rule:
    """Return the rule that turns the first elements of all heads, which are the dimension `axis`, in place."""

    def cut(m: Match) -> tuple[_ElementRange, _ElementRange] | None:
        """Return the elements that are turned, and those behind them, of the same value."""
        turned, behind = _part_of(m.r, m[first]), _part_of(m.r, m[rest])
        if turned is None or behind is None:
            return None
        adjacent = (turned.value, 0, turned.size) == (behind.value, turned.start, behind.start)
        return (turned, behind) if adjacent else None

    def is_whole(m: Match) -> bool:
        parts, shape = cut(m), m.r.shape(m.value(pattern))
        of_heads = len(shape) == 4 and m[embedding].attrs["heads"] == shape[axis]
        return parts is not None and of_heads and m.r.shape(parts[0].value) == shape

    def build(m: Match, node: Node) -> bool:
        parts = cut(m)
        assert parts is not None
        nodes = (*(part.cut for part in parts), *m.nodes)
        made = m[embedding]
        _turn(m.r, parts[0].value, made.operands[1:], nodes, node.outputs[0], axis=axis, interleaved=made.attrs["interleaved"])
        return True

    where: Conditions = {"first and rest are all elements of each head of x": is_whole}
    return Rule(name=name, pattern=pattern, result=rotary_embedding(x, cos, sin), where=where, build=build)


RULES = (
    HALVES,
    NEIGHBORS,
    _rest_rule("rotary embedding of a part of heads", concat(by_head, rest), by_head, 1),
    _rest_rule("rotary embedding of a part of heads in rows", concat(reshape(in_rows), rest), in_rows, 2),
)


# --------------------------------------------------------------------------------------------------------------- results


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
    """Add the operator over heads along the dimension `axis` of x, and return its result, which is `output` if given.

    The operator turns rows of heads before the transpose that separates the heads, if there is one. Attention then needs no
    transpose. The other elements of each head stay unchanged until a later rule handles them.
    """
    options = {"heads": r.shape(x)[axis], "interleaved": interleaved, "rotary_dim": 2 * r.shape(tables[0])[-1]}
    if axis == 2:
        batch, length, count, size = r.shape(x)
        rows = r.reshaped(x, (batch, length, count * size), nodes)
        turned = r.add("x.rotary_embedding", (rows, *tables), options, nodes)
        return r.add("reshape", (turned,), {"new_shape": r.shape(x)}, nodes, output)
    joined = output is not None and any(n.op == "concat" and n.attrs["axis"] == 3 for n in r.readers(output))
    scaling = r.made(x, "mul", "div")
    scaled = None if scaling is None or joined else unscaled(r, scaling)
    if scaling is not None and scaled is not None and _in_rows(r, scaled[0]) is not None:
        turned = _turn(r, scaled[0], tables, (scaling, *nodes), None, axis=axis, interleaved=interleaved)
        operands = [turned if value == scaled[0] else value for value in scaling.operands]
        return r.add(scaling.op, operands, {}, (scaling, *nodes), output)
    heads = None if joined else _in_rows(r, x)
    if heads is None or heads.rows is None:
        return r.add("x.rotary_embedding", (x, *tables), options, nodes, output)
    nodes = (*heads.view.nodes, *nodes)
    turned = r.add("x.rotary_embedding", (heads.in_rows(r, heads.rows, nodes), *tables), options, nodes)
    apart = r.add("reshape", (turned,), {"new_shape": (heads.batch, heads.length, heads.count, heads.size)}, nodes)
    return r.add("transpose", (apart,), {"permutation": HEADS_LAST}, nodes, output)


def _in_rows(r: Rewriter, x: int) -> Heads | None:
    """Return matrices by head as heads, if they are in rows of [batch, length] that are not by head as well."""
    heads = heads_of(r, x, r.shape(x))
    rows = None if heads is None else heads.rows
    return heads if heads is not None and rows is not None and not rows.length_first and not heads.plain(r) else None


def _part_of(r: Rewriter, value: int) -> _ElementRange | None:
    """Return the elements of a value as a range of another one along the last dimension, if they are one."""
    cut = r.made(value, "slice", "split")
    if cut is None:
        return None
    whole, size = r.shape(cut.operands[0]), r.shape(value)[-1]
    if cut.op == "split":
        before = cut.outputs[: cut.outputs.index(value)]
        along = cut.attrs["axis"] == len(whole) - 1
        return _ElementRange(cut.operands[0], sum(r.shape(o)[-1] for o in before), size, cut) if along else None
    along = r.shape(value)[:-1] == whole[:-1] and set(cut.attrs["strides"] or (1,)) == {1}
    return _ElementRange(cut.operands[0], cut.attrs["starts"][-1], size, cut) if along else None


def _every_second(r: Rewriter, value: int) -> tuple[int, int, tuple[Node, ...]] | None:
    """Return the source of every second element along the last dimension, the first element, and the nodes between them."""
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
        scaled = unscaled(r, node)
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
