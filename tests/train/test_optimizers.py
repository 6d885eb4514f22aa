"""Each optimizer, step by step, against formulas in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.train import formulas
from webnn_wgpu import train

if TYPE_CHECKING:
    from collections.abc import Mapping

CASES: Mapping[str, tuple[train.Optimizer, str, Mapping[str, Any]]] = {
    "sgd": (train.SGD(learning_rate=0.1), "sgd", {"lr": 0.1}),
    "sgd-decay": (train.SGD(learning_rate=0.1, weight_decay=0.3), "sgd", {"lr": 0.1, "decay": 0.3}),
    "momentum": (train.SGD(learning_rate=0.1, momentum=0.8), "sgd", {"lr": 0.1, "momentum": 0.8}),
    "nesterov": (
        train.SGD(learning_rate=0.1, momentum=0.8, nesterov=True, weight_decay=0.1),
        "sgd",
        {"lr": 0.1, "momentum": 0.8, "nesterov": True, "decay": 0.1},
    ),
    "adam": (train.Adam(learning_rate=0.05), "adam", {"lr": 0.05}),
    "adam-options": (
        train.Adam(learning_rate=0.05, beta1=0.7, beta2=0.9, epsilon=0.1, weight_decay=0.2),
        "adam",
        {"lr": 0.05, "beta1": 0.7, "beta2": 0.9, "eps": 0.1, "decay": 0.2},
    ),
    "adamw": (train.AdamW(learning_rate=0.05), "adamw", {"lr": 0.05}),
    "adamw-decay": (train.AdamW(learning_rate=0.05, weight_decay=0.5), "adamw", {"lr": 0.05, "decay": 0.5}),
    "adamax": (train.Adamax(learning_rate=0.05, beta2=0.6), "adamax", {"lr": 0.05, "beta2": 0.6}),
    "adagrad": (train.Adagrad(learning_rate=0.1, weight_decay=0.1), "adagrad", {"lr": 0.1, "decay": 0.1}),
    "adadelta": (train.Adadelta(epsilon=0.01), "adadelta", {"eps": 0.01}),
    "rmsprop": (train.RMSProp(learning_rate=0.02, alpha=0.9), "rmsprop", {"lr": 0.02, "alpha": 0.9}),
    "rmsprop-centered": (
        train.RMSProp(learning_rate=0.02, alpha=0.9, momentum=0.5, centered=True, epsilon=0.01),
        "rmsprop",
        {"lr": 0.02, "alpha": 0.9, "momentum": 0.5, "centered": True, "eps": 0.01},
    ),
    "lion": (train.Lion(learning_rate=0.03, weight_decay=0.2), "lion", {"lr": 0.03, "decay": 0.2}),
}
STEPS = 6
START = np.random.default_rng(3).uniform(0.2, 2, (3, 5)).astype(np.float32)
CURVATURE = np.random.default_rng(4).uniform(-2, 2, (3, 5)).astype(np.float32)


def quartic(b: wn.MLGraphBuilder, p: Mapping[str, wn.MLOperand], i: Mapping[str, wn.MLOperand]) -> wn.MLOperand:
    """A loss whose gradient by "w" is c * w + w ** 3. "offset" is a scalar with a gradient of 3."""
    square = b.mul(p["w"], p["w"])
    half = b.add(b.mul(i["c"], square), b.mul(b.constant("float32", 0.5), b.mul(square, square)))
    loss = b.mul(b.constant("float32", 0.5), b.reduce_sum(half))
    return b.add(loss, b.mul(b.constant("float32", 3), p["offset"]))


def quartic_step(context: wn.MLContext, optimizer: train.Optimizer) -> train.Step:
    inputs: Mapping[str, Any] = {"c": {"dataType": "float32", "shape": [3, 5]}}
    return train.Step(context, quartic, {"w": START, "offset": np.array(0.5)}, optimizer, inputs=inputs)


def gradient(w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return CURVATURE * w + w**3


@pytest.mark.parametrize("name", CASES)
def test_an_optimizer_follows_its_formula(context: wn.MLContext, name: str) -> None:
    optimizer, kind, options = CASES[name]
    expected = formulas.run(kind, START, gradient, STEPS, **options)
    offsets = formulas.run(kind, np.array(0.5), lambda _: np.array(3.0), STEPS, **options)
    with quartic_step(context, optimizer) as step:
        for wanted, offset in zip(expected, offsets, strict=True):
            step({"c": CURVATURE})
            found = step.parameters()
            assert np.abs(wanted - START).max() > 0.01
            np.testing.assert_allclose(found["w"], wanted, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(found["offset"], offset, rtol=1e-5, atol=1e-5)


def test_every_optimizer_has_a_case() -> None:
    public = {value for name in train.__all__ if isinstance(value := getattr(train, name), type)}
    kinds = {kind for kind in public if issubclass(kind, train.Optimizer) and kind is not train.Optimizer}
    assert kinds == {type(optimizer) for optimizer, _, _ in CASES.values()}
