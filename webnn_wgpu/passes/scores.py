"""The scores of attention as exporters write them: products of queries and keys that are scaled, capped and masked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..ir.graph import Node
from ..ops._shapes import unidirectional
from .factors import unscaled
from .matching import match_of, matches
from .patterns import AnyNumber, Operator, Variable
from .rewriting import Rewriter

LOWEST = -1e30
"""Scores of this or less are those of keys that are not seen."""


@dataclass(frozen=True)
class Added:
    """A mask that is added to scores, times a factor.

    Attributes:
        value: the mask.
        factor: a number.
        outer: batch and heads, which are one dimension of a mask of rank 3.
    """

    value: int
    factor: float = 1.0
    outer: tuple[int, int] | None = None

    def times(self, factor: float) -> Added:
        """Return the mask of scores that are multiplied."""
        return replace(self, factor=self.factor * factor)


@dataclass(frozen=True)
class Filled:
    """A mask that replaces scores by a number.

    Attributes:
        value: a condition.
        number: the number.
        hidden: whether it replaces the scores for which the condition is true, instead of those for which it is false.
        outer: batch and heads, which are one dimension of a condition of rank 3.
    """

    value: int
    number: float
    hidden: bool
    outer: tuple[int, int] | None = None

    def times(self, factor: float) -> Filled:
        """Return the mask of scores that are multiplied."""
        return replace(self, number=self.number * factor)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """capped(scale * q k'), masked, for the first `length` keys, and -infinity for the others.

    Attributes:
        query: q.
        key: k', by head.
        scale: a factor.
        softcap: capped(x) is softcap * tanh(x / softcap), or x if softcap is 0.
        masks: the masks of the capped products, the first one first.
        length: the number of keys, if not all are used.
        nodes: the nodes that compute the scores.
    """

    query: int
    key: int
    scale: float
    softcap: float
    masks: tuple[Added | Filled, ...]
    length: int | None
    nodes: tuple[Node, ...]

    def by_head(self, batch: int, heads: int) -> Scores:
        """Return scores whose first dimension is batch and heads."""
        masks = (replace(mask, outer=(batch, heads)) if mask.outer is None else mask for mask in self.masks)
        return replace(self, masks=tuple(masks))


# ------------------------------------------------------------------------------------------------------------- formulas

scores, mask, condition, fill = Variable("scores"), Variable("mask"), Variable("condition"), AnyNumber("fill")
where = Operator("where")

CAPPED = Operator("tanh")(scores)
APART = Operator("reshape")(scores)
ADDED = scores + mask
SHOWN, HIDDEN = where(condition, scores, fill), where(condition, fill, scores)

keys, length = Variable("keys", constant=True), Variable("length", types=("int32", "uint32"))
is_filled = Operator("lesser")(keys, length).shared()
ENDED = where(is_filled, scores, -math.inf)


def scores_of(r: Rewriter, value: int) -> Scores | None:
    """Return a value as scores, if it is."""
    value, length, ending = _unended(r, value)
    found = _made(r, value)
    if found is None or not math.isfinite(found.scale) or not math.isfinite(found.softcap):
        return None
    if any(isinstance(mask, Filled) and mask.number > LOWEST for mask in found.masks):
        return None
    return replace(found, length=length, nodes=(*found.nodes, *ending))


def mask_of(r: Rewriter, scores: Scores, nodes: tuple[Node, ...]) -> int | None:
    """Return all masks as the single mask operand of attention, additive or boolean. None without a mask."""
    if not scores.masks:
        return None
    key = (scores.masks, r.type(scores.query).data_type)
    if key not in r.remembered:
        r.remembered[key] = _mask(r, scores, nodes)
    return r.remembered[key]


def _mask(r: Rewriter, scores: Scores, nodes: tuple[Node, ...]) -> int:
    first = scores.masks[0]
    if len(scores.masks) == 1 and isinstance(first, Filled) and (seen := _seen(r, first)) is not None:
        return _by_head(r, first, seen, nodes)

    def number(x: float) -> int:
        return r.constant(np.asarray(x, r.type(scores.query).numpy), scores.query)

    sum_so_far: int | None = None
    for mask in scores.masks:
        value = _by_head(r, mask, mask.value, nodes)
        if isinstance(mask, Filled):
            # Such a number absorbs any score, so its addition replaces the score.
            parts = (number(mask.number), number(0) if sum_so_far is None else sum_so_far)
            sum_so_far = r.add("where", (value, *(parts if mask.hidden else parts[::-1])), {}, nodes)
            continue
        added = value if mask.factor == 1 else r.add("mul", (value, number(mask.factor)), {}, nodes)
        sum_so_far = added if sum_so_far is None else r.add("add", (sum_so_far, added), {}, nodes)
    assert sum_so_far is not None
    return sum_so_far


def _by_head(r: Rewriter, mask: Added | Filled, value: int, nodes: tuple[Node, ...]) -> int:
    """Return a mask's value with dimensions for batch and heads, if it has one for both."""
    shape = r.shape(value)
    joined = mask.outer is not None and len(shape) == 3 and shape[0] > 1
    return r.reshaped(value, (*(mask.outer or ()), *shape[1:]), nodes) if joined else value


def _seen(r: Rewriter, mask: Filled) -> int | None:
    """Return a condition as a boolean mask of the visible keys, if its effect is known before its content.

    A row without visible keys results in the mean of all values, unless the mask filled it with -infinity.
    """
    array, infinite = r.constants.get(mask.value), mask.number == -math.inf
    if array is None:
        return mask.value if infinite and not mask.hidden else None
    seen = (array == 0) if mask.hidden else (array != 0)
    if not infinite and not np.all(np.any(seen, axis=-1) if seen.ndim else seen):
        return None
    return r.constant(seen.astype(np.uint8), mask.value) if mask.hidden else mask.value


def _unended(r: Rewriter, value: int) -> tuple[int, int | None, tuple[Node, ...]]:
    """Return scores before the keys from a number on were hidden, that number if any were, and the nodes that hide them."""
    m = match_of(r, ENDED, r.made_for_one(value, *where.names))
    if m is None or r.shape(m[scores]) != r.shape(value):
        return value, None, ()
    counted = r.constants[m[keys]]
    counts = counted.shape == (r.shape(value)[-1],) and np.array_equal(counted, np.arange(counted.size))
    single = r.type(m[length]).num_elements == 1 and r.type(m[length]).rank <= 1
    return (m[scores], m[length], m.nodes_of(ENDED, is_filled)) if counts and single else (value, None, ())


def _made(r: Rewriter, value: int) -> Scores | None:
    """Return a value as scores of all keys, from the product on. None if it has other operators."""
    node = r.made_for_one(value, *_STEPS)
    return None if node is None else _STEPS[node.op](r, node)


def _product(r: Rewriter, product: Node) -> Scores:
    query, query_scale, query_scaling = _unscaled(r, product.operands[0])
    key, key_scale, key_scaling = _unscaled(r, product.operands[1])
    return Scores(
        query=query,
        key=key,
        scale=query_scale * key_scale,
        softcap=0.0,
        masks=(),
        length=None,
        nodes=(*query_scaling, *key_scaling, product),
    )


def _scaled(r: Rewriter, node: Node) -> Scores | None:
    before = unscaled(r, node)
    found = None if before is None else _made(r, before[0])
    if before is None or found is None:
        return None
    factor = before[1]
    if factor <= 0 and (found.softcap or found.masks):
        return None
    masks = tuple(mask.times(factor) for mask in found.masks)
    scale, softcap = found.scale * factor, found.softcap * factor
    return replace(found, scale=scale, softcap=softcap, masks=masks, nodes=(*found.nodes, node))


def _capped(r: Rewriter, node: Node) -> Scores | None:
    m = match_of(r, CAPPED, node)
    found = None if m is None else _made(r, m[scores])
    bent = found is not None and not found.softcap and not found.masks
    return replace(found, softcap=1.0, nodes=(*found.nodes, node)) if found is not None and bent else None


def _apart(r: Rewriter, node: Node) -> Scores | None:
    """Return scores whose batch and heads were one dimension."""
    m, shape = match_of(r, APART, node), r.shape(node.outputs[0])
    if m is None or len(shape) != 4 or r.shape(m[scores]) != (shape[0] * shape[1], *shape[2:]):
        return None
    found = _made(r, m[scores])
    return None if found is None else replace(found.by_head(shape[0], shape[1]), nodes=(*found.nodes, node))


def _masked(r: Rewriter, node: Node) -> Scores | None:
    shape = r.shape(node.outputs[0])
    for before, each in _masks(r, node):
        found = _made(r, before) if unidirectional(r.shape(each.value), shape) else None
        if found is not None and r.shape(before) == shape:
            # Exporters omit the addition if the addend is absent.
            masks = found.masks if _is_nothing(r, each) else (*found.masks, each)
            return replace(found, masks=masks, nodes=(*found.nodes, node))
    return None


def _masks(r: Rewriter, node: Node) -> Iterator[tuple[int, Added | Filled]]:
    """Yield the possible scores of an operator that masks, each with the mask."""
    for m in matches(r, ADDED | SHOWN | HIDDEN, node):
        yield m[scores], Added(m[mask]) if ADDED in m else Filled(m[condition], m[fill], HIDDEN in m)


_STEPS = {
    "matmul": _product,
    "mul": _scaled,
    "div": _scaled,
    "tanh": _capped,
    "reshape": _apart,
    "add": _masked,
    "where": _masked,
}
"""How to go on from each operator that may make scores."""


def _is_nothing(r: Rewriter, mask: Added | Filled) -> bool:
    array = r.constants.get(mask.value)
    return isinstance(mask, Added) and array is not None and not np.any(array)


def _unscaled(r: Rewriter, value: int) -> tuple[int, float, tuple[Node, ...]]:
    """Return a value before it is multiplied or divided by constant numbers, their product, and these nodes."""
    scale, nodes = 1.0, list[Node]()
    while (node := r.made_for_one(value, "mul", "div")) is not None and (found := unscaled(r, node)) is not None:
        value, scale = found[0], scale * found[1]
        nodes.append(node)
    return value, scale, tuple(nodes)
