"""Gradients that programs state, and those that they stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.gradients.test_rules import gradients
from webnn_wgpu.testing import check_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.float32([0.5, -1.5, 2.0])


@pytest.fixture(scope="module")
def reference() -> wn.MLContext:
    return wn.ml.create_context(backend="reference")


def test_a_stated_gradient_replaces_that_of_the_operators(reference: wn.MLContext) -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
        (y,) = b.with_gradient(b.floor(x), x, lambda g: b.mul(g, b.constant("float32", 3.0)))
        return b.mul(y, y)

    (found,) = gradients(reference, build, X)
    np.testing.assert_allclose(found, 6 * np.floor(X))


def test_gradients_of_several_results_and_operands_come_together(reference: wn.MLContext) -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand, y: wn.MLOperand) -> wn.MLOperand:
        both = b.with_gradient([b.add(x, y), b.sub(x, y)], [x, y], lambda g, h: [b.add(g, h), b.sub(g, h)])
        return b.add(b.mul(both[0], both[0]), both[1])

    # The second result alone, whose other gradient is zeros, too.
    for name in ("both", "one"):
        result: Callable[..., Any] = (
            build
            if name == "both"
            else lambda b, x, y: b.with_gradient([b.add(x, y), b.sub(x, y)], [x, y], lambda g, h: [b.add(g, h), b.sub(g, h)])[1]
        )
        first, second = gradients(reference, result, X, X + 1)
        of_sum = 2 * (2 * X + 1) if name == "both" else 0 * X
        np.testing.assert_allclose(first, of_sum + 1)
        np.testing.assert_allclose(second, of_sum - 1)


def test_stated_gradients_have_gradients() -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
        (sine,) = b.with_gradient(b.sin(x), x, lambda g: b.mul(g, b.cos(x)))
        return b.gradients(b.mul(sine, sine), x)[0]

    check_gradients(build, [X])


def test_other_operands_and_none_have_zeros(reference: wn.MLContext) -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand, y: wn.MLOperand) -> wn.MLOperand:
        (z,) = b.with_gradient(b.mul(x, y), x, lambda g: None)
        return b.add(z, y)

    first, second = gradients(reference, build, X, X)
    assert not first.any()
    np.testing.assert_array_equal(second, np.ones(3))


def test_a_stopped_gradient_is_that_of_a_constant(reference: wn.MLContext) -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
        # An operator without a gradient is behind the stop.
        return b.mul(b.stop_gradient(b.floor(b.mul(x, x))), x)

    (found,) = gradients(reference, build, X)
    np.testing.assert_allclose(found, np.floor(X * X))


def deep(context: wn.MLContext, feeds: dict[str, Any], again: bool) -> tuple[wn.MLGraphBuilder, dict[str, wn.MLOperand]]:
    """Return the gradients of a network of eight layers, each computed again if `again` is true."""
    b = wn.MLGraphBuilder(context)
    operands = {name: b.input(name, list(array.shape), "float32") for name, array in feeds.items()}

    def layer(x: wn.MLOperand, w: wn.MLOperand) -> wn.MLOperand:
        for _ in range(3):
            x = b.sigmoid(b.softmax(b.gelu(b.matmul(x, w)), 1))
        return x

    x, *weights = operands.values()
    for w in weights:
        x = b.recompute(lambda inner=x, w=w: layer(inner, w)) if again else layer(x, w)
    return b, dict(zip(operands, b.gradients(b.reduce_sum_square(x), list(operands.values())), strict=True))


def test_values_that_are_computed_again_take_no_memory(context: wn.MLContext) -> None:
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((256, 64)).astype(np.float32)}
    feeds |= {f"w{i}": (0.2 * rng.standard_normal((64, 64))).astype(np.float32) for i in range(8)}
    sizes: list[int] = []
    results: list[Any] = []
    for again in (False, True):
        builder, outputs = deep(context, feeds, again)
        plan = builder.plan(outputs)
        assert plan is not None
        sizes.append(plan.total_bytes)
        builder, outputs = deep(context, feeds, again)
        results.append(context.compute(builder.build(outputs), feeds))
    assert sizes[1] < 0.5 * sizes[0]
    wanted, found = results
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-6 * np.abs(array).max())


def test_parts_have_several_results_and_lie_in_parts() -> None:
    def build(b: wn.MLGraphBuilder, x: wn.MLOperand, y: wn.MLOperand) -> wn.MLOperand:
        index = b.constant(np.int32([2, 0]))

        def inner() -> wn.MLOperand:
            return b.exp(b.mul(x, y))

        def outer() -> list[wn.MLOperand]:
            z = b.recompute(inner)
            return [b.gather(b.sin(z), index), b.mul(z, x)]

        first, second = b.recompute(outer)
        # The gradient of the second result alone is zeros for the first one.
        return b.add(b.reduce_sum(second), b.reduce_sum_square(first)) if y.shape == (3,) else second

    check_gradients(build, [X / 2, X / 3])
    check_gradients(build, [X / 2, np.float32([0.3])])
    check_gradients(lambda b, x, y: b.gradients(build(b, x, y), x)[0], [X / 2, X / 3])


def test_constants_of_a_part_have_gradients(reference: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(reference)
    constant = b.constant(X)
    y = b.recompute(lambda: b.mul(constant, constant))
    graph = b.build({"gradient": b.gradients(y, constant)[0]})
    np.testing.assert_array_equal(reference.compute(graph, {})["gradient"], 2 * X)


def test_operands_without_a_gradient_do_not_matter(reference: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(reference)
    x, steps = (b.input(name, shape=[3], dtype="float32") for name in ("x", "steps"))
    y = b.recompute(lambda: b.mul(b.exp(x), b.floor(steps)))
    assert b.gradients(y, x)[0].shape == (3,)
    with pytest.raises(wn.NotSupportedError, match="floor"):
        b.gradients(y, steps)


def test_refusals(reference: wn.MLContext) -> None:
    b, other = wn.MLGraphBuilder(reference), wn.MLGraphBuilder(reference)
    x, foreign = (builder.input("x", shape=[3], dtype="float32") for builder in (b, other))
    with pytest.raises(wn.MLTypeError, match="with_gradient: results must belong to this builder"):
        b.with_gradient(foreign, x, lambda g: g)
    with pytest.raises(wn.MLTypeError, match="with_gradient: operands must not be empty"):
        b.with_gradient(x, [], lambda g: g)
    with pytest.raises(wn.MLTypeError, match="stop_gradient: input must hold floats"):
        b.stop_gradient(b.cast(x, "int32"))
    with pytest.raises(wn.MLTypeError, match="recompute: results must hold floats"):
        b.recompute(lambda: b.cast(x, "int32"))
    for rule, words in (
        (lambda g: [g, g], "one item for each operand"),
        (b.reduce_sum, "operands of the types of operands"),
        (lambda g: 3, "operands of the types of operands"),
    ):
        (y,) = b.with_gradient(b.exp(x), x, rule)
        with pytest.raises(wn.MLTypeError, match=words):
            b.gradients(y, x)
