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


def test_refusals(reference: wn.MLContext) -> None:
    b, other = wn.MLGraphBuilder(reference), wn.MLGraphBuilder(reference)
    x, foreign = (builder.input("x", shape=[3], dtype="float32") for builder in (b, other))
    with pytest.raises(wn.MLTypeError, match="with_gradient: results must belong to this builder"):
        b.with_gradient(foreign, x, lambda g: g)
    with pytest.raises(wn.MLTypeError, match="with_gradient: operands must not be empty"):
        b.with_gradient(x, [], lambda g: g)
    with pytest.raises(wn.MLTypeError, match="stop_gradient: input must hold floats"):
        b.stop_gradient(b.cast(x, "int32"))
    for rule, words in (
        (lambda g: [g, g], "one item for each operand"),
        (b.reduce_sum, "operands of the types of operands"),
        (lambda g: 3, "operands of the types of operands"),
    ):
        (y,) = b.with_gradient(b.exp(x), x, rule)
        with pytest.raises(wn.MLTypeError, match=words):
            b.gradients(y, x)
