"""Attention as exporters write it: softmax(scale * q k' + mask) v, with the transposes that tell heads apart.

`x.attention` makes no matrix of scores, and reads and writes [batch, length, heads * size], so that the transposes go too.
Where every key of a query is masked by -infinity it gives 0, and the operators one by one NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..ir.graph import Graph, Node
from ..ops._shapes import unidirectional
from .rewriting import Rewriter, rewrite

HEADS_LAST = (0, 2, 1, 3)
"""The permutation between [batch, heads, length, size] and [batch, length, heads, size]."""

LOWEST = -1e30
"""Scores of this or less are those of keys that are not seen."""

WIDEST = 256
"""Wider heads, and those that are not whole quads, have no fast kernel."""


def recognise_attention(graph: Graph) -> Graph:
    """Replace softmax between two matrix products by attention."""
    return rewrite(graph, _swap_at_once, _attention)


@dataclass(frozen=True)
class _Scores:
    """scale * q k' + mask for the first `length` keys, -infinity for the others, and the nodes that compute it."""

    query: int
    key: _Heads
    scale: float
    mask: int | _Bias | None
    length: int | None
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class _Bias:
    """A mask yet to be made: what is added to scores where a condition holds, and where it does not."""

    condition: int
    true: float
    false: float

    def make(self, r: Rewriter, scores: int, nodes: tuple[Node, ...]) -> int:
        numbers = (r.constant(np.asarray(x, r.type(scores).numpy), scores) for x in (self.true, self.false))
        return r.add("where", (self.condition, *numbers), {}, nodes)


@dataclass(frozen=True)
class _Heads:
    """A value that becomes matrices by head, once its dimensions are permuted by `permutation`.

    Attributes:
        value: the value.
        permutation: of its dimensions.
        transposes: the nodes that permute them, the last first.
        views: the node that told the heads apart.
    """

    value: int
    permutation: tuple[int, ...]
    transposes: tuple[Node, ...]
    views: tuple[Node, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All of them, the first first."""
        return (*self.views, *self.transposes[::-1])

    def shape(self, r: Rewriter) -> tuple[int, ...]:
        """Return the shape once they are permuted."""
        shape = r.shape(self.value)
        return tuple(shape[d] for d in self.permutation)

    @property
    def rows(self) -> bool:
        """Whether it is [batch, length, heads, size]."""
        return self.permutation == HEADS_LAST

    @property
    def plain(self) -> bool:
        """Whether it has the matrices one behind the other."""
        return self.permutation == tuple(range(len(self.permutation)))


def _swap_at_once(r: Rewriter, node: Node) -> bool:
    """Swap the last two dimensions of a value with one transpose where all others were made one for it.

    So PyTorch's exporter with `dynamo=True` transposes the keys.
    """
    swap = r.made(node.operands[0], "transpose") if node.op == "reshape" else None
    join = r.made(swap.operands[0], "reshape") if swap is not None else None
    if swap is None or join is None or swap.attrs["permutation"] != (0, 2, 1):
        return False
    *batch, columns, rows = r.shape(node.outputs[0])
    if len(batch) < 2 or r.shape(join.outputs[0]) != (math.prod(batch), rows, columns):
        return False
    nodes = (join, swap, node)
    value = r.reshaped(join.operands[0], (*batch, rows, columns), nodes)
    rank = len(batch) + 2
    permutation = (*range(rank - 2), rank - 1, rank - 2)
    r.add("transpose", (value,), {"permutation": permutation}, nodes, node.outputs[0])
    return True


def _attention(r: Rewriter, node: Node) -> bool:
    # Rows that hold all heads are read and written as they are: then the last node is the transpose behind the product.
    rows = node.op == "transpose" and node.attrs["permutation"] == HEADS_LAST
    product = r.made_for_one(node.operands[0], "matmul") if rows else node if node.op == "matmul" else None
    softmax, guard = _weights(r, product.operands[0]) if product is not None else (None, ())
    if product is None or softmax is None:
        return False
    rank = len(r.shape(product.outputs[0]))
    scores = _scores(r, softmax.operands[0]) if rank in (3, 4) and softmax.attrs["axis"] == rank - 1 else None
    if scores is None:
        return False
    query, value = _heads(r, scores.query), _heads(r, product.operands[1])
    if rows != (query.rows and _is_transposed(r, product.outputs[0])):
        return False
    *batch, length, size = r.shape(scores.query)
    columns, keys = r.shape(product.outputs[0])[-1], r.shape(softmax.outputs[0])[-1]
    shared = scores.key.shape(r)[:-2]
    fits = r.shape(product.operands[1]) == (*shared, keys, columns)
    if not fits or size % 4 or columns % 4 or max(size, columns) > WIDEST:
        return False
    heads, kv_heads = (batch[1], shared[1]) if rank == 4 else (1, 1)
    nodes = (*query.nodes, *scores.nodes, softmax, *guard, *value.nodes, product)
    attrs = {"heads": heads, "kv_heads": kv_heads, "scale": scores.scale}
    mask = scores.mask.make(r, scores.query, nodes) if isinstance(scores.mask, _Bias) else scores.mask
    own_keys, own_values = _own_heads(r, scores.key), _own_heads(r, value)
    if own_keys is not None and own_values is not None and own_keys.count == own_values.count:
        nodes = (*own_keys.nodes, *own_values.nodes, *nodes)
        attrs["kv_heads"] = own_keys.count
        own = [_heads(r, r.reshaped(x.value, x.shape, nodes)) for x in (own_keys, own_values)]
        nodes = (*(each for x in own for each in x.nodes), *nodes)
        given = [_operand(r, x, nodes) for x in own]
    else:
        given = [_operand(r, x, nodes) for x in (scores.key, value)]
    others = (*given, mask, scores.length)
    if rows:
        made = r.add("x.attention", (_operand(r, query, nodes), *others), attrs, nodes)
        shape = (batch[0], length, heads, columns)
        r.add("reshape", (made,), {"new_shape": shape}, (*nodes, node), node.outputs[0])
    else:
        r.add("x.attention", (scores.query, *others), attrs, nodes, product.outputs[0])
    return True


def _weights(r: Rewriter, value: int) -> tuple[Node | None, tuple[Node, ...]]:
    """Return the softmax that made a value, also where NaN becomes 0 behind it, and the nodes that do that.

    NaN is what softmax makes of rows all of whose keys are hidden; attention makes 0 of them.
    """
    guard = r.made_for_one(value, "where")
    if guard is None:
        return r.made_for_one(value, "softmax"), ()
    condition, zero, weights = guard.operands
    test, softmax = r.made_for_one(condition, "isNaN"), r.made(weights, "softmax")
    if softmax is None or test is None or test.operands[0] != weights or not r.inner(weights, 2) or r.number(zero) != 0:
        return None, ()
    return softmax, (test, guard)


@dataclass(frozen=True)
class _Own:
    """Heads as they were before each was repeated for the queries that share it: [batch, count, length, size]."""

    value: int
    shape: tuple[int, int, int, int]
    nodes: tuple[Node, ...]

    @property
    def count(self) -> int:
        return self.shape[1]


def _own_heads(r: Rewriter, heads: _Heads) -> _Own | None:
    """Return what heads were that have been expanded from [batch, count, 1, length, size]."""
    view = r.made(heads.value, "reshape")
    expand = r.made(view.operands[0], "expand") if view is not None else None
    if view is None or expand is None or not heads.plain or len(r.shape(heads.value)) != 4:
        return None
    batch, _, length, size = r.shape(heads.value)
    before, after = r.shape(expand.operands[0]), r.shape(expand.outputs[0])
    if len(before) != 5 or len(after) != 5 or before[2] != 1 or (*after[:2], *after[3:]) != (*before[:2], *before[3:]):
        return None
    if (before[0], *before[3:]) != (batch, length, size):
        return None
    inner = r.made(expand.operands[0], "reshape")
    nodes = (expand, view) if inner is None else (inner, expand, view)
    return _Own(expand.operands[0], (batch, before[1], length, size), nodes)


def _is_transposed(r: Rewriter, value: int) -> bool:
    """Return whether a value's only reader brings its heads behind its rows."""
    reader = r.readers(value)[0] if r.inner(value) else None
    return reader is not None and reader.op == "transpose" and reader.attrs["permutation"] == HEADS_LAST


def _scores(r: Rewriter, value: int) -> _Scores | None:
    value, length, ending = _unended(r, value)
    found = _unmasked(r, value)
    if found is None:
        return None
    value, mask, masking = found
    value, scale, scaling = _unscaled(r, value)
    product = r.made_for_one(value, "matmul")
    if product is None:
        return None
    query, query_scale, query_scaling = _unscaled(r, product.operands[0])
    key, key_scale, key_scaling = _unscaled(r, product.operands[1])
    scale *= query_scale * key_scale
    heads = _heads(r, key)
    *others, last, before = heads.permutation
    heads = replace(heads, permutation=(*others, before, last))
    batch, shared = r.shape(query)[:-2], r.shape(key)[:-2]
    # All queries may share one head of keys.
    fits = shared in (batch, (*batch[:1], *(1 for _ in batch[1:])))
    if not fits or not math.isfinite(scale) or not (heads.plain or heads.rows):
        return None
    nodes = (*query_scaling, *key_scaling, *heads.nodes, product, *scaling, *masking, *ending)
    return _Scores(query, heads, scale, mask, length, nodes)


def _unended(r: Rewriter, value: int) -> tuple[int, int | None, tuple[Node, ...]]:
    """Return what scores were before the keys from a number on were hidden, that number if any were, and those nodes."""
    node = r.made_for_one(value, "where")
    test = r.made(node.operands[0], "lesser") if node is not None else None
    if node is None or test is None:
        return value, None, ()
    (numbers, length), (_, scores, filler) = test.operands, node.operands
    keys = r.constants.get(numbers)
    counts = keys is not None and keys.shape == (r.shape(value)[-1],) and np.array_equal(keys, np.arange(keys.size))
    single = r.type(length).num_elements == 1 and r.type(length).rank <= 1 and r.type(length).data_type in ("int32", "uint32")
    if not counts or not single or r.shape(scores) != r.shape(value) or r.number(filler) != -math.inf:
        return value, None, ()
    return scores, length, (node, test)


def _unmasked(r: Rewriter, value: int) -> tuple[int, int | _Bias | None, tuple[Node, ...]] | None:
    """Return what scores were before they were masked, the mask, and the node that does it; None for another kind of mask."""
    shape = r.shape(value)
    node = r.made_for_one(value, "add", "where")
    if node is None:
        return value, None, ()
    if node.op == "where":
        condition, *_ = node.operands
        for i in (1, 2):
            # The numbers where the condition holds are first: these are hidden, or those others.
            scores, fill = node.operands[i], r.number(node.operands[3 - i])
            if fill is not None and fill <= LOWEST and r.shape(scores) == shape and _product(r, scores):
                if not unidirectional(r.shape(condition), _as_rank_4(shape)):
                    return None
                mask = _seen(r, condition, hidden=i == 2, infinite=fill == -math.inf)
                if mask is None:
                    # Any score is lost beside such a number, so that to add it is to put it in the score's place.
                    mask = _Bias(condition, 0, fill) if i == 1 else _Bias(condition, fill, 0)
                return scores, mask, (node,)
        return None
    # The scores are what comes of a product, with or without a scale.
    for scores, mask in (node.operands, node.operands[::-1]):
        if r.shape(scores) == shape and unidirectional(r.shape(mask), _as_rank_4(shape)) and _product(r, scores):
            return scores, mask, (node,)
    return None


def _seen(r: Rewriter, condition: int, *, hidden: bool, infinite: bool) -> int | None:
    """Return a condition as the mask of what is seen, if that can be told before it is known what is in it.

    A row of which nothing is seen comes out as the mean of all values, unless it was filled with -infinity.
    """
    array = r.constants.get(condition)
    if array is None:
        return condition if infinite and not hidden else None
    seen = (array == 0) if hidden else (array != 0)
    if not infinite and not np.all(np.any(seen, axis=-1) if seen.ndim else seen):
        return None
    return r.constant(seen.astype(np.uint8), condition) if hidden else condition


def _as_rank_4(shape: tuple[int, ...]) -> tuple[int, ...]:
    # Scores of rank 3 are those of one head each.
    return shape if len(shape) == 4 else (shape[0], 1, *shape[1:])


def _product(r: Rewriter, value: int) -> bool:
    return r.made_for_one(_unscaled(r, value)[0], "matmul") is not None


def _unscaled(r: Rewriter, value: int) -> tuple[int, float, tuple[Node, ...]]:
    """Return what a value is before it is multiplied or divided by constant numbers, their product, and those nodes."""
    scale, nodes = 1.0, list[Node]()
    while (node := r.made_for_one(value, "mul", "div")) is not None:
        if node.op == "mul":
            found = r.with_number(node)
        else:
            number = r.number(node.operands[1])
            found = (node.operands[0], 1 / number) if number else None
        if found is None or r.shape(found[0]) != r.shape(value):
            break
        value, scale = found[0], scale * found[1]
        nodes.append(node)
    return value, scale, tuple(nodes)


def _heads(r: Rewriter, value: int) -> _Heads:
    """Return what a value was before it was transposed."""
    permutation = tuple(range(len(r.shape(value))))
    nodes: list[Node] = []
    while (node := r.made(value, "transpose")) is not None:
        inner = node.attrs["permutation"]
        permutation = tuple(inner[d] for d in permutation)
        value = node.operands[0]
        nodes.append(node)
    view = r.made(value, "reshape")
    return _Heads(value, permutation, tuple(nodes), () if view is None else (view,))


def _operand(r: Rewriter, heads: _Heads, nodes: tuple[Node, ...]) -> int:
    """Return a value as attention takes it."""
    if heads.rows:
        batch, length, count, size = r.shape(heads.value)
        return r.reshaped(heads.value, (batch, length, count * size), nodes)
    if heads.plain:
        return heads.value
    # Transposed in another way: as it was.
    return heads.transposes[0].outputs[0]
