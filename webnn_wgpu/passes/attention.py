"""Attention as exporters write it: softmax(scale * q k' + mask) v, with the movements that separate heads.

`x.attention` stores no matrix of scores, and reads and writes [batch, length, heads * size], so that the movements are dropped
too. If -infinity masks every key of a query, it returns 0, while the separate operators return NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..costs import Target
from ..ir.graph import Graph, Node
from .fold import fold_constants
from .heads import HEADS_LAST, Heads, heads_of
from .matching import match_of
from .patterns import Operator, Variable
from .rewriting import Rewriter, rewrite
from .scores import Scores, mask_of, scores_of
from .views import view_of

WIDEST = 256
"""Wider heads, and those that are not whole quads, have no fast kernel."""

_LENGTH_FIRST = (2, 0, 1, 3)
"""The permutation from [batch, heads, length, size] to [length, batch, heads, size]."""


weights = Operator("softmax")(Variable("scores"))
is_nan = Operator("isNaN")(weights)
GUARDED = Operator("where")(is_nan, 0, weights)
"""The weights, with 0 instead of NaN: softmax of a row with no visible key is NaN, but attention returns 0."""


def recognize_attention(graph: Graph, target: Target) -> Graph:
    """Replace softmax between two matrix products by attention."""
    found = rewrite(graph, _attention, at=("matmul", "transpose"))
    # Several masks of a graph that are constant are one.
    return graph if found is graph else fold_constants(found, target)


@dataclass(frozen=True)
class _End:
    """The product with the values, and the nodes that move its heads behind its rows, if there are any.

    Attributes:
        product: the product.
        view: the reshape that separates batch and heads, if they are one dimension of the product.
        apart: the transpose.
        length_first: whether the transpose produces [length, batch] rows instead of [batch, length].
    """

    product: Node
    view: Node | None = None
    apart: Node | None = None
    length_first: bool = False

    @property
    def behind(self) -> tuple[Node, ...]:
        """The nodes behind the product."""
        return tuple(node for node in (self.view, self.apart) if node is not None)


def _attention(r: Rewriter, node: Node) -> bool:
    end = _end_at(r, node)
    softmax, guard = _weights(r, end.product.operands[0]) if end is not None else (None, ())
    if end is None or softmax is None or softmax.attrs["axis"] != len(r.shape(softmax.outputs[0])) - 1:
        return False
    scores = scores_of(r, softmax.operands[0])
    heads = None if scores is None else _operands(r, scores, end)
    if scores is None or heads is None:
        return False
    query, key, value = heads
    if query.size % 4 or value.size % 4 or max(query.size, value.size) > WIDEST:
        return False
    moved = dict.fromkeys(each for x in heads for each in x.view.nodes)
    nodes = (*moved, *scores.nodes, softmax, *guard, end.product)
    if len(r.shape(softmax.outputs[0])) == 3:
        scores = scores.by_head(query.batch, query.count)
    mask = mask_of(r, scores, nodes)
    attrs = {"heads": query.count, "kv_heads": key.count, "scale": scores.scale, "softcap": scores.softcap}
    if end.apart is None or query.rows is None:
        given = (_by_head(r, query, nodes), *(_operand(r, x, nodes) for x in (key, value)))
        _end_by_head(r, end, (*given, mask, scores.length), attrs, nodes)
        return True
    # Rows of all batches are rows of as many more heads, if each of those sees the same keys.
    joined = all(x.rows is not None and x.rows.length_first for x in heads) and scores.length is None
    joined = joined and (mask is None or all(n == 1 for n in r.shape(mask)[:-2]))
    if joined:
        attrs |= {"heads": query.batch * query.count, "kv_heads": key.batch * key.count}
        given = tuple(r.reshaped(_rows(r, x, nodes), (1, x.length, x.batch * x.count * x.size), nodes) for x in heads)
    else:
        given = tuple(_operand(r, x, nodes) for x in heads)
    made = r.add("x.attention", (*given, mask, scores.length), attrs, nodes)
    outer = (query.length, query.batch) if joined else (query.batch, query.length)
    if joined != end.length_first and 1 not in outer:
        made = r.add("reshape", (made,), {"new_shape": (*outer, query.count * value.size)}, nodes)
        made = r.add("transpose", (made,), {"permutation": (1, 0, 2)}, nodes)
    r.add("reshape", (made,), {"new_shape": r.shape(node.outputs[0])}, (*nodes, *end.behind), node.outputs[0])
    return True


def _end_at(r: Rewriter, node: Node) -> _End | None:
    """Return the end of a possible attention whose last node is this one."""
    if node.op == "matmul":
        return _End(node) if _behind(r, node) is None else None
    if node.op != "transpose":
        return None
    view = r.made(node.operands[0], "reshape")
    product = r.made(node.operands[0] if view is None else view.operands[0], "matmul")
    end = None if product is None else _behind(r, product)
    return end if end is not None and end.apart is node else None


def _behind(r: Rewriter, product: Node) -> _End | None:
    """Return the end of a possible attention that moves heads behind rows after this product."""
    shape = r.shape(product.outputs[0])
    view = reader = _only_reader(r, product)
    if view is not None and view.op == "reshape" and len(shape) == 3:
        apart = r.shape(view.outputs[0])
        if len(apart) != 4 or (apart[0] * apart[1], *apart[2:]) != shape:
            return None
        reader = _only_reader(r, view)
    else:
        view = None
    if reader is None or reader.op != "transpose":
        return None
    permutation = reader.attrs["permutation"]
    if permutation == (1, 0, 2) and view is None:
        return _End(product, None, reader, length_first=True)
    return _End(product, view, reader, permutation == _LENGTH_FIRST) if permutation in (HEADS_LAST, _LENGTH_FIRST) else None


def _only_reader(r: Rewriter, node: Node) -> Node | None:
    return r.readers(node.outputs[0])[0] if r.inner(node.outputs[0]) else None


def _end_by_head(
    r: Rewriter, end: _End, operands: tuple[int | None, ...], attrs: dict[str, Any], nodes: tuple[Node, ...]
) -> None:
    """Add an attention whose result is by head, and the nodes behind it."""
    last = end.product if end.apart is None else end.apart
    output, shape = last.outputs[0], r.shape(end.product.outputs[0])
    query = operands[0]
    assert query is not None
    if end.apart is None and len(r.shape(query)) == len(shape):
        r.add("x.attention", operands, attrs, nodes, output)
        return
    made = r.add("x.attention", operands, attrs, nodes)
    if end.apart is None:
        r.add("reshape", (made,), {"new_shape": shape}, nodes, output)
        return
    made = r.reshaped(made, shape if end.view is None else r.shape(end.view.outputs[0]), nodes)
    r.add("transpose", (made,), end.apart.attrs, (*nodes, *end.behind), output)


def _operands(r: Rewriter, scores: Scores, end: _End) -> tuple[Heads, Heads, Heads] | None:
    """Return query, key and value by head."""
    *outer, length, columns = r.shape(end.product.outputs[0])
    *shared, size, keys = r.shape(scores.key)
    query, value = scores.query, end.product.operands[1]
    # A reshape behind the product may separate the scores by batch.
    joined = [math.prod(outer)]
    shared = list(outer) if len(outer) == 2 and shared == joined else shared
    if r.shape(query) not in ((*outer, length, size), (*joined, length, size)) or r.shape(value) != (*shared, keys, columns):
        return None
    if len(outer) == 2:
        # All queries may share one head of keys.
        choices = [(outer[0], outer[1], shared[-1])] if shared in (outer, [outer[0], 1]) else []
    elif len(outer) == 1:
        choices = [(*split, split[1]) for split in _splits(r, scores, end, outer[0])] if shared == outer else []
    else:
        choices = []
    for batch, count, kv_count in choices:
        q = heads_of(r, query, (batch, count, length, size))
        if q is None or (q.rows is None and (batch, count, kv_count) != choices[-1]):
            continue
        of_keys, of_values = (batch, kv_count, keys, size), (batch, kv_count, keys, columns)
        for once in (True, False):
            k = heads_of(r, scores.key, of_keys, swapped=True, shared=once)
            v = heads_of(r, value, of_values, shared=once)
            if k is not None and v is not None and (not once or (k.count == v.count and _found(r, k) and _found(r, v))):
                return q, k, v
    return None


def _splits(r: Rewriter, scores: Scores, end: _End, matrices: int) -> list[tuple[int, int]]:
    """Return the batches and heads that so many matrices may be: the best first, and last those of one head each."""
    if end.view is not None:
        batch, count, *_ = r.shape(end.view.outputs[0])
        return [(batch, count)]
    first = view_of(r, scores.query).dims[0]
    apart = [(first[0][0], first[1][0])] if len(first) == 2 else [(1, matrices)]
    return [*(apart if end.apart is not None else ()), (matrices, 1)]


def _found(r: Rewriter, heads: Heads) -> bool:
    return heads.rows is not None or heads.plain(r)


def _operand(r: Rewriter, heads: Heads, nodes: tuple[Node, ...]) -> int:
    """Return matrices by head in the form that attention reads: as rows of heads if possible."""
    if heads.rows is None or (heads.plain(r) and len(r.shape(heads.view.value)) == 4):
        return _by_head(r, heads, nodes)
    rows = _rows(r, heads, nodes)
    return r.add("transpose", (rows,), {"permutation": (1, 0, 2)}, nodes) if heads.rows.length_first else rows


def _rows(r: Rewriter, heads: Heads, nodes: tuple[Node, ...]) -> int:
    assert heads.rows is not None
    return heads.in_rows(r, heads.rows, nodes)


def _by_head(r: Rewriter, heads: Heads, nodes: tuple[Node, ...]) -> int:
    """Return matrices by head in contiguous form."""
    if heads.plain(r):
        whole = heads.view.value
        # One head each needs no dimension for it.
        return whole if heads.count == 1 and len(r.shape(whole)) == 3 else r.reshaped(whole, heads.shape, nodes)
    given = heads.given
    if not heads.swapped:
        return r.reshaped(given, heads.shape, nodes)
    batch, count, length, size = heads.shape
    swapped = r.reshaped(given, (batch, count, size, length), nodes)
    return r.add("transpose", (swapped,), {"permutation": (0, 1, 3, 2)}, nodes)


def _weights(r: Rewriter, value: int) -> tuple[Node | None, tuple[Node, ...]]:
    """Return the softmax of a value, and the nodes behind it: one that replaces NaN by 0, or one that joins batch and heads."""
    view = r.made_for_one(value, "reshape")
    if view is not None and len(r.shape(value)) == 3 and r.shape(view.operands[0])[2:] == r.shape(value)[1:]:
        softmax, guard = _weights(r, view.operands[0])
        return softmax, (*guard, view)
    guard = match_of(r, GUARDED, r.made_for_one(value, "where"))
    if guard is None:
        return r.made_for_one(value, "softmax"), ()
    return guard[weights], guard.nodes_of(is_nan, GUARDED)
