"""Layers models give the results of TensorFlow.js, and are written so that they give them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.tfjs.cases import TOLERANCE, array_of, cases, distance, written
from webnn_wgpu import train
from webnn_wgpu.frontends.tfjs.layers import LAYERS
from webnn_wgpu.tfjs import LayersModel, load_layers_model

CLASSES = (
    "TimeDistributed Bidirectional Dropout SpatialDropout1D Dense Flatten Activation RepeatVector Reshape Permute "
    "Masking ZeroPadding2D Add Multiply Average Maximum Minimum Concatenate Dot Embedding Conv2D Conv3D "
    "Conv2DTranspose Conv3DTranspose SeparableConv2D Conv1D Cropping2D UpSampling2D BatchNormalization "
    "LayerNormalization MaxPooling1D AveragePooling1D MaxPooling2D AveragePooling2D MaxPooling3D AveragePooling3D "
    "GlobalAveragePooling1D GlobalMaxPooling1D GlobalAveragePooling2D GlobalMaxPooling2D RNN SimpleRNN GRU LSTM "
    "CategoryEncoding Rescaling Resizing CenterCrop ReLU LeakyReLU PReLU ELU ThresholdedReLU Softmax ConvLSTM2D "
    "GaussianNoise GaussianDropout AlphaDropout DepthwiseConv2D InputLayer"
).split()
"""TensorFlow.js's layers, without cells, which lie in other layers, and without those of language models."""


def test_all_layers_are_there() -> None:
    assert not [name for name in CLASSES if name not in LAYERS]


@pytest.mark.parametrize("case", cases("layers.json"), ids=lambda c: c["name"])
def test_results_are_tensorflow_js_s(case: dict[str, Any], context: wn.MLContext, tmp_path: Path) -> None:
    with wn.load(written(case, tmp_path), context, fallback="error") as model:
        results = model.run({i.name: array_of(t) for i, t in zip(model.inputs, case["inputs"], strict=True)})
    for result, expected in zip(results.values(), case["outputs"], strict=True):
        assert distance(result, array_of(expected)) < TOLERANCE


def test_a_model_is_read_back(context: wn.MLContext, tmp_path: Path) -> None:
    for number, case in enumerate(cases("layers.json")[:12]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with load_layers_model(written(case, folder), context) as model:
            files = model.save(folder / "saved")
            weights = model.weights()
        assert [f.name for f in files] == ["model.json", "weights.bin"]
        with load_layers_model(folder / "saved" / "model.json", context) as again:
            assert again.weights().keys() == weights.keys()
            assert all(np.array_equal(a, weights[n]) for n, a in again.weights().items())


def test_batches_of_any_size_predict_the_same(context: wn.MLContext, tmp_path: Path) -> None:
    case = next(c for c in cases("layers.json") if c["name"] == "dense")
    x = np.random.default_rng(1).random((7, 3), np.float32)
    with load_layers_model(written(case, tmp_path), context) as model:
        assert isinstance(model, LayersModel)
        assert np.allclose(model.predict(x, batch_size=3), model.predict(x))
        assert model.count_params() == 16
        with pytest.raises(wn.MLTypeError, match="wrong shape of x"):
            model.predict(x[:, :2])


def test_weights_are_replaced(context: wn.MLContext, tmp_path: Path) -> None:
    case = next(c for c in cases("layers.json") if c["name"] == "dense")
    x = np.ones((2, 3), np.float32)
    with load_layers_model(written(case, tmp_path), context) as model:
        before = model.predict(x)
        model.set_weights({n: np.zeros_like(a) for n, a in model.weights().items()})
        assert np.abs(before).max() > 0
        assert np.abs(model.predict(x)).max() == 0
        with pytest.raises(wn.MLTypeError, match="known names"):
            model.set_weights({"no/kernel": x})


def test_random_layers_are_random_in_training_only(context: wn.MLContext, tmp_path: Path) -> None:
    case = next(c for c in cases("fits.json") if c["name"] == "regularised")
    layers = case["artefact"]["modelTopology"]["config"]["layers"]
    noise = [
        {"class_name": kind, "config": {"name": kind.lower(), "rate": 0.5, "stddev": 0.5}}
        for kind in ("Dropout", "GaussianDropout", "AlphaDropout", "GaussianNoise")
    ]
    case["artefact"]["modelTopology"]["config"]["layers"] = [layers[0], *noise, *layers[1:]]
    x, y = array_of(case["x"]), array_of(case["y"])
    with load_layers_model(written(case, tmp_path), context) as model:
        assert np.array_equal(model.predict(x), model.predict(x))
        # Steps that change next to nothing.
        model.compile(train.SGD(learning_rate=1e-9), "categoricalCrossentropy")
        losses = [model.train_on_batch(x, y)["loss"] for _ in range(8)]
        assert max(losses) - min(losses) > 1e-3
        assert np.isfinite(losses).all()
