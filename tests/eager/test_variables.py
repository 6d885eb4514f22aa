"""Variables: assignments, memory in place, and values that were read before."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import eager
from webnn_wgpu.eager.engine import Engine


def test_a_value_takes_the_memory_of_the_one_before(engine: Engine) -> None:
    variable = eager.Variable([1.0, 2.0])
    variable.assign(variable + 1)
    variable.numpy()
    memory = variable.ml_tensor()
    for _ in range(3):
        variable.assign(variable * 2)
        engine.evaluate()
        assert variable.ml_tensor() is memory
    assert variable.tolist() == [16.0, 24.0]


def test_values_read_before_stay(engine: Engine) -> None:
    variable = eager.Variable([1.0, 2.0])
    before = variable.read()
    product = variable * 10
    variable.assign(variable + 1)
    variable.assign(variable + 1)
    assert (before.tolist(), product.tolist(), variable.tolist()) == ([1.0, 2.0], [10.0, 20.0], [3.0, 4.0])
    again = variable.read()
    variable.assign(variable - 3)
    assert (again.tolist(), variable.tolist()) == ([3.0, 4.0], [0.0, 1.0])


def test_two_variables_can_swap(engine: Engine) -> None:
    a, b = eager.Variable([1.0]), eager.Variable([2.0])
    for _ in range(3):
        old = a.read()
        a.assign(b.read() + 0)
        b.assign(old + 0)
        del old
        engine.evaluate()
    assert (a.item(), b.item()) == (2.0, 1.0)


def test_variables_share_a_value_until_one_changes(engine: Engine) -> None:
    a = eager.Variable([1.0, 2.0])
    a.assign(a + 1)
    b = eager.Variable(a.read())
    a.assign(a + 1)
    engine.evaluate()
    assert (a.tolist(), b.tolist()) == ([3.0, 4.0], [2.0, 3.0])


def test_a_variable_keeps_its_type(engine: Engine) -> None:
    variable = eager.Variable([1.0, 2.0], name="weight")
    with pytest.raises(wn.MLTypeError, match=r"weight.*float32\[3\].*float32\[2\]"):
        variable.assign(eager.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(wn.MLTypeError, match="int32"):
        variable.assign(eager.tensor([1, 2]))
    assert variable.assign(np.float64([5, 6])).tolist() == [5.0, 6.0]


def test_a_scalar_variable_does_not_compile_anew(engine: Engine) -> None:
    count = eager.Variable(0)
    for number in range(1, 5):
        count.assign(count + 1)
        assert count.item() == number
    assert engine.statistics().compilations == 1


def test_a_training_loop_compiles_once(engine: Engine) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((16, 2)).astype(np.float32)
    target = rows @ np.float32([[2], [-3]])
    weight, momentum = (eager.Variable(np.zeros((2, 1), np.float32)) for _ in range(2))
    losses: list[eager.Tensor] = []
    for _ in range(40):
        error = eager.tensor(rows) @ weight - eager.tensor(target)
        loss = eager.ops.reduce_mean(error * error)
        (gradient,) = eager.gradients(loss, [weight])
        momentum.assign(momentum * 0.5 + gradient)
        weight.assign(weight - momentum * 0.1)
        losses.append(loss)
        del loss, error, gradient
        engine.evaluate()
    assert losses[-1].item() < 1e-4 < losses[0].item()
    np.testing.assert_allclose(weight.numpy(), [[2], [-3]], atol=0.02)
    assert engine.statistics().compilations == 1
