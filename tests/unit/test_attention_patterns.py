"""Attention is recognized in all forms that exporters write, and in nothing that only resembles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from tests.unit.attention import B, D, H, S, T, attention, heads, swapped
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import attention as passes

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph


def recognize_attention(graph: Graph) -> Graph:
    return passes.recognize_attention(graph, DEFAULT_TARGET)


@pytest.mark.parametrize(
    "form", ["", "div", "mul", "twice", "joined", "both scaled", "both scaled, joined", "div, mask", "mask first", "mul, mask"]
)
def test_attention_is_recognized(form: str) -> None:
    s = Sketch()
    mask = np.where(np.arange(T) < 5, 0, -3.4e38).astype(np.float32).reshape(1, 1, 1, T) if "mask" in form else None
    graph = s.graph(attention(s, form, mask))
    after = check(recognize_attention, graph, s.feeds, ["x.attention", "reshape", "reshape"])
    assert after.nodes[0].inputs[:3] == tuple(graph.inputs[str(i)] for i in range(3))
    assert after.nodes[0].attrs["scale"] == pytest.approx(1 if form in ("", "twice", "joined", "mask first") else 0.5, rel=1e-6)


@pytest.mark.parametrize("shape", [(T,), (S, T), (1, 1, S, T), (B, 1, 1, T), (B, H, S, T), (1, H, 1, 1)])
def test_attention_takes_masks_that_broadcast(shape: tuple[int, ...]) -> None:
    s = Sketch()
    graph = s.graph(attention(s, "mul", normal(*shape)))
    check(recognize_attention, graph, s.feeds, ["x.attention", "reshape", "reshape"])


def test_causal_masks_of_minus_infinity_keep_their_meaning() -> None:
    s = Sketch()
    mask = np.where(np.arange(T) <= np.arange(S)[:, None], 0, -np.inf).astype(np.float32)
    check(recognize_attention, s.graph(attention(s, "mul", mask)), s.feeds, ["x.attention", "reshape", "reshape"])


CAUSAL = (np.arange(T) <= np.arange(S)[:, None]).astype(np.uint8)


@pytest.mark.parametrize("fill", [-np.inf, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("constant", [True, False])
def test_masks_that_choose_between_scores_and_a_number(fill: float, hidden: bool, constant: bool) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    mask = 1 - CAUSAL if hidden else CAUSAL
    condition = s.constant(mask) if constant else s.input(mask)
    choices = (number(s, fill), scores) if hidden else (scores, number(s, fill))
    graph = s.graph(s.apply("matmul", s.apply("softmax", s.apply("where", condition, *choices), axis=3), v))
    taken_as_it_is = constant or (fill == -np.inf and not hidden)
    check(recognize_attention, graph, s.feeds, ["x.attention"] if taken_as_it_is else ["where", "x.attention"])


def test_a_row_that_sees_nothing_is_a_mean() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    nothing = s.constant(np.zeros((S, T), np.uint8))
    scores = s.apply("where", nothing, scores, number(s, -3e38))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v))
    after = check(recognize_attention, graph, s.feeds, ["x.attention"])
    assert np.all(after.constants[after.nodes[0].operands[3]] == np.float32(-3e38))


@pytest.mark.parametrize(("first", "masked"), [(0, False), (0, True), (1, False)])
def test_keys_hidden_from_a_number_on_are_a_length(first: int, masked: bool) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    if masked:
        scores = s.apply("add", scores, s.input(normal(S, T)))
    filled = s.apply("lesser", s.constant(np.arange(first, first + T, dtype=np.int32)), s.input(np.array([4], np.int32)))
    scores = s.apply("where", filled, scores, number(s, -np.inf))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v))
    after = check(recognize_attention, graph, s.feeds, ["x.attention"] if first == 0 else ["lesser", "x.attention"])
    assert (after.nodes[-1].inputs[4] is not None) == (first == 0)


def test_weights_whose_nan_becomes_0() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    mask = np.zeros((S, T), np.float32)
    mask[0], mask[1:, 2] = -np.inf, -np.inf
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    weights = s.apply("softmax", s.apply("add", scores, s.input(mask)), axis=3)
    weights = s.apply("where", s.apply("isNaN", weights), number(s, 0), weights)
    check(recognize_attention, s.graph(s.apply("matmul", weights, v)), s.feeds, ["x.attention"])


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("values", [True, False])
def test_heads_repeated_for_the_queries_that_share_them(shared: int, values: bool, joined: bool) -> None:
    s = Sketch()
    heads = 4

    def expanded(x: int) -> int:
        count, length, size = s.type(x).shape[1:]
        one = s.apply("reshape", x, new_shape=[B, count, 1, length, size])
        return s.apply("expand", one, new_shape=[B, count, heads // count, length, size])

    def repeated(x: int) -> int:
        return s.apply("reshape", expanded(x), new_shape=[B, heads, *s.type(x).shape[2:]])

    q, k = s.input(normal(B, heads, S, D)), s.input(normal(B, shared, T, D, seed=1))
    v = s.input(normal(B, shared if values else heads, T, D, seed=2))
    if joined:
        key = swapped(s, expanded(k), [B, heads, D, T])
    else:
        key = s.apply("transpose", repeated(k), permutation=[0, 1, 3, 2])
    weights = s.apply("softmax", s.apply("matmul", q, key), axis=3)
    graph = s.graph(s.apply("matmul", weights, repeated(v) if values else v))
    moved = [] if values or shared == heads else ["reshape", "expand", "reshape"]
    after = check(recognize_attention, graph, s.feeds, [*moved, "x.attention"])
    assert after.nodes[-1].attrs["kv_heads"] == (shared if values else heads)


@pytest.mark.parametrize("form", ["", "joined", "mask", "rows"])
def test_one_head_of_keys_and_values_for_all_queries(form: str) -> None:
    s = Sketch()
    q = heads(s, s.input(normal(B, S, H * D)), S) if form == "rows" else s.input(normal(B, H, S, D))
    k, v = (s.input(normal(B, 1, T, D, seed=i)) for i in (1, 2))
    key = swapped(s, k, [B, 1, D, T]) if form == "joined" else s.apply("transpose", k, permutation=[0, 1, 3, 2])
    scores = s.apply("matmul", q, key)
    if form == "mask":
        scores = s.apply("add", scores, s.input(normal(B, H, S, T, seed=3)))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), v)
    if form == "rows":
        out = s.apply("transpose", out, permutation=[0, 2, 1, 3])
    after = check(recognize_attention, s.graph(out), s.feeds, ["x.attention", "reshape"] if form == "rows" else ["x.attention"])
    assert (after.nodes[0].attrs["heads"], after.nodes[0].attrs["kv_heads"]) == (H, 1)


@pytest.mark.parametrize(("keys", "values"), [(1, H), (H, 1)])
def test_keys_shared_as_values_are_not(keys: int, values: int) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, h, n, D, seed=i)) for i, (h, n) in enumerate(((H, S), (keys, T), (values, T))))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    unchanged(recognize_attention, s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v)))


def test_attention_whose_heads_stay_apart() -> None:
    s = Sketch()
    graph = s.graph(attention(s, "mul, heads"))
    check(recognize_attention, graph, s.feeds, ["reshape", "transpose", "x.attention"])


def test_attention_of_a_cache_and_one_token() -> None:
    s = Sketch()
    q, past, new, v = (s.input(normal(1, *shape, seed=i)) for i, shape in enumerate(((1, 8), (2, 6, 4), (2, 1, 4), (2, 7, 4))))
    query = s.apply("transpose", s.apply("reshape", q, new_shape=[1, 1, 2, 4]), permutation=[0, 2, 1, 3])
    key = s.apply("concat", past, new, axis=2)
    scores = s.apply("matmul", query, s.apply("transpose", key, permutation=[0, 1, 3, 2]))
    out = s.apply("matmul", s.apply("softmax", s.apply("mul", scores, number(s, 0.5)), axis=3), v)
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]), key)
    check(recognize_attention, graph, s.feeds, ["concat", "x.attention", "reshape"])


def test_attention_of_queries_that_are_computed_by_head() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, n, H, D, seed=i)) for i, n in enumerate((S, T, T)))
    query = s.apply("tanh", s.apply("transpose", q, permutation=[0, 2, 1, 3]))
    scores = s.apply("matmul", query, s.apply("transpose", k, permutation=[0, 2, 3, 1]))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), s.apply("transpose", v, permutation=[0, 2, 1, 3]))
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]))
    ops = ["transpose", "tanh", "reshape", "reshape", "x.attention", "transpose"]
    check(recognize_attention, graph, s.feeds, ops)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_one_head_for_each_batch(masked: bool) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(3, n, 8, seed=i)) for i, n in enumerate((5, 6, 6)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 2, 1]))
    scores = s.apply("add", scores, s.input(normal(5, 6))) if masked else scores
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=2), v))
    check(recognize_attention, graph, s.feeds, ["x.attention"])


WHAT = ["softmax along queries", "scores are an output", "weights are read again", "keys never transposed", "heads of 3"]


@pytest.mark.parametrize("what", [*WHAT, "a scale that varies", "a mask that widens", "broadcast values"])
def test_what_is_no_attention(what: str) -> None:
    s = Sketch()
    size = 3 if what == "heads of 3" else 4
    one = what in ("a mask that widens", "broadcast values")
    q, k = (s.input(normal(1 if one else 2, 2, 6, size, seed=i)) for i in range(2))
    v = s.input(normal(2, 2, 6, 4, seed=3))
    key = (
        s.input(normal(2, 2, size, 6)) if what == "keys never transposed" else s.apply("transpose", k, permutation=[0, 1, 3, 2])
    )
    scores = s.apply("matmul", q, key)
    if what == "a scale that varies":
        scores = s.apply("mul", scores, s.input(normal(6)))
    if what == "a mask that widens":
        scores = s.apply("add", scores, s.input(normal(2, 1, 1, 6)))
    weights = s.apply("softmax", scores, axis=2 if what == "softmax along queries" else 3)
    out = s.apply("matmul", weights, v)
    extra = {"scores are an output": (scores,), "weights are read again": (s.apply("neg", weights),)}
    unchanged(recognize_attention, s.graph(out, *extra.get(what, ())))


def by_head(s: Sketch) -> tuple[int, int]:
    """Return scores and values."""
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    return s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2])), v


@pytest.mark.parametrize("factor", [30.0, 0.5])
@pytest.mark.parametrize("masked", [False, True])
def test_scores_that_are_capped(factor: float, masked: bool) -> None:
    s = Sketch()
    scores, v = by_head(s)
    scores = s.apply("tanh", s.apply("div", s.apply("mul", scores, number(s, 0.5)), number(s, factor)))
    scores = s.apply("mul", scores, number(s, factor))
    scores = s.apply("add", scores, s.input(normal(S, T))) if masked else scores
    after = check(
        recognize_attention, s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v)), s.feeds, ["x.attention"]
    )
    attrs = after.nodes[0].attrs
    assert (attrs["softcap"], attrs["scale"]) == (pytest.approx(factor), pytest.approx(0.5))


@pytest.mark.parametrize("what", ["twice", "masked before", "a negative factor"])
def test_scores_that_are_bent_otherwise(what: str) -> None:
    s = Sketch()
    scores, v = by_head(s)
    scores = s.apply("add", scores, s.input(normal(S, T))) if what == "masked before" else scores
    scores = s.apply("tanh", scores)
    scores = s.apply("tanh", scores) if what == "twice" else s.apply("mul", scores, number(s, -2 if "negative" in what else 2))
    unchanged(recognize_attention, s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v)))


FILL = float(np.finfo(np.float32).min)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("form", ["add, div", "add, where", "where, add", "add, add", "where, where", "where, mul"])
def test_masks_that_follow_each_other_are_one(form: str, constant: bool) -> None:
    s = Sketch()
    scores, v = by_head(s)
    given = s.constant if constant else s.input
    for i, step in enumerate(form.split(", ")):
        if step == "add":
            scores = s.apply("add", scores, given(normal(*((H, 1, T) if i else (B, 1, S, T)), seed=i)))
        elif step == "where" and i:
            scores = s.apply("where", given(1 - CAUSAL), number(s, FILL), scores)
        elif step == "where":
            scores = s.apply("where", given(np.uint8([1, 1, 1, 0, 1, 1, 1])), scores, number(s, -np.inf))
        else:
            scores = s.apply(step, scores, number(s, 2.0))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v))
    ops = {
        "add, div": ["mul"],
        "add, where": ["where"],
        "where, add": ["where", "add"],
        "add, add": ["add"],
        "where, where": ["where", "where"],
        "where, mul": [],
    }[form]
    check(recognize_attention, graph, s.feeds, ["x.attention"] if constant else [*ops, "x.attention"], tolerance=2e-6)


def test_masks_that_all_layers_have_are_made_once() -> None:
    s = Sketch()
    x, hidden, bias = s.input(normal(B, H, S, D)), s.input(np.triu(np.ones((S, S), np.uint8), 1)), s.input(normal(H, 1, S))
    for _ in range(3):
        scores = s.apply("add", s.apply("matmul", x, s.apply("transpose", x, permutation=[0, 1, 3, 2])), bias)
        scores = s.apply("where", hidden, number(s, FILL), scores)
        x = s.apply("matmul", s.apply("softmax", scores, axis=3), x)
    check(recognize_attention, s.graph(x), s.feeds, ["where", "x.attention", "x.attention", "x.attention"], tolerance=1e-5)


def test_a_mask_of_zeros_is_none() -> None:
    s = Sketch()
    scores, v = by_head(s)
    scores = s.apply("add", scores, s.constant(np.zeros((B, H, S, T), np.float32)))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v))
    assert check(recognize_attention, graph, s.feeds, ["x.attention"]).nodes[0].inputs[3] is None


def fused(s: Sketch, form: str) -> int:
    """Return attention of a product that has queries, keys and values, [B, S, 3 * H * D] or [S, B, ...], cut as `form` says."""
    outer = (S, B) if "length first" in form else (B, S)
    whole = s.input(normal(*outer, 3 * H * D))
    if "interleaved" in form:
        apart = s.apply("transpose", s.apply("reshape", whole, new_shape=[*outer, H, 3 * D]), permutation=[0, 2, 1, 3])
        parts = list(s.apply_all("split", (apart,), splits=3, axis=3))
    elif "length first" in form:
        parts = [s.apply("reshape", p, new_shape=[S, B * H, D]) for p in s.apply_all("split", (whole,), splits=3, axis=2)]
        parts = [s.apply("transpose", p, permutation=[1, 0, 2]) for p in parts]
        if "rank 3" not in form:
            parts = [s.apply("reshape", p, new_shape=[B, H, S, D]) for p in parts]
    else:
        apart = s.apply("reshape", whole, new_shape=[*outer, 3, H, D])
        first = s.apply("transpose", apart, permutation=[2, 0, 3, 1, 4])
        if "gathered" in form:
            parts = [s.apply("gather", first, s.constant(np.int32(i)), axis=0) for i in (0, 1, -1)]
        else:
            parts = [s.apply("slice", first, starts=(i, 0, 0, 0, 0), sizes=(1, B, H, S, D)) for i in range(3)]
            parts = [s.apply("reshape", p, new_shape=[B, H, S, D]) for p in parts]
    q, k, v = parts
    rank = len(s.type(q).shape)
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[*range(rank - 2), rank - 1, rank - 2]))
    if "batch mask" in form:
        scores = s.apply("add", scores, s.input(normal(B, 1, 1, S)))
    elif "mask" in form:
        scores = s.apply("add", scores, s.input(normal(S, S)))
    out = s.apply("matmul", s.apply("softmax", scores, axis=rank - 1), v)
    if rank == 3:
        return s.apply("transpose", out, permutation=[1, 0, 2])
    return s.apply("transpose", out, permutation=[2, 0, 1, 3] if "length first" in form else [0, 2, 1, 3])


@pytest.mark.parametrize("form", ["gathered", "sliced", "interleaved", "sliced, mask"])
def test_heads_of_one_product_are_parts_of_its_rows(form: str) -> None:
    s = Sketch()
    moved = ["reshape", *["slice", "reshape"] * 3] if form == "interleaved" else ["slice"] * 3
    check(recognize_attention, s.graph(fused(s, form)), s.feeds, [*moved, "x.attention", "reshape"])


@pytest.mark.parametrize("form", ["length first", "length first, mask", "length first, rank 3", "length first, rank 3, mask"])
def test_rows_of_all_batches_are_rows_of_more_heads(form: str) -> None:
    s = Sketch()
    after = check(recognize_attention, s.graph(fused(s, form)), s.feeds, ["split", *["reshape"] * 3, "x.attention", "reshape"])
    assert next(n for n in after.nodes if n.op == "x.attention").attrs["heads"] == B * H


def test_rows_of_all_batches_that_see_other_keys_are_moved() -> None:
    s = Sketch()
    ops = ["split", *["transpose"] * 3, "x.attention", "reshape", "transpose", "reshape"]
    check(recognize_attention, s.graph(fused(s, "length first, batch mask")), s.feeds, ops)


@pytest.mark.parametrize("form", ["", "mask", "masks", "apart", "weights joined"])
def test_batch_and_heads_that_are_one_dimension(form: str) -> None:
    s = Sketch()
    q, k, v = (heads(s, s.input(normal(B, n, H * D, seed=i)), n) for i, n in enumerate((S, T, T)))
    q, k, v = (s.apply("reshape", x, new_shape=[B * H, n, D]) for x, n in ((q, S), (k, T), (v, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 2, 1]))
    if "mask" in form:
        scores = s.apply("add", scores, s.input(normal(B * H, 1, T)))
    if form in ("masks", "apart", "weights joined"):
        scores = s.apply("reshape", scores, new_shape=[B, H, S, T])
        scores = s.apply("add", scores, s.input(normal(1, 1, S, T))) if form == "masks" else scores
    weights = s.apply("softmax", scores, axis=len(s.type(scores).shape) - 1)
    if form in ("masks", "weights joined"):
        weights = s.apply("reshape", weights, new_shape=[B * H, S, T])
    elif form == "apart":
        v = s.apply("reshape", v, new_shape=[B, H, T, D])
    out = s.apply("matmul", weights, v)
    out = out if form == "apart" else s.apply("reshape", out, new_shape=[B, H, S, D])
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]))
    ops = {"mask": ["reshape"], "masks": ["reshape", "add"]}.get(form, [])
    check(recognize_attention, graph, s.feeds, [*ops, "x.attention", "reshape"])


def test_heads_of_one_for_each_batch_are_told_apart_behind() -> None:
    s = Sketch()
    q, k, v = (s.apply("tanh", s.input(normal(B, n, 8, seed=i))) for i, n in enumerate((S, T, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 2, 1]))
    out = s.apply("reshape", s.apply("matmul", s.apply("softmax", scores, axis=2), v), new_shape=[B, 1, S, 8])
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]))
    check(recognize_attention, graph, s.feeds, ["tanh", "tanh", "tanh", "x.attention", "reshape"])


def test_keys_that_are_no_rows_are_transposed() -> None:
    s = Sketch()
    q, k, v = s.input(normal(B, H, S, D)), s.input(normal(B, H, D, T)), s.input(normal(B, H, T, D))
    graph = s.graph(s.apply("matmul", s.apply("softmax", s.apply("matmul", q, k), axis=3), v))
    check(recognize_attention, graph, s.feeds, ["transpose", "x.attention"])
