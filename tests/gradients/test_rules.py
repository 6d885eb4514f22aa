"""Gradients at ties and corners, of broadcast operands, with seeds, and of gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.testing import check_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ir.graph import Array


@pytest.fixture(scope="module")
def reference() -> wn.MLContext:
    return wn.ml.create_context(backend="reference")


def gradients(context: wn.MLContext, build: Callable[..., Any], *arrays: Any, order: int = 1) -> list[Array]:
    """Return the gradients of the sum of a function's result. Gradients of a higher order are those of the sum before."""
    builder = wn.MLGraphBuilder(context)
    given = {str(i): np.asarray(array, np.float32) for i, array in enumerate(arrays)}
    operands = [builder.input(name, {"dataType": "float32", "shape": a.shape}) for name, a in given.items()]
    results = [build(builder, *operands)]
    for _ in range(order):
        results = builder.gradients(results, operands)
    names = [str(i) for i in range(len(results))]
    graph = builder.build(dict(zip(names, results, strict=True)))
    found = context.compute(graph, {name: array for name, array in given.items() if name in graph.inputs})
    return [found[name] for name in names]


# Ties and corners -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min"])
def test_equal_operands_of_an_extremum_share_its_gradient(reference: wn.MLContext, name: str) -> None:
    a, b = gradients(reference, lambda b, x, y: getattr(b, name)(x, y), [1, 2, 5], [3, 2, 4])
    larger = [0, 0.5, 1]
    assert a.tolist() == (larger if name == "max" else [1 - g for g in larger])
    assert (a + b).tolist() == [1, 1, 1]


def test_equal_elements_of_a_reduction_share_its_gradient(reference: wn.MLContext) -> None:
    (found,) = gradients(reference, lambda b, x: b.reduce_max(x, axes=[1]), [[1, 4, 4, 2], [7, 7, 7, 7]])
    assert found.tolist() == [[0, 0.5, 0.5, 0], [0.25] * 4]


@pytest.mark.parametrize("whole", [True, False])
def test_the_first_largest_element_of_a_window_takes_its_gradient(reference: wn.MLContext, whole: bool) -> None:
    window = {} if whole else {"window_dimensions": [2, 2], "strides": [2, 2]}
    (found,) = gradients(reference, lambda b, x: b.max_pool2d(x, **window), np.full((1, 2, 2, 2), 3))
    assert found.tolist() == [[[[1, 0], [0, 0]]] * 2]


def test_clamp_passes_the_gradient_at_both_bounds(reference: wn.MLContext) -> None:
    (found,) = gradients(reference, lambda b, x: b.clamp(x, min_value=-1, max_value=2), [-1.5, -1, 0, 2, 2.5])
    assert found.tolist() == [0, 1, 1, 1, 0]


def test_powers_have_finite_gradients_at_0(reference: wn.MLContext) -> None:
    base, exponent = gradients(reference, lambda b, x, e: b.pow(x, e), [0, 0, -2, -2, 0], [0, 2, 2, 3, 1])
    assert base.tolist() == [0, 0, -4, 12, 1]
    assert exponent.tolist() == [0] * 5


@pytest.mark.parametrize("name", ["reduce_l2", "l2_pool2d", "reduce_l1", "abs"])
def test_the_gradient_of_a_norm_of_zeros_is_0(reference: wn.MLContext, name: str) -> None:
    (found,) = gradients(reference, lambda b, x: getattr(b, name)(x), np.zeros((1, 1, 2, 2)))
    assert found.tolist() == [[[[0, 0], [0, 0]]]]


def test_a_product_with_zeros_has_the_products_of_the_others_as_gradient(reference: wn.MLContext) -> None:
    (found,) = gradients(reference, lambda b, x: b.reduce_product(x, axes=[1]), [[2, 0, 3], [0, 0, 5]])
    assert found.tolist() == [[0, 6, 0], [0, 0, 0]]


def test_updates_that_others_overwrite_have_no_gradient(reference: wn.MLContext) -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand, updates: wn.MLOperand) -> wn.MLOperand:
        return b.scatter_elements(x, b.constant(np.int32([1, 0, 1])), updates, axis=0)

    source, updates = gradients(reference, build, [1, 2, 3], [4, 5, 6])
    assert source.tolist() == [0, 0, 1]
    assert sorted(updates.tolist()) == [0, 1, 1]
    assert updates[1] == 1


@pytest.mark.parametrize("name", ["round_bfloat16", "round_float8"])
def test_roundings_to_smaller_floats_pass_the_gradient_straight_through(reference: wn.MLContext, name: str) -> None:
    (found,) = gradients(reference, lambda b, x: getattr(b.ext, name)(x), [1.1, -2.3])
    assert found.tolist() == [1, 1]


def test_the_gradient_of_gelu_has_its_digits_far_below_0(reference: wn.MLContext) -> None:
    x = np.linspace(-12, 6, 200, dtype=np.float32)
    (found,) = gradients(reference, lambda b, x: b.gelu(x), x)
    wide = x.astype(np.float64)
    cumulated = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in wide])
    expected = cumulated + wide * np.exp(-(wide**2) / 2) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# Paths ----------------------------------------------------------------------------------------------------------------


def test_gradients_of_broadcast_operands_have_their_shapes(reference: wn.MLContext) -> None:
    a, b = gradients(reference, lambda b, x, y: b.mul(x, y), np.ones((2, 1, 3)), np.full((4, 1), 2))
    assert a.tolist() == np.full((2, 1, 3), 8).tolist()
    assert b.tolist() == np.full((4, 1), 6).tolist()


def test_gradients_of_several_uses_are_added(reference: wn.MLContext) -> None:
    (found,) = gradients(reference, lambda b, x: b.add(b.mul(x, x), b.sub(x, b.sin(x))), [0, 3])
    assert found == pytest.approx([0, 7 - np.cos(3)])


def test_operands_without_influence_have_gradients_of_zeros(reference: wn.MLContext) -> None:
    found = gradients(reference, lambda b, x, y, z: b.mul(b.cast(b.arg_max(x, axes=[0]), "float32"), y), [1, 2], 3, [[4]])
    assert [g.tolist() for g in found] == [[0, 0], 1, [[0]]]


def test_the_gradient_of_an_operand_by_itself_is_the_seed(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x, seed = (builder.input(name, {"dataType": "float32", "shape": [2]}) for name in ("x", "seed"))
    own, half = builder.gradients([x, builder.linear(x, alpha=0.5)], [x, x], [seed, None])
    graph = builder.build({"own": own, "half": half})
    assert reference.compute(graph, {"seed": [3, 5]})["own"].tolist() == [3.5, 5.5]


def test_only_operators_between_operands_and_outputs_are_differentiated(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    middle = builder.floor(x)
    builder.floor(builder.mul(middle, middle))
    (found,) = builder.gradients(builder.exp(middle), middle)
    graph = builder.build({"g": found})
    assert reference.compute(graph, {"x": [0.5, 1.5]})["g"] == pytest.approx(np.exp([0, 1]))


def test_float16_stays_float16(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x, scale = (builder.input(n, {"dataType": "float16", "shape": s}) for n, s in (("x", [4, 64]), ("scale", [64])))
    found = builder.gradients(builder.layer_normalization(x, scale=scale, axes=[1]), [x, scale])
    assert [str(g.type) for g in found] == ["float16[4, 64]", "float16[64]"]


# Gradients of gradients -----------------------------------------------------------------------------------------------

SECOND: dict[str, tuple[Callable[..., Any], Callable[[Array], Array]]] = {
    "tanh": (lambda b, x: b.tanh(x), lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
    "sigmoid of square": (
        lambda b, x: b.exp(b.neg(b.mul(x, x))),
        lambda x: (4 * x**2 - 2) * np.exp(-(x**2)),
    ),
    "pow": (lambda b, x: b.pow(x, b.constant("float32", 3)), lambda x: 6 * x),
    "gelu": (lambda b, x: b.gelu(x), lambda x: (2 - x**2) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)),
    "abs": (lambda b, x: b.abs(x), np.zeros_like),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(reference: wn.MLContext, name: str) -> None:
    build, expected = SECOND[name]
    x = np.float32([0.3, -1.2, 2, 0.7])
    (found,) = gradients(reference, build, x, order=2)
    assert found == pytest.approx(expected(x.astype(np.float64)), rel=1e-5, abs=1e-6)


NETWORKS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "convolution": (
        lambda b, x, f: b.sigmoid(b.conv2d(x, f, strides=[2, 1], padding=[1, 0, 0, 1])),
        [(1, 2, 5, 4), (3, 2, 3, 2)],
    ),
    "maximum": (lambda b, x: b.exp(b.max_pool2d(x, window_dimensions=[2, 2])), [(1, 1, 4, 3)]),
    "normalization": (lambda b, x, s: b.tanh(b.layer_normalization(x, scale=s, axes=[1])), [(3, 5), (5,)]),
    "lookup": (lambda b, x: b.exp(b.gather(x, b.constant(np.int32([0, 2, 0])), axis=1)), [(2, 3)]),
    "attention": (lambda b, q, k: b.tanh(b.ext.attention(q, k, k, causal=True)), [(1, 2, 3, 4), (1, 2, 3, 4)]),
    "cell": (
        lambda b, x, w, r, h: b.exp(b.gru_cell(x, w, r, h, 2)),
        [(2, 3), (6, 3), (6, 2), (2, 2)],
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_gradients_agree_with_central_differences(name: str) -> None:
    network, shapes = NETWORKS[name]
    rng = np.random.default_rng(3)
    check_gradients(
        lambda b, *x: b.gradients(network(b, *x), x),
        [rng.standard_normal(shape).astype(np.float32) for shape in shapes],
        **({"step": 1e-3, "tolerance": 1e-3} if name == "cell" else {}),
    )
