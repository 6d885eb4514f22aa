"""Passes that recognise what exporters write: in all its forms, and nothing that only resembles it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, run_graph
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import PASSES, run_passes
from webnn_wgpu.passes.attention import recognise_attention
from webnn_wgpu.passes.gelu import recognise_gelu
from webnn_wgpu.passes.normalization import recognise_normalization
from webnn_wgpu.passes.rotary import recognise_rotary_embedding
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# ----------------------------------------------------------------------------------------------------------------- gelu


def gelu(s: Sketch, x: int, form: str, dtype: Any = np.float32) -> int:
    root = s.apply("div", x, number(s, math.sqrt(2), dtype)) if "div" in form else None
    root = s.apply("mul", number(s, math.sqrt(0.5), dtype), x) if root is None else root
    bell = s.apply("add", s.apply("erf", root), number(s, 1, dtype))
    half = number(s, 0.5, dtype)
    if "half last" in form:
        return s.apply("mul", s.apply("mul", x, bell), half, label="act")
    if "half of x" in form:
        return s.apply("mul", s.apply("mul", half, x), bell, label="act")
    return s.apply("mul", s.apply("mul", bell, half), x, label="act")


FORMS = [f"{root}, {half}" for root in ("div", "mul") for half in ("half last", "half of x", "half of bell")]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", FORMS)
def test_gelu_is_recognised(form: str, dtype: Any) -> None:
    s = Sketch()
    x = s.input(np.linspace(-6, 6, 41).astype(dtype))
    after = check(
        recognise_gelu, s.graph(gelu(s, x, form, dtype)), s.feeds, ["gelu"], tolerance=1e-6 if dtype == np.float32 else 2e-3
    )
    assert after.nodes[0].label == "act"


@pytest.mark.parametrize("what", ["another root", "another half", "an inner result is an output", "another x", "broadcast"])
def test_what_is_no_gelu(what: str) -> None:
    s = Sketch()
    x, y = s.input(normal(3, 4)), s.input(normal(3, 4, seed=1))
    root = s.apply("div", x, number(s, 1.4 if what == "another root" else math.sqrt(2)))
    bell = s.apply("add", s.apply("erf", root), number(s, 1, shape=(1, 1, 1) if what == "broadcast" else ()))
    product = s.apply("mul", y if what == "another x" else x, bell)
    out = s.apply("mul", product, number(s, 0.25 if what == "another half" else 0.5))
    unchanged(recognise_gelu, s.graph(out, bell) if "output" in what else s.graph(out))


# ------------------------------------------------------------------------------------------------------------ attention

B, S, T, H, D = 2, 5, 7, 3, 4


def heads(s: Sketch, x: int, length: int, permutation: Sequence[int] = (0, 2, 1, 3)) -> int:
    return s.apply("transpose", s.apply("reshape", x, new_shape=[B, length, H, D]), permutation=permutation)


def swapped(s: Sketch, x: int, shape: Sequence[int]) -> int:
    """Swap the last two dimensions as PyTorch's exporter with `dynamo=True` does."""
    *_, columns, rows = shape
    joined = s.apply("reshape", x, new_shape=[s.type(x).num_elements // (rows * columns), rows, columns])
    return s.apply("reshape", s.apply("transpose", joined, permutation=[0, 2, 1]), new_shape=shape)


def attention(s: Sketch, form: str = "", mask: Array | None = None) -> int:
    q, k, v = (s.input(normal(B, n, H * D, seed=i)) for i, n in enumerate((S, T, T)))
    query, value = heads(s, q, S), heads(s, v, T)
    if "twice" in form:
        key = s.apply("transpose", heads(s, k, T), permutation=[0, 1, 3, 2])
    elif "joined" in form:
        key = swapped(s, heads(s, k, T), [B, H, D, T])
    else:
        key = heads(s, k, T, (0, 2, 3, 1))
    if "both scaled" in form:
        query, key = s.apply("mul", query, number(s, D**-0.25)), s.apply("mul", number(s, D**-0.25), key)
    scores = s.apply("matmul", query, key)
    if "div" in form:
        scores = s.apply("div", scores, number(s, D**0.5))
    if "mul" in form:
        scores = s.apply("mul", number(s, D**-0.5), scores)
    if mask is not None:
        scores = s.apply("add", *((s.input(mask), scores) if "mask first" in form else (scores, s.input(mask))))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), value)
    if "heads" in form:
        return out
    out = s.apply("transpose", out, permutation=[0, 2, 1, 3])
    return s.apply("reshape", out, new_shape=[B, S, H * D])


@pytest.mark.parametrize(
    "form", ["", "div", "mul", "twice", "joined", "both scaled", "both scaled, joined", "div, mask", "mask first", "mul, mask"]
)
def test_attention_is_recognised(form: str) -> None:
    s = Sketch()
    mask = np.where(np.arange(T) < 5, 0, -3.4e38).astype(np.float32).reshape(1, 1, 1, T) if "mask" in form else None
    graph = s.graph(attention(s, form, mask))
    after = check(recognise_attention, graph, s.feeds, ["x.attention", "reshape", "reshape"])
    assert after.nodes[0].inputs[:3] == tuple(graph.inputs[str(i)] for i in range(3))
    assert after.nodes[0].attrs["scale"] == pytest.approx(1 if form in ("", "twice", "joined", "mask first") else 0.5, rel=1e-6)


@pytest.mark.parametrize("shape", [(T,), (S, T), (1, 1, S, T), (B, 1, 1, T), (B, H, S, T), (1, H, 1, 1)])
def test_attention_takes_masks_that_broadcast(shape: tuple[int, ...]) -> None:
    s = Sketch()
    graph = s.graph(attention(s, "mul", normal(*shape)))
    check(recognise_attention, graph, s.feeds, ["x.attention", "reshape", "reshape"])


def test_causal_masks_of_minus_infinity_keep_their_meaning() -> None:
    s = Sketch()
    mask = np.where(np.arange(T) <= np.arange(S)[:, None], 0, -np.inf).astype(np.float32)
    check(recognise_attention, s.graph(attention(s, "mul", mask)), s.feeds, ["x.attention", "reshape", "reshape"])


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
    check(recognise_attention, graph, s.feeds, ["x.attention"] if taken_as_it_is else ["where", "x.attention"])


def test_a_row_that_sees_nothing_is_a_mean() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    nothing = s.constant(np.zeros((S, T), np.uint8))
    scores = s.apply("where", nothing, scores, number(s, -3e38))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v))
    check(recognise_attention, graph, s.feeds, ["where", "x.attention"])


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
    after = check(recognise_attention, graph, s.feeds, ["x.attention"] if first == 0 else ["lesser", "x.attention"])
    assert (after.nodes[-1].inputs[4] is not None) == (first == 0)


def test_weights_whose_nan_becomes_0() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, H, n, D, seed=i)) for i, n in enumerate((S, T, T)))
    mask = np.zeros((S, T), np.float32)
    mask[0], mask[1:, 2] = -np.inf, -np.inf
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    weights = s.apply("softmax", s.apply("add", scores, s.input(mask)), axis=3)
    weights = s.apply("where", s.apply("isNaN", weights), number(s, 0), weights)
    check(recognise_attention, s.graph(s.apply("matmul", weights, v)), s.feeds, ["x.attention"])


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
    after = check(
        recognise_attention, graph, s.feeds, ["x.attention"] if values else ["reshape", "expand", "reshape", "x.attention"]
    )
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
    after = check(recognise_attention, s.graph(out), s.feeds, ["x.attention", "reshape"] if form == "rows" else ["x.attention"])
    assert (after.nodes[0].attrs["heads"], after.nodes[0].attrs["kv_heads"]) == (H, 1)


@pytest.mark.parametrize(("keys", "values"), [(1, H), (H, 1)])
def test_keys_shared_as_values_are_not(keys: int, values: int) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, h, n, D, seed=i)) for i, (h, n) in enumerate(((H, S), (keys, T), (values, T))))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 1, 3, 2]))
    unchanged(recognise_attention, s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), v)))


@pytest.mark.parametrize(
    ("permutation", "shape"), [((0, 2, 1), [2, H, D, T]), ((0, 2, 1), [6, D, T]), ((1, 0, 2), [2, 3, T, D])]
)
def test_dimensions_are_swapped_at_once(permutation: Sequence[int], shape: list[int]) -> None:
    s = Sketch()
    joined = s.apply("reshape", s.input(normal(2, H, T, D)), new_shape=[2 * H, T, D])
    graph = s.graph(s.apply("reshape", s.apply("transpose", joined, permutation=permutation), new_shape=shape))
    if permutation == (0, 2, 1) and len(shape) == 4:
        check(recognise_attention, graph, s.feeds, ["transpose"])
    else:
        unchanged(recognise_attention, graph)


def test_attention_whose_heads_stay_apart() -> None:
    s = Sketch()
    graph = s.graph(attention(s, "mul, heads"))
    check(recognise_attention, graph, s.feeds, ["reshape", "transpose", "x.attention"])


def test_attention_of_a_cache_and_one_token() -> None:
    s = Sketch()
    q, past, new, v = (s.input(normal(1, *shape, seed=i)) for i, shape in enumerate(((1, 8), (2, 6, 4), (2, 1, 4), (2, 7, 4))))
    query = s.apply("transpose", s.apply("reshape", q, new_shape=[1, 1, 2, 4]), permutation=[0, 2, 1, 3])
    key = s.apply("concat", past, new, axis=2)
    scores = s.apply("matmul", query, s.apply("transpose", key, permutation=[0, 1, 3, 2]))
    out = s.apply("matmul", s.apply("softmax", s.apply("mul", scores, number(s, 0.5)), axis=3), v)
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]), key)
    check(recognise_attention, graph, s.feeds, ["concat", "x.attention", "reshape"])


def test_attention_of_queries_that_are_computed_by_head() -> None:
    s = Sketch()
    q, k, v = (s.input(normal(B, n, H, D, seed=i)) for i, n in enumerate((S, T, T)))
    query = s.apply("tanh", s.apply("transpose", q, permutation=[0, 2, 1, 3]))
    scores = s.apply("matmul", query, s.apply("transpose", k, permutation=[0, 2, 3, 1]))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), s.apply("transpose", v, permutation=[0, 2, 1, 3]))
    graph = s.graph(s.apply("transpose", out, permutation=[0, 2, 1, 3]))
    ops = ["transpose", "tanh", "reshape", "reshape", "x.attention", "transpose"]
    check(recognise_attention, graph, s.feeds, ops)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_one_head_for_each_batch(masked: bool) -> None:
    s = Sketch()
    q, k, v = (s.input(normal(3, n, 8, seed=i)) for i, n in enumerate((5, 6, 6)))
    scores = s.apply("matmul", q, s.apply("transpose", k, permutation=[0, 2, 1]))
    scores = s.apply("add", scores, s.input(normal(5, 6))) if masked else scores
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=2), v))
    check(recognise_attention, graph, s.feeds, ["x.attention"])


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
    unchanged(recognise_attention, s.graph(out, *extra.get(what, ())))


# -------------------------------------------------------------------------------------------------------- normalization


def normalized(s: Sketch, x: int, form: str, axes: Sequence[int], epsilon: float = 1e-5) -> int:
    d = x
    if "rms" not in form:
        d = s.apply("sub", x, s.apply("reduceMean", x, axes=axes, keep_dimensions=True))
    square = s.apply("mul", d, d) if "product" in form else s.apply("pow", d, number(s, 2))
    plus = s.apply("add", s.apply("reduceMean", square, axes=axes, keep_dimensions=True), number(s, epsilon))
    root = s.apply("sqrt", plus)
    if "reciprocal" in form:
        return s.apply("mul", s.apply("reciprocal", root), d)
    if "one over" in form:
        return s.apply("mul", d, s.apply("div", number(s, 1), root))
    return s.apply("div", d, root)


@pytest.mark.parametrize("form", ["", "product", "reciprocal", "one over", "rms", "rms, product", "rms, reciprocal"])
@pytest.mark.parametrize("axes", [[2], [1, 2], [1]])
def test_normalization_is_recognised(form: str, axes: list[int]) -> None:
    s = Sketch()
    x = s.input(normal(2, 5, 6) * 3 + 1)
    y = normalized(s, x, form, axes)
    shape = [6 if 2 in axes else 1] if 1 not in axes else [5, 6 if 2 in axes else 1]
    y = s.apply("mul", s.constant(normal(*shape, seed=1)), y)
    op = "x.rms_normalization" if "rms" in form else "layerNormalization"
    if "rms" not in form:
        y = s.apply("add", y, s.constant(normal(*shape, seed=2)), label="norm")
    after = check(recognise_normalization, s.graph(y), s.feeds, [op], tolerance=3e-6)
    assert len(after.nodes[0].operands) == (2 if "rms" in form else 3)


def test_a_normalization_takes_only_what_has_its_shape() -> None:
    s = Sketch()
    y = normalized(s, s.input(normal(2, 5, 6)), "", [2])
    graph = s.graph(s.apply("add", s.apply("mul", y, s.constant(normal(5, 6))), s.constant(normal(6))))
    check(recognise_normalization, graph, s.feeds, ["layerNormalization", "mul", "add"], tolerance=3e-6)


@pytest.mark.parametrize("what", ["means of two kinds", "a cube", "the variance is an output", "no common axes"])
def test_what_is_no_layer_normalization(what: str) -> None:
    s = Sketch()
    x = s.input(np.abs(normal(2, 6)))
    mean = s.apply("reduceMean", x, axes=[0 if what == "no common axes" else 1], keep_dimensions=True)
    d = s.apply("sub", x, s.apply("relu", mean) if what == "means of two kinds" else mean)
    square = s.apply("pow", d, number(s, 3 if what == "a cube" else 2))
    variance = s.apply("reduceMean", square, axes=[1], keep_dimensions=True)
    y = s.apply("div", d, s.apply("sqrt", s.apply("add", variance, number(s, 1e-5))))
    after = recognise_normalization(s.graph(y, variance) if "output" in what else s.graph(y))
    assert "layerNormalization" not in [node.op for node in after.nodes]


# ------------------------------------------------------------------------------------------------------------ everything


# ----------------------------------------------------------------------------------------------------- rotary embedding


def rotary(s: Sketch, x: int, cos: int, sin: int, form: str = "") -> int:
    size = s.type(x).shape[-1]
    if "split" in form:
        first, second = s.apply_all("split", [x], splits=2, axis=3)
    else:
        sizes = (*s.type(x).shape[:-1], size // 2)
        first, second = (s.apply("slice", x, starts=(0, 0, 0, start), sizes=sizes) for start in (0, size // 2))
    if "another order" in form:
        first, second = second, first
    turned = s.apply("concat", s.apply("neg", second) if "no neg" not in form else second, first, axis=3)
    straight, turned = s.apply("mul", cos, x) if "cos first" in form else s.apply("mul", x, cos), s.apply("mul", turned, sin)
    return s.apply("add", turned, straight, label="r") if "sin first" in form else s.apply("add", straight, turned, label="r")


def angles(*shape: int) -> Array:
    """Return angles, each twice in a row."""
    half = np.random.default_rng(5).uniform(0, 6, (*shape[:-1], shape[-1] // 2)).astype(np.float32)
    return np.concatenate([half, half], -1)


@pytest.mark.parametrize("form", ["", "split", "cos first", "sin first, split"])
@pytest.mark.parametrize("shape", [(2, 1, 5, 8), (1, 1, 5, 8), (5, 8), (1, 1, 1, 8), (2, 1, 1, 8)])
def test_rotary_embedding_is_recognised(form: str, shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 8))
    cos, sin = (s.constant(f(angles(*shape))) for f in (np.cos, np.sin))
    after = check(recognise_rotary_embedding, s.graph(rotary(s, x, cos, sin, form)), s.feeds, ["x.rotary_embedding"])
    assert after.nodes[0].label == "r"
    assert {after.type(v).shape[-1] for v in after.nodes[0].operands[1:]} == {4}


def test_tables_of_angles_that_are_computed_are_halved_once_for_all_layers(device: Device) -> None:
    s = Sketch()
    q, k = s.input(normal(1, 4, 6, 8)), s.input(normal(1, 2, 6, 8, seed=1))
    half = s.input(angles(1, 6, 8)[..., :4])
    both = s.apply("concat", half, half, axis=2)
    cos, sin = (
        s.apply("reshape", s.apply("mul", s.apply(op, both), number(s, 0.5)), new_shape=(1, 1, 6, 8)) for op in ("cos", "sin")
    )
    graph = s.graph(rotary(s, q, cos, sin), rotary(s, k, cos, sin, "split"))
    after = recognise_rotary_embedding(graph)
    ops = [node.op for node in after.nodes]
    assert (ops.count("x.rotary_embedding"), ops.count("slice"), ops.count("neg")) == (2, 2, 0)
    expected, found = interpret(graph, s.feeds), run_graph(device, graph, s.feeds)
    for name, wanted in expected.items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)


def test_tables_that_positions_choose_from() -> None:
    s = Sketch()
    x, positions = s.input(normal(2, 3, 5, 8)), s.input(np.array([[4, 3, 2, 1, 0], [5, 6, 7, 8, 9]], np.int32))
    chosen = (s.apply("gather", s.constant(f(angles(16, 8))), positions, axis=0) for f in (np.cos, np.sin))
    cos, sin = (s.apply("reshape", table, new_shape=(2, 1, 5, 8)) for table in chosen)
    ops = [node.op for node in recognise_rotary_embedding(s.graph(rotary(s, x, cos, sin))).nodes]
    assert "x.rotary_embedding" in ops
    assert "concat" not in ops


def test_heads_are_turned_before_they_are_told_apart() -> None:
    s = Sketch()
    x = heads(s, s.input(normal(B, T, H * D)), T)
    cos, sin = (s.constant(f(angles(B, 1, T, D))) for f in (np.cos, np.sin))
    after = check(
        recognise_rotary_embedding, s.graph(rotary(s, x, cos, sin)), s.feeds, ["x.rotary_embedding", "reshape", "transpose"]
    )
    assert after.nodes[0].attrs["heads"] == H


@pytest.mark.parametrize("what", ["another order", "no neg", "angles once", "angles of each head", "shared turn"])
def test_what_is_no_rotary_embedding(what: str) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 8))
    table = angles(2, 3 if what == "angles of each head" else 1, 5, 8)
    if what == "angles once":
        table = np.random.default_rng(6).uniform(0, 6, table.shape).astype(np.float32)
    y = rotary(s, x, s.constant(np.cos(table)), s.constant(np.sin(table)), what)
    unchanged(recognise_rotary_embedding, s.graph(y, *[n.outputs[0] for n in s.nodes[-2:-1] if what == "shared turn"]))


@pytest.mark.parametrize("shared", [1, 2])
def test_heads_that_are_turned_and_shared_are_not_moved(shared: int, device: Device) -> None:
    s = Sketch()
    count = 4

    def apart(heads: int, seed: int) -> int:
        rows = s.apply("reshape", s.input(normal(B, T, heads * 8, seed=seed)), new_shape=[B, T, heads, 8])
        return s.apply("transpose", rows, permutation=[0, 2, 1, 3])

    def expanded(x: int) -> int:
        one = s.apply("reshape", x, new_shape=[B, shared, 1, T, 8])
        return s.apply("expand", one, new_shape=[B, shared, count // shared, T, 8])

    cos, sin = (s.constant(f(angles(1, 1, T, 8))) for f in (np.cos, np.sin))
    q, k, v = (apart(heads, seed) for seed, heads in enumerate((count, shared, shared)))
    q, k = (rotary(s, x, cos, sin) for x in (q, k))
    value = s.apply("reshape", expanded(v), new_shape=[B, count, T, 8])
    weights = s.apply("softmax", s.apply("matmul", q, swapped(s, expanded(k), [B, count, 8, T])), axis=3)
    out = s.apply("transpose", s.apply("matmul", weights, value), permutation=[0, 2, 1, 3])
    graph = s.graph(s.apply("reshape", out, new_shape=[B, T, count * 8]))
    after, _ = run_passes(graph)
    assert sorted({node.op for node in after.nodes} - {"reshape"}) == ["x.attention", "x.rotary_embedding"]
    (wanted,) = interpret(graph, s.feeds).values()
    for found in (*interpret(after, s.feeds).values(), *run_graph(device, graph, s.feeds).values()):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def test_a_transformer_layer_is_few_operators(device: Device) -> None:
    s = Sketch()
    x = attention(s, "div", normal(1, 1, 1, T))
    x = s.apply("matmul", x, s.constant(normal(H * D, 8)))
    x = normalized(s, s.apply("add", x, s.constant(normal(8))), "", [2])
    graph = s.graph(gelu(s, s.apply("matmul", x, s.constant(normal(8, 8))), "div, half last"))
    after, _ = run_passes(graph)
    assert [node.op for node in after.nodes] == ["x.attention", "fused", "layerNormalization", "fused"]
    alone, _ = run_passes(graph, [p.name for p in PASSES if not p.exact])
    (found,), (wanted,) = interpret(after, s.feeds).values(), interpret(alone, s.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * float(np.max(np.abs(wanted))))
    (run,) = run_graph(device, graph, s.feeds).values()
    np.testing.assert_allclose(run, wanted, rtol=0, atol=1e-5 * float(np.max(np.abs(wanted))))
