"""Gradients of recorded operations: of values that are pending or computed, of gradients, and stated ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import eager
from webnn_wgpu.eager import Tensor, ops
from webnn_wgpu.eager.engine import Engine


def test_gradients_of_gradients(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0, 3.0])
    (first,) = eager.gradients(x * x * x, [x])
    (second,) = eager.gradients(first, [x])
    (third,) = eager.gradients(second, [x])
    assert (first.tolist(), second.tolist(), third.tolist()) == ([3.0, 12.0, 27.0], [6.0, 12.0, 18.0], [6.0, 6.0, 6.0])


def test_a_tape_keeps_operations_of_computed_values(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0])
    with eager.tape():
        y = ops.exp(x)
        y.numpy()
        z = y * y
        z.numpy()
        (gradient,) = eager.gradients(z, [x])
    np.testing.assert_allclose(gradient.numpy(), 2 * np.exp([2.0, 4.0]), rtol=1e-5)


def test_without_a_tape_a_computed_value_is_a_constant(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0])
    y = ops.exp(x)
    y.numpy()
    assert eager.gradients(y, [x])[0].tolist() == [0.0, 0.0]


def test_a_tape_ends_with_its_memory(engine: Engine) -> None:
    x = eager.tensor(np.ones(64, np.float32))
    with eager.tape():
        y = x
        for _ in range(4):
            y = y + 1
            y.numpy()
    assert engine.statistics().used_bytes == 2 * 64 * 4


def test_seeds_weigh_outputs(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0])
    assert eager.gradients([x * x, x], [x], [eager.tensor([1.0, 2.0]), eager.tensor([10.0, 10.0])])[0].tolist() == [12.0, 18.0]


def test_sources_without_influence_have_zeros(engine: Engine) -> None:
    x, other = eager.tensor([1.0]), eager.tensor([[5.0, 6.0]])
    found, connected = eager.connected_gradients(x * x, [x, other])
    assert ([each.tolist() for each in found], connected) == ([[2.0], [[0.0, 0.0]]], [True, False])


def test_operators_without_a_gradient_are_named_at_the_call(engine: Engine) -> None:
    x = eager.tensor([1.5])
    with pytest.raises(wn.NotSupportedError, match="floor"):
        eager.gradients(ops.floor(x), [x])
    assert (x + 1).tolist() == [2.5]


def test_stop_gradient(engine: Engine) -> None:
    x = eager.tensor([3.0])
    assert eager.gradients(ops.stop_gradient(x) * x, [x])[0].tolist() == [3.0]


def square(factor: float) -> Callable[..., Tensor]:
    """Return a function whose stated gradient is `factor` times the argument."""

    @eager.custom_gradient
    def call(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return x * x, lambda dy: dy * x * factor

    return call


def test_stated_gradients(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0])
    (first,) = eager.gradients(ops.exp(square(10)(x)), [x])
    np.testing.assert_allclose(first.numpy(), 10 * np.float32([1, 2]) * np.exp([1.0, 4.0]), rtol=1e-5)
    (first,) = eager.gradients(square(10)(x), [x])
    (second,) = eager.gradients(first, [x])
    assert (first.tolist(), second.tolist()) == ([10.0, 20.0], [10.0, 10.0])


def test_stated_gradients_lie_within_each_other(engine: Engine) -> None:
    @eager.custom_gradient
    def outer(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return square(3)(x), lambda dy: dy * square(5)(x)

    x = eager.tensor([2.0])
    (first,) = eager.gradients(outer(x), [x])
    (second,) = eager.gradients(first, [x])
    # The gradient of the gradient is the stated one of the square within.
    assert (first.tolist(), second.tolist()) == ([4.0], [10.0])


def test_a_stated_gradient_may_use_itself(engine: Engine) -> None:
    @eager.custom_gradient
    def exponential(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return ops.exp(x), lambda dy: dy * exponential(x)

    x = eager.tensor([0.0])
    (first,) = eager.gradients(exponential(x), [x])
    (second,) = eager.gradients(first, [x])
    assert (first.tolist(), second.tolist()) == ([1.0], [1.0])


def test_stated_gradients_compile_once(engine: Engine) -> None:
    for number in range(4):
        x = eager.tensor([float(number)])
        assert eager.gradients(square(10)(x), [x])[0].tolist() == [10.0 * number]
    assert engine.statistics().compilations == 1


def test_a_stated_gradient_cannot_read_values(engine: Engine) -> None:
    @eager.custom_gradient
    def reading(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        return x * x, lambda dy: dy * float(ops.reduce_sum(dy))

    x = eager.tensor([1.0])
    with pytest.raises(wn.InvalidStateError, match="read no values"):
        eager.gradients(reading(x), [x])


def test_a_stated_gradient_must_fit(engine: Engine) -> None:
    x = eager.tensor([1.0, 2.0])
    with pytest.raises(wn.MLTypeError, match="2 items"):
        eager.gradients(eager.with_gradient(x * x, [x], lambda dy: [dy, dy]), [x])
    with pytest.raises(wn.MLTypeError, match="with_gradient"):
        eager.gradients(eager.with_gradient(x * x, [x], ops.reduce_sum), [x])


def test_integers_on_the_way_have_no_gradient(engine: Engine) -> None:
    rows, indices = eager.tensor([[1.0, 2.0], [3.0, 4.0]]), eager.tensor([1, 1, 0])
    (gradient,) = eager.gradients(ops.gather(rows, indices), [rows])
    assert gradient.tolist() == [[1.0, 1.0], [2.0, 2.0]]
