"""Optimizers: the losses and weights that TensorFlow.js had, and the calls that they refuse."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
import webnn_wgpu.tfjs as tf
from tests.optional import TFJS
from tests.tfjs.calls import snake
from webnn_wgpu import eager

if TYPE_CHECKING:
    from collections.abc import Sequence


def optimizer_of(given: dict[str, Any]) -> tf.train.Optimizer:
    """Return the optimizer of a description in the file."""
    function = getattr(tf.train, given["class_name"].lower())
    return function(**{snake(name): value for name, value in given["config"].items()})


def fits() -> Sequence[dict[str, Any]]:
    """Return the trainings of a network of two dense layers."""
    folder = TFJS.folder()
    found = json.loads((folder / "fits.json").read_text())["cases"] if folder else []
    return [each for each in found if each["name"].startswith("mlp")]


def array(given: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.array(given["data"], np.float32).reshape(given["shape"])


@pytest.mark.parametrize("fit", fits(), ids=lambda fit: fit["name"])
def test_losses_and_weights_are_those_of_tensorflow_js(fit: dict[str, Any]) -> None:
    data = np.frombuffer(base64.b64decode(fit["weights"]), np.float32)
    variables: list[eager.Variable] = []
    start = 0
    for weight in fit["artefact"]["weightsManifest"][0]["weights"]:
        size = int(np.prod(weight["shape"]))
        variables.append(tf.variable(data[start : start + size].reshape(weight["shape"])))
        start += size
    kernel, bias, kernel2, bias2 = variables
    x, y, batch = array(fit["x"]), array(fit["y"]), fit["fit"]["batchSize"]
    optimizer = optimizer_of(fit["compile"]["optimizer"])
    before = eager.statistics().compilations
    for expected in fit["history"]["loss"]:
        costs: list[tf.Tensor] = []
        for first in range(0, len(x), batch):
            rows, target = tf.tensor(x[first : first + batch]), tf.tensor(y[first : first + batch])

            def cost(rows: tf.Tensor = rows, target: tf.Tensor = target) -> tf.Tensor:
                hidden = tf.tanh(tf.add(tf.mat_mul(rows, kernel), bias))
                return tf.losses.mean_squared_error(target, tf.add(tf.mat_mul(hidden, kernel2), bias2))

            found = optimizer.minimize(cost, True, variables)
            assert found is not None
            costs.append(found)
        assert np.mean([each.item() for each in costs]) == pytest.approx(expected, rel=3e-5)
    for variable, (name, expected) in zip(variables, fit["weights_after"].items(), strict=True):
        np.testing.assert_allclose(variable.numpy(), array(expected), rtol=1e-4, atol=2e-5, err_msg=name)
    # Factors that change with the steps cost the second one.
    assert eager.statistics().compilations - before <= 2


def test_gradients_are_applied_by_name() -> None:
    weight = tf.variable([1, 2], name="applied")
    optimizer = tf.train.sgd(0.5)
    optimizer.apply_gradients({"applied": tf.tensor([1, 1])})
    assert weight.tolist() == [0.5, 1.5]
    with pytest.raises(wn.MLTypeError, match="unknown"):
        optimizer.apply_gradients({"unknown": tf.tensor([1, 1])})


def test_variables_that_are_not_trainable_stay() -> None:
    weight, fixed = tf.variable([1.0]), tf.variable([2.0], trainable=False)
    tf.train.sgd(0.5).minimize(lambda: tf.sum(tf.mul(weight, fixed)), False, [weight, fixed])
    assert (weight.item(), fixed.item()) == (0.0, 2.0)


def test_a_cost_must_depend_on_variables() -> None:
    weight = tf.variable([1.0])
    with pytest.raises(wn.MLTypeError, match="depend"):
        tf.variable_grads(lambda: tf.scalar(1), [weight])
    with pytest.raises(wn.MLTypeError, match="scalar"):
        tf.variable_grads(lambda: tf.square(weight), [weight])


def test_states_are_freed() -> None:
    weight = tf.variable([1.0])
    optimizer = tf.train.adam()
    optimizer.minimize(lambda: tf.sum(tf.square(weight)), False, [weight])
    before = tf.memory().num_tensors
    optimizer.dispose()
    assert tf.memory().num_tensors == before - 2
