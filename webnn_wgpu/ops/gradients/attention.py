"""Gradients of attention and of rotary embeddings, as compositions of products and softmax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.graph import Attrs
from ..interfaces.gradient import GradientCall, GradientRule, GradientTerm, NoDerivative, by_parts

_SCORES = "float32"
_LOWEST = -3e38
"""The score of keys that a query does not see. It is finite, so that rows without keys have no NaN."""


_SWAPPED = (0, 1, 2, 4, 3)
"""The permutation that transposes matrices."""


def _split(term: GradientTerm, heads: int, groups: int) -> GradientTerm:
    """Return [batch, groups, heads / groups, length, size] of a tensor of rank 3 or 4."""
    if term.rank == 4:
        batch, _, length, size = term.shape
        by_head = term
    else:
        batch, length, width = term.shape
        size = width // heads
        by_head = term.reshaped((batch, length, heads, size)).permuted((0, 2, 1, 3))
    return by_head.reshaped((batch, groups, heads // groups, length, size)).cast(_SCORES)


def _of_groups(mask: GradientTerm, heads: int, groups: int) -> GradientTerm:
    """Return a mask that broadcasts to [batch, heads, queries, keys] with a dimension of groups."""
    batch, own, *rest = [*(1 for _ in range(4 - mask.rank)), *mask.shape]
    return mask.reshaped((batch, *((1, 1) if own == 1 else (groups, heads // groups)), *rest))


def _both(a: GradientTerm | None, b: GradientTerm | None) -> GradientTerm | None:
    return a if b is None else b if a is None else a.apply("logicalAnd", b)


def _window(call: GradientCall, length: GradientTerm | None, queries: int, keys: int) -> GradientTerm | None:
    """Return whether each query sees each key, by the positions of both, or None if all see all."""
    attrs = call.attrs
    left, right = attrs["left"], 0 if attrs["causal"] else attrs["right"]
    positions = np.arange(keys) - np.arange(queries)[:, None]
    if length is None:
        distances = positions - attrs["offset"]
        seen = np.ones_like(distances, bool)
        seen &= left is None or distances >= -left
        seen &= right is None or distances <= right
        return None if seen.all() else call.constant(seen.astype(np.uint8))
    counts = length.cast("int32").apply("clamp", min_value=0, max_value=keys).reshaped((length.type.num_elements, 1, 1, 1, 1))
    distances = call.constant(positions.astype(np.int32))
    if attrs["offset"] is None:
        distances = distances.apply("sub", counts.apply("sub", counts.number(queries)))
    else:
        distances = distances.apply("sub", distances.number(attrs["offset"]))
    seen = call.constant(np.arange(keys, dtype=np.int32)).apply("lesser", counts)
    if left is not None:
        seen = seen.apply("logicalAnd", distances.compared("greaterOrEqual", -left))
    if right is not None:
        seen = seen.apply("logicalAnd", distances.compared("lesserOrEqual", right))
    return seen


def _all_see(attrs: Attrs, queries: int, keys: int) -> bool:
    """Return whether each query sees a key, by its position alone."""
    left, right = attrs["left"], 0 if attrs["causal"] else attrs["right"]
    # The keys from the first to the last that the window of a query allows.
    positions = [position + attrs["offset"] for position in (0, queries - 1)]
    starts = [0 if left is None else position - left for position in positions]
    ends = [keys - 1 if right is None else position + right for position in positions]
    return all(max(0, start) <= min(keys - 1, end) for start, end in zip(starts, ends, strict=True))


def _product(
    a: GradientTerm, b: GradientTerm, turned: str = "", triangle: str = "", diagonal: int | None = None
) -> GradientTerm:
    """Return the product of matrices.

    Args:
        a: the left factor.
        b: the right factor.
        turned: the factors, "a" and "b", that are transposed.
        triangle: the matrices whose elements past a diagonal do not count: "left" factors or the "result".
        diagonal: the diagonal, for passes alone. None for none.
    """
    if diagonal is not None:
        options = {"a_transpose": "a" in turned, "b_transpose": "b" in turned}
        return a.apply("transposedMatmul", b, **options, triangle=triangle, diagonal=diagonal)
    a, b = (term.permuted(_SWAPPED) if name in turned else term for name, term in (("a", a), ("b", b)))
    return a.apply("matmul", b)


def _last_seen(attrs: Attrs) -> int | None:
    """Return by how much the position of a key may exceed that of a query at most, or None for any distance."""
    right = 0 if attrs["causal"] else attrs["right"]
    return None if right is None else right + attrs["offset"]


def _scores(
    call: GradientCall,
    q: GradientTerm,
    k: GradientTerm,
    mask: GradientTerm | None,
    length: GradientTerm | None,
    diagonal: int | None = None,
) -> tuple[GradientTerm, GradientTerm, GradientTerm | None]:
    """Return the scores before the mask, the scores with the addend of a mask, and a mask of the seen ones, or None for all.

    Scores past the diagonal may be 0.
    """
    attrs = call.attrs
    heads, groups = attrs["heads"], attrs["kv_heads"]
    capped = attrs["scale"] * _product(q, k, "b", "result", diagonal)
    if cap := attrs["softcap"]:
        capped = cap * (1 / cap * capped).apply("tanh")
    scores, seen = capped, _window(call, length, q.shape[3], k.shape[3])
    if mask is not None and mask.type.data_type == "uint8":
        seen = _both(seen, _of_groups(mask, heads, groups))
    elif mask is not None:
        added = _of_groups(mask.cast(_SCORES), heads, groups)
        finite = added.compared("notEqual", -np.inf)
        scores, seen = scores + added.where(finite), _both(seen, finite)
    return capped, scores, seen


def _weights(
    call: GradientCall, q: GradientTerm, k: GradientTerm, mask: GradientTerm | None, length: GradientTerm | None
) -> tuple[GradientTerm, GradientTerm]:
    """Return the scores before the mask, and the weights that softmax makes of them."""
    capped, scores, seen = _scores(call, q, k, mask, length)
    all_see = mask is None and length is None and _all_see(call.attrs, q.shape[3], k.shape[3])
    weights = (scores if seen is None else scores.where(seen, _LOWEST)).apply("softmax", axis=4)
    return capped, weights if seen is None or all_see else weights.where(seen)


def _internal_weights(
    call: GradientCall, q: GradientTerm, k: GradientTerm, mask: GradientTerm | None, diagonal: int | None
) -> tuple[GradientTerm, GradientTerm]:
    """Return the results of `_weights`, by operators that only passes make. Weights past the diagonal are 0."""
    capped, scores, seen = _scores(call, q, k, mask, None, diagonal)
    if diagonal is not None and mask is None and call.attrs["left"] is None:
        # Positions alone tell what is seen.
        return capped, scores.apply("attentionWeights", None, diagonal=diagonal)
    return capped, scores.apply("attentionWeights", seen)


def composed_attention(
    call: GradientCall, operands: Sequence[GradientTerm | None], *, internal: bool = False
) -> Sequence[GradientTerm]:
    """Return the result of attention as a composition.

    Args:
        call: the call of the operator.
        operands: its operands.
        internal: whether the composition may have operators that only passes make. Then no number of keys may be given.
    """
    query, key, value, mask, length = operands
    assert query is not None
    assert key is not None
    assert value is not None
    heads, groups = call.attrs["heads"], call.attrs["kv_heads"]
    q, k, v = _split(query, heads, groups), _split(key, groups, groups), _split(value, groups, groups)
    if internal:
        diagonal = _last_seen(call.attrs)
        _, weights = _internal_weights(call, q, k, mask, diagonal)
        result = _product(weights, v, "", "left", diagonal)
    else:
        _, weights = _weights(call, q, k, mask, length)
        result = weights.apply("matmul", v)
    batch, _, _, rows, size = result.shape
    result = result.reshaped((batch, heads, rows, size)).cast(query.type.data_type)
    return (result if query.rank == 4 else result.permuted((0, 2, 1, 3)).reshaped((batch, rows, heads * size)),)


def _rotary_embedding(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    x, cos, sin, positions = operands
    assert x is not None
    assert cos is not None
    assert sin is not None
    heads, rotary = call.attrs["heads"], call.attrs["rotary_dim"]
    by_head = x if x.rank == 4 else x.reshaped((*x.shape[:2], heads, x.shape[2] // heads))
    tables: list[GradientTerm] = []
    for table in (cos, sin):
        found = table if positions is None else table.apply("gather", positions, axis=0)
        batch, length, half = [*(1 for _ in range(3 - found.rank)), *found.shape]
        tables.append(found.reshaped((batch, 1, length, half) if x.rank == 4 else (batch, length, 1, half)))
    c, s = tables
    part, size = by_head.sliced(3, 0, rotary), by_head.shape[3]
    # Interleaved pairs lie along a last dimension of 2, others along the one before the last.
    axis = 4 if call.attrs["interleaved"] else 3
    half = rotary // 2
    pairs = part.reshaped((*part.shape[:3], *((half, 2) if axis == 4 else (2, half))))
    a, b = (pairs.sliced(axis, i, 1).reshaped((*part.shape[:3], half)) for i in range(2))
    shape = (*part.shape[:3], *((half, 1) if axis == 4 else (1, half)))
    turned = [term.reshaped(shape) for term in (a * c - b * s, a * s + b * c)]
    result = turned[0].apply("concat", turned[1], axis=axis).reshaped(part.shape)
    if rotary < size:
        result = result.apply("concat", by_head.sliced(3, rotary, size - rotary), axis=3)
    return (result.reshaped(x.shape),)


_COMPOSED = by_parts(composed_attention)


def composed_attention_gradient(
    call: GradientCall, operands: Sequence[GradientTerm | None], *, internal: bool = False
) -> Sequence[GradientTerm]:
    """Return the results of the operator of the gradients, as a composition.

    The derivative of softmax is 0 for keys that a query does not see.

    Args:
        call: the call of the operator.
        operands: its operands.
        internal: whether the composition may have operators that only passes make. Then no number of keys may be given.
    """
    gradient, query, key, value, mask, length = operands
    assert gradient is not None
    assert query is not None
    assert key is not None
    assert value is not None
    attrs = call.attrs
    heads, groups = attrs["heads"], attrs["kv_heads"]
    q, g = (_split(term, heads, groups) for term in (query, gradient))
    k, v = (_split(term, groups, groups) for term in (key, value))
    diagonal = _last_seen(attrs) if internal else None
    of_weights = _product(g, v, "b", "result", diagonal)
    if internal:
        capped, weights = _internal_weights(call, q, k, mask, diagonal)
        of_scores = weights.apply("weightsGradient", of_weights, scale=attrs["scale"])
    else:
        capped, weights = _weights(call, q, k, mask, length)
        # The sum over the keys of weights times their gradients.
        common = (of_weights * weights).summed([4], keep=True)
        of_scores = attrs["scale"] * (weights * (of_weights - common))
    if cap := attrs["softcap"]:
        of_scores = of_scores * (1 - (1 / cap * capped).square())
    # Weights and gradients of scores are 0 past the diagonal.
    found = (
        _product(of_scores, k, "", "left", diagonal),
        *(_product(x, y, "a", "left", diagonal) for x, y in ((of_scores, q), (weights, g))),
    )
    return [_merged(term, like) for term, like in zip(found, (query, key, value), strict=True)]


def _merged(term: GradientTerm, like: GradientTerm) -> GradientTerm:
    """Return the gradient of an operand from that of its heads. Heads of queries that share a head of keys are added."""
    own = like.shape[1] if like.rank == 4 else like.shape[2] // term.shape[4]
    batch, groups, repeats, rows, size = term.shape
    if groups * repeats != own:
        term, repeats = term.summed([2], keep=True), 1
    by_head = term.reshaped((batch, own, rows, size)).cast(like.type.data_type)
    return by_head if like.rank == 4 else by_head.permuted((0, 2, 1, 3)).reshaped((batch, rows, own * size))


def _attention_rule(call: GradientCall) -> Sequence[GradientTerm | NoDerivative | None]:
    if call.wants(3):
        # The gradient of the mask is a matrix of scores.
        return _COMPOSED(call)
    return [*call.writer.add("x.attention_gradient", (call.gradient, *call.operands), call.attrs), None, None]


ATTENTION: GradientRule = _attention_rule
ATTENTION_GRADIENT = by_parts(composed_attention_gradient)
ROTARY_EMBEDDING = by_parts(_rotary_embedding)
