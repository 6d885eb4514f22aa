"""Passes that recognize what exporters write: in all its forms, and nothing that only resembles it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, run_graph
from tests.unit.attention import D, H, T, attention
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import PASSES, run_passes
from webnn_wgpu.passes.gelu import recognize_gelu
from webnn_wgpu.passes.normalization import recognize_normalization
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

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
def test_gelu_is_recognized(form: str, dtype: Any) -> None:
    s = Sketch()
    x = s.input(np.linspace(-6, 6, 41).astype(dtype))
    after = check(
        recognize_gelu, s.graph(gelu(s, x, form, dtype)), s.feeds, ["gelu"], tolerance=1e-6 if dtype == np.float32 else 2e-3
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
    unchanged(recognize_gelu, s.graph(out, bell) if "output" in what else s.graph(out))


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
def test_normalization_is_recognized(form: str, axes: list[int]) -> None:
    s = Sketch()
    x = s.input(normal(2, 5, 6) * 3 + 1)
    y = normalized(s, x, form, axes)
    shape = [6 if 2 in axes else 1] if 1 not in axes else [5, 6 if 2 in axes else 1]
    y = s.apply("mul", s.constant(normal(*shape, seed=1)), y)
    op = "x.rms_normalization" if "rms" in form else "layerNormalization"
    if "rms" not in form:
        y = s.apply("add", y, s.constant(normal(*shape, seed=2)), label="norm")
    after = check(recognize_normalization, s.graph(y), s.feeds, [op], tolerance=3e-6)
    assert len(after.nodes[0].operands) == (2 if "rms" in form else 3)


def test_a_normalization_takes_only_what_has_its_shape() -> None:
    s = Sketch()
    y = normalized(s, s.input(normal(2, 5, 6)), "", [2])
    graph = s.graph(s.apply("add", s.apply("mul", y, s.constant(normal(5, 6))), s.constant(normal(6))))
    check(recognize_normalization, graph, s.feeds, ["layerNormalization", "mul", "add"], tolerance=3e-6)


@pytest.mark.parametrize("what", ["means of two kinds", "a cube", "the variance is an output", "no common axes"])
def test_what_is_no_layer_normalization(what: str) -> None:
    s = Sketch()
    x = s.input(np.abs(normal(2, 6)))
    mean = s.apply("reduceMean", x, axes=[0 if what == "no common axes" else 1], keep_dimensions=True)
    d = s.apply("sub", x, s.apply("relu", mean) if what == "means of two kinds" else mean)
    square = s.apply("pow", d, number(s, 3 if what == "a cube" else 2))
    variance = s.apply("reduceMean", square, axes=[1], keep_dimensions=True)
    y = s.apply("div", d, s.apply("sqrt", s.apply("add", variance, number(s, 1e-5))))
    after = recognize_normalization(s.graph(y, variance) if "output" in what else s.graph(y))
    assert "layerNormalization" not in [node.op for node in after.nodes]


@pytest.mark.parametrize("form", ["", "rms"])
def test_heads_are_normalized_before_they_are_told_apart(form: str) -> None:
    s = Sketch()
    x = s.apply("transpose", s.input(normal(2, T, H, D)), permutation=[0, 2, 1, 3])
    y = s.apply("mul", normalized(s, x, form, [3]), s.constant(normal(D)))
    op = "x.rms_normalization" if form == "rms" else "layerNormalization"
    check(recognize_normalization, s.graph(y), s.feeds, [op, "transpose"], tolerance=3e-6)


@pytest.mark.parametrize("what", ["other axes", "another permutation", "read twice"])
def test_normalizations_behind_a_transpose_that_stay(what: str) -> None:
    s = Sketch()
    permutation = [1, 0, 2, 3] if what == "another permutation" else [0, 2, 1, 3]
    x = s.apply("transpose", s.input(normal(2, T, H, D)), permutation=permutation)
    y = s.apply("layerNormalization", x, axes=[2, 3] if what == "other axes" else [3])
    unchanged(recognize_normalization, s.graph(y, *([x] if what == "read twice" else [])))


# ------------------------------------------------------------------------------------------------------------ everything


def test_a_transformer_layer_is_few_operators(device: Device) -> None:
    s = Sketch()
    x = attention(s, "div", normal(1, 1, 1, T))
    x = s.apply("matmul", x, s.constant(normal(H * D, 8)))
    x = normalized(s, s.apply("add", x, s.constant(normal(8))), "", [2])
    graph = s.graph(gelu(s, s.apply("matmul", x, s.constant(normal(8, 8))), "div, half last"))
    after, _ = run_passes(graph, device.target)
    assert [node.op for node in after.nodes] == ["x.attention", "fused", "layerNormalization", "fused"]
    alone, _ = run_passes(graph, device.target, [p.name for p in PASSES if not p.exact])
    (found,), (wanted,) = interpret(after, s.feeds).values(), interpret(alone, s.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * float(np.max(np.abs(wanted))))
    (run,) = run_graph(device, graph, s.feeds).values()
    np.testing.assert_allclose(run, wanted, rtol=0, atol=1e-5 * float(np.max(np.abs(wanted))))
