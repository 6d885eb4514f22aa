"""Layers models train as in TensorFlow.js: losses and metrics by epoch, weights afterwards, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.tfjs.cases import TOLERANCE, array_of, cases, distance, written
from webnn_wgpu import train
from webnn_wgpu.tfjs import load_layers_model

WITHOUT_GRADIENT = {
    "depthwise and batch norm": "depthwise_conv2d_DepthwiseConv2D1/bias",
    "batch norm dense": "dense_Dense60/bias",
}
"""Biases before a normalization by the batch. Their gradient is 0, and Adam makes steps of its rounding errors."""

MOST_OF_ROUNDING = 0.1
"""How far such steps may lead: at most 0.01 each."""


@pytest.mark.parametrize("case", cases("fits.json"), ids=lambda c: c["name"])
def test_a_fit_is_tensorflow_js_s(case: dict[str, Any], context: wn.MLContext, tmp_path: Path) -> None:
    options = case["fit"]
    x = array_of(case["x"])
    with load_layers_model(written(case, tmp_path), context) as model:
        for name in case["frozen"]:
            model.get_layer(name).trainable = False
        model.compile(case["compile"]["optimizer"], case["compile"]["loss"], case["compile"].get("metrics", ()))
        history = model.fit(
            x,
            array_of(case["y"]),
            batch_size=options["batchSize"],
            epochs=options["epochs"],
            validation_split=options.get("validationSplit", 0),
            shuffle=False,
        ).history
        weights, predictions = model.weights(), model.predict(x)
    assert history.keys() == case["history"].keys()
    for name, values in case["history"].items():
        assert distance(history[name], values) < TOLERANCE, name
    loose = WITHOUT_GRADIENT.get(case["name"])
    for name, expected in case["weights_after"].items():
        if loose is not None and (name == loose or name.endswith("/moving_mean")):
            assert np.abs(weights[name] - array_of(expected)).max() < MOST_OF_ROUNDING, name
        else:
            assert distance(weights[name], array_of(expected)) < TOLERANCE, name
    if loose is None:
        assert distance(predictions, array_of(case["predict_after"])) < TOLERANCE


def _loaded(context: wn.MLContext, folder: Path) -> Any:
    case = next(c for c in cases("fits.json") if c["name"] == "validation split")
    return load_layers_model(written(case, folder), context), array_of(case["x"]), array_of(case["y"])


def test_a_trained_model_is_saved_and_goes_on(context: wn.MLContext, tmp_path: Path) -> None:
    model, x, y = _loaded(context, tmp_path)
    with model:
        with pytest.raises(wn.InvalidStateError, match="compiled first"):
            model.fit(x, y)
        model.compile(train.Adam(learning_rate=0.05), "mean_squared_error", ["mae"])
        first = model.fit(x, y, epochs=3, seed=1).history["loss"]
        assert model.evaluate(x, y)["loss"] < first[0]
        model.save(tmp_path / "after")
        predictions = model.predict(x)
    with load_layers_model(tmp_path / "after" / "model.json", context) as again:
        assert np.allclose(again.predict(x), predictions, atol=1e-6)


def test_frozen_layers_stay(context: wn.MLContext, tmp_path: Path) -> None:
    model, x, y = _loaded(context, tmp_path)
    with model:
        before = model.weights()
        model.layers[0].trainable = False
        model.compile("adam", "meanSquaredError")
        model.fit(x, y, epochs=1)
        after = model.weights()
    changed = {n for n in before if not np.array_equal(before[n], after[n])}
    assert changed == set(model.layers[1].weights)


def test_unknown_names_are_refused(context: wn.MLContext, tmp_path: Path) -> None:
    model, x, y = _loaded(context, tmp_path)
    with model:
        with pytest.raises(wn.MLTypeError, match="unknown optimizer"):
            model.compile("best", "meanSquaredError")
        with pytest.raises(wn.MLTypeError, match="unknown loss"):
            model.compile("sgd", "small")
        with pytest.raises(wn.MLTypeError, match="unknown metric"):
            model.compile("sgd", "meanSquaredError", ["good"])
        with pytest.raises(wn.MLTypeError, match="unknown option"):
            model.compile({"class_name": "SGD", "config": {"beta": 1}}, "meanSquaredError")
        model.compile("sgd", "meanSquaredError")
        with pytest.raises(wn.MLTypeError, match="as many rows"):
            model.fit(x, y[:3])
