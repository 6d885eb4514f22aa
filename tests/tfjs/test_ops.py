"""Every call of TensorFlow.js's Ops API among the cases, with its results and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu.tfjs as tf
from tests.tfjs.calls import Case, cases, snake, with_tensors
from webnn_wgpu import eager

CLOSE = {"rtol": 2e-5, "atol": 2e-6}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_results_and_gradients_are_those_of_tensorflow_js(case: Case) -> None:
    arguments, floats = with_tensors(case.arguments)
    with eager.tape():
        found = case.call(arguments)
        gradients: list[tf.Tensor] = []
        if case.weights is not None:
            gradients = eager.gradients(tf.mul(found[0], tf.tensor(case.weights)), floats)
    for tensor, expected in zip(found, case.results, strict=True):
        assert (tensor.dtype, tensor.shape) == (str(expected.dtype), expected.shape)
        np.testing.assert_allclose(tensor.numpy().astype(np.float64), expected.astype(np.float64), **CLOSE)
    for tensor, expected in zip(gradients, case.gradients, strict=True):
        largest = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=CLOSE["rtol"], atol=CLOSE["atol"] * largest)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("squaredDifference", "squared_difference"),
        ("gatherND", "gather_nd"),
        ("isNaN", "is_nan"),
        ("basicLSTMCell", "basic_lstm_cell"),
    ],
)
def test_names_are_in_snake_case(name: str, expected: str) -> None:
    assert snake(name) == expected
    assert callable(getattr(tf, expected))
