"""Layers models train as in TensorFlow.js: losses and metrics by epoch, weights afterwards, predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.tfjs.cases import TOLERANCE, array_of, cases, distance, written
from webnn_wgpu import train
from webnn_wgpu.reference import interpret
from webnn_wgpu.testing.gradients import in_float64
from webnn_wgpu.tfjs import load_layers_model
from webnn_wgpu.tfjs.layers_losses import LOSSES, loss_of

WITHOUT_GRADIENT = {
    "depthwise and batch norm": (
        "depthwise_conv2d_DepthwiseConv2D1/bias",
        "batch_normalization_BatchNormalization1/moving_mean",
    ),
    "batch norm dense": ("dense_Dense60/bias", "batch_normalization_BatchNormalization2/moving_mean"),
}
"""Biases before a normalization by the batch, which takes them away with the mean, and the means that they are a part of.

Their gradient is 0. TensorFlow.js computes its rounding, of about 1e-9, and Adam divides that by its own size: the bias moves
by up to the learning rate in each step, in a direction that the order of TensorFlow.js's sums decides. No other order gives it.
"""


def farthest(case: dict[str, Any]) -> tuple[float, float]:
    """Return how far Adam's steps lead a weight at most, and how far they lead a moving mean that it is a part of.

    A step is the learning rate times mean / root of the mean square. With the weights w and u of gradients in both means, this
    is at most the root of the sum of w w / u, by the inequality of Cauchy and Schwarz.
    """
    options, fit = case["compile"]["optimizer"]["config"], case["fit"]
    steps = fit["epochs"] * -(-case["x"]["shape"][0] // fit["batchSize"])
    reach = 0.0
    for step in range(1, steps + 1):
        w, u = ((1 - beta) * beta ** np.arange(step) / (1 - beta**step) for beta in (options["beta1"], options["beta2"]))
        reach += options["learningRate"] * np.sqrt(np.sum(w * w / u))
    layers = case["artefact"]["modelTopology"]["config"]["layers"]
    momentum = next(layer["config"]["momentum"] for layer in layers if layer["class_name"] == "BatchNormalization")
    return reach, reach * (1 - momentum**steps)


@pytest.mark.parametrize("case", cases("fits.json"), ids=lambda c: c["name"])
def test_a_fit_is_tensorflow_js_s(case: dict[str, Any], context: wn.MLContext, tmp_path: Path) -> None:
    options = case["fit"]
    x = array_of(case["x"])
    expected = {name: array_of(values) for name, values in case["weights_after"].items()}
    free = WITHOUT_GRADIENT.get(case["name"], ())
    with load_layers_model(written(case, tmp_path), context) as model:
        before = model.weights()
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
        weights = model.weights()
        if free:
            # Predictions depend on the difference of the two: with those of TensorFlow.js, they are its own.
            model.set_weights({name: expected[name] for name in free})
        predictions = model.predict(x)
    assert history.keys() == case["history"].keys()
    for name, values in case["history"].items():
        assert distance(history[name], values) < TOLERANCE, name
    for name, values in expected.items():
        if name not in free:
            assert distance(weights[name], values) < TOLERANCE, name
    assert distance(predictions, array_of(case["predict_after"])) < TOLERANCE
    if free:
        bias, mean = free
        reach, of_mean = farthest(case)
        assert max(np.abs(each[bias] - before[bias]).max() for each in (weights, expected)) < reach
        assert np.abs(weights[mean] - expected[mean]).max() < 2 * of_mean


@pytest.mark.parametrize("case", [c for c in cases("fits.json") if c["name"] in WITHOUT_GRADIENT], ids=lambda c: c["name"])
def test_a_bias_before_a_normalization_has_no_gradient(case: dict[str, Any], tmp_path: Path) -> None:
    """In float64, only constants of float32 are left of it, such as the divisor of a mean: a 1e-7 of other gradients."""
    context = wn.ml.create_context(backend="reference")
    (bias, _), rows = WITHOUT_GRADIENT[case["name"]], case["fit"]["batchSize"]
    with load_layers_model(written(case, tmp_path), context) as model:
        feeds = {
            **model.weights(),
            "x": array_of(case["x"])[:rows],
            "y": array_of(case["y"])[:rows],
            "key": np.zeros(2, np.uint32),
        }
        b = wn.MLGraphBuilder(context)
        given = {n: b.input(n, a.shape, str(a.dtype)) for n, a in feeds.items()}
        (output,), _ = model.network(b, given, [given["x"]], given["key"])
    loss = b.reduce_mean(LOSSES[loss_of(case["compile"]["loss"])](b, given["y"], output))
    names = model.trainable_weights()
    gradients = b.gradients(loss, [given[name] for name in names])
    graph = in_float64(b.build(dict(zip(names, gradients, strict=True))).source)
    wide = {n: feeds[n].astype(np.float64) if feeds[n].dtype == np.float32 else feeds[n] for n in graph.inputs}
    found = {name: np.abs(array).max() for name, array in interpret(graph, wide).items()}
    others = [size for name, size in found.items() if name != bias]
    assert found[bias] < 1e-7 * max(others)
    assert min(others) > 1e-4


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
