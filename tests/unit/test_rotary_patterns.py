"""Rotary embedding is recognized in all forms that exporters write, and in nothing that only resembles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, run_graph
from tests.unit.attention import B, D, H, T, angles, heads, rotary, swapped
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.rotary import recognize_rotary_embedding
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


@pytest.mark.parametrize("form", ["", "split", "cos first", "sin first, split"])
@pytest.mark.parametrize("shape", [(2, 1, 5, 8), (1, 1, 5, 8), (5, 8), (1, 1, 1, 8), (2, 1, 1, 8)])
def test_rotary_embedding_is_recognized(form: str, shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 8))
    cos, sin = (s.constant(f(angles(*shape))) for f in (np.cos, np.sin))
    after = check(recognize_rotary_embedding, s.graph(rotary(s, x, cos, sin, form)), s.feeds, ["x.rotary_embedding"])
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
    after = recognize_rotary_embedding(graph)
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
    ops = [node.op for node in recognize_rotary_embedding(s.graph(rotary(s, x, cos, sin))).nodes]
    assert "x.rotary_embedding" in ops
    assert "concat" not in ops


def test_heads_are_turned_before_they_are_told_apart() -> None:
    s = Sketch()
    x = heads(s, s.input(normal(B, T, H * D)), T)
    cos, sin = (s.constant(f(angles(B, 1, T, D))) for f in (np.cos, np.sin))
    after = check(
        recognize_rotary_embedding, s.graph(rotary(s, x, cos, sin)), s.feeds, ["x.rotary_embedding", "reshape", "transpose"]
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
    unchanged(recognize_rotary_embedding, s.graph(y, *[n.outputs[0] for n in s.nodes[-2:-1] if what == "shared turn"]))


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
    after, _ = run_passes(graph, device.target)
    assert sorted({node.op for node in after.nodes} - {"reshape"}) == ["x.attention", "x.rotary_embedding"]
    (wanted,) = interpret(graph, s.feeds).values()
    for found in (*interpret(after, s.feeds).values(), *run_graph(device, graph, s.feeds).values()):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


def pairs(s: Sketch, x: int, form: str) -> int:
    """Return [-x[1], x[0], -x[3], x[2], ...] of the last dimension."""
    shape = s.type(x).shape
    *outer, size = shape
    if form == "split":
        apart = s.apply("reshape", x, new_shape=[*outer, size // 2, 2])
        even, odd = s.apply_all("split", (apart,), splits=2, axis=len(outer) + 1)
        odd = s.apply("neg", odd)
    else:
        even, odd = (
            s.apply("slice", x, starts=[0] * len(outer) + [i], sizes=[*outer, size - 1], strides=[1] * len(outer) + [2])
            for i in ((1, 0) if form == "odd first" else (0, 1))
        )
        even, odd = (s.apply("reshape", p, new_shape=[*outer, size // 2, 1]) for p in (even, s.apply("neg", odd)))
    both = s.apply("concat", *((even, odd) if form == "no turn" else (odd, even)), axis=len(outer) + 1)
    return s.apply("reshape", both, new_shape=shape)


def in_pairs(s: Sketch, x: int, cos: int, sin: int, form: str = "") -> int:
    return s.apply("add", s.apply("mul", x, cos), s.apply("mul", pairs(s, x, form), sin), label="r")


def neighbors(*shape: int) -> Array:
    """Return angles, each twice, one next to the other."""
    return np.repeat(angles(*shape)[..., : shape[-1] // 2], 2, -1)


@pytest.mark.parametrize("form", ["", "split"])
@pytest.mark.parametrize("shape", [(2, 1, 5, 8), (5, 8), (1, 1, 1, 8)])
def test_pairs_that_are_neighbors(form: str, shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 8))
    cos, sin = (s.constant(f(neighbors(*shape))) for f in (np.cos, np.sin))
    after = check(recognize_rotary_embedding, s.graph(in_pairs(s, x, cos, sin, form)), s.feeds, ["x.rotary_embedding"])
    assert after.nodes[0].attrs["interleaved"]


@pytest.mark.parametrize("how", ["expand", "concat"])
def test_tables_of_neighbors_that_are_computed(how: str) -> None:
    s = Sketch()
    x, once = s.input(normal(2, 3, 5, 8)), s.input(angles(5, 8)[:, :4, None])
    twice = s.apply("expand", once, new_shape=[5, 4, 2]) if how == "expand" else s.apply("concat", once, once, axis=2)
    cos, sin = (s.apply(op, s.apply("reshape", twice, new_shape=[5, 8])) for op in ("cos", "sin"))
    graph = s.graph(in_pairs(s, x, cos, sin))
    after = recognize_rotary_embedding(graph)
    assert "x.rotary_embedding" in [node.op for node in after.nodes]
    (found,), (wanted,) = interpret(after, s.feeds).values(), interpret(graph, s.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("what", ["odd first", "no turn", "tables of halves", "halves with tables of neighbors"])
def test_what_are_no_turned_neighbors(what: str) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 8))
    table = angles(5, 8) if what == "tables of halves" else neighbors(5, 8)
    cos, sin = (s.constant(f(table)) for f in (np.cos, np.sin))
    unchanged(recognize_rotary_embedding, s.graph((rotary if "halves with" in what else in_pairs)(s, x, cos, sin, what)))


@pytest.mark.parametrize("interleaved", [True, False])
def test_heads_that_are_not_yet_before_rows(interleaved: bool) -> None:
    s = Sketch()
    x = s.input(normal(2, 5, 3, 8))
    cos, sin = (s.constant(f((neighbors if interleaved else angles)(1, 5, 1, 8))) for f in (np.cos, np.sin))
    graph = s.graph((in_pairs if interleaved else rotary)(s, x, cos, sin))
    after = check(recognize_rotary_embedding, graph, s.feeds, ["reshape", "x.rotary_embedding", "reshape"])
    assert after.nodes[1].attrs["heads"] == 3


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("layout", ["by head", "transposed", "rows"])
def test_heads_of_which_a_part_is_turned(layout: str, interleaved: bool) -> None:
    s = Sketch()
    if layout == "transposed":
        x = heads(s, s.input(normal(B, T, H * 16)), T, size=16)
    else:
        x = s.input(normal(*((B, H, T, 16) if layout == "by head" else (B, T, H, 16))))
    sizes = s.type(x).shape[:-1]
    first = s.apply("slice", x, starts=[0] * 4, sizes=[*sizes, 8])
    rest = s.apply("slice", x, starts=[0, 0, 0, 8], sizes=[*sizes, 8])
    table = (neighbors if interleaved else angles)(*((1, T, 1, 8) if layout == "rows" else (1, 1, T, 8)))
    cos, sin = (s.constant(f(table)) for f in (np.cos, np.sin))
    turned = (in_pairs if interleaved else rotary)(s, first, cos, sin)
    ops = {
        "by head": ["x.rotary_embedding"],
        "transposed": ["x.rotary_embedding", "reshape", "transpose"],
        "rows": ["reshape", "x.rotary_embedding", "reshape"],
    }[layout]
    after = check(recognize_rotary_embedding, s.graph(s.apply("concat", turned, rest, axis=3)), s.feeds, ops)
    assert next(n for n in after.nodes if n.op == "x.rotary_embedding").attrs["rotary_dim"] == 8


@pytest.mark.parametrize("what", ["the rest first", "another rest", "another value", "an output"])
def test_parts_of_heads_that_stay_apart(what: str) -> None:
    s = Sketch()
    x = s.input(normal(B, H, T, 16))
    other = s.input(normal(B, H, T, 16, seed=1)) if what == "another value" else x
    first = s.apply("slice", x, starts=[0] * 4, sizes=[B, H, T, 8])
    rest = s.apply("slice", other, starts=[0, 0, 0, 7 if what == "another rest" else 8], sizes=[B, H, T, 8])
    cos, sin = (s.constant(f(angles(1, 1, T, 8))) for f in (np.cos, np.sin))
    turned = rotary(s, first, cos, sin)
    end = s.apply("concat", *((rest, turned) if what == "the rest first" else (turned, rest)), axis=3)
    graph = s.graph(end, turned) if what == "an output" else s.graph(end)
    check(recognize_rotary_embedding, graph, s.feeds, ["slice", "slice", "x.rotary_embedding", "concat"])


@pytest.mark.parametrize("op", ["mul", "div"])
def test_heads_that_are_scaled_before_they_are_turned(op: str) -> None:
    s = Sketch()
    x = s.apply(op, heads(s, s.input(normal(B, T, H * D)), T), number(s, 0.5))
    cos, sin = (s.constant(f(angles(1, 1, T, D))) for f in (np.cos, np.sin))
    check(
        recognize_rotary_embedding, s.graph(rotary(s, x, cos, sin)), s.feeds, ["x.rotary_embedding", "reshape", "transpose", op]
    )
