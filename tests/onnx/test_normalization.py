"""Normalizations against onnxruntime, onnx's reference implementation, or numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values
from .models import MICROSOFT

IMAGES = [(2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 4, 3)]


def statistics_of(shape: tuple[int, ...], name: str = "float32") -> dict[str, np.ndarray]:
    own = {n: values(name, shape, i) for i, n in enumerate(("scale", "bias", "mean"))}
    return {**own, "variance": np.random.default_rng(4).uniform(0.3, 2, shape).astype(name)}


@pytest.mark.parametrize("opset", [7, 9, 15])
@pytest.mark.parametrize("shape", [(4, 3), *IMAGES])
def test_given_statistics(context: wn.MLContext, opset: int, shape: tuple[int, ...]) -> None:
    inputs = {"x": values("float32", shape, 9), **statistics_of((3,))}
    agree(context, "BatchNormalization", inputs, {"epsilon": 1e-3}, opset=opset)


def test_statistics_of_each_element(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (2, 3, 4), 9), **statistics_of((3, 4))}
    x, scale, bias, mean, variance = inputs.values()
    expected = scale * (x - mean) / np.sqrt(variance + np.float32(1e-5)) + bias
    agree(context, "BatchNormalization", inputs, {"spatial": 0}, opset=7, expected=[expected])


@pytest.mark.parametrize("shape", [(6, 3), *IMAGES])
def test_training(context: wn.MLContext, shape: tuple[int, ...]) -> None:
    inputs = {"x": values("float32", shape, 9), **statistics_of((3,))}
    attributes = {"training_mode": 1, "momentum": 0.7}
    agree(context, "BatchNormalization", inputs, attributes, opset=15, outputs=3, oracle="reference")


def test_types_that_differ(context: wn.MLContext) -> None:
    inputs = {"x": values("float16", (2, 3, 4), 9), **statistics_of((3,))}
    agree(context, "BatchNormalization", inputs, opset=15, oracle="reference", atol=1e-2)


@pytest.mark.parametrize("shape", IMAGES)
def test_instances(context: wn.MLContext, shape: tuple[int, ...]) -> None:
    inputs = {"x": values("float32", shape), "scale": values("float32", (3,), 1), "bias": values("float32", (3,), 2)}
    agree(context, "InstanceNormalization", inputs, {"epsilon": 1e-2}, opset=7)


@pytest.mark.parametrize(("opset", "size"), [(18, 3), (21, 6)])
@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 3, 4)])
def test_groups(context: wn.MLContext, opset: int, size: int, shape: tuple[int, ...]) -> None:
    inputs = {"x": values("float32", shape), "scale": values("float32", (size,), 1), "bias": values("float32", (size,), 2)}
    groups = inputs["x"].reshape(2, 3, -1)
    apart = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + np.float32(1e-5))
    scale, bias = (inputs[n].reshape(1, 3, -1) for n in ("scale", "bias"))
    if opset == 18:
        expected = apart * scale + bias
    else:
        per_channel = [inputs[n].reshape(1, 6, *[1] * (len(shape) - 2)) for n in ("scale", "bias")]
        expected = apart.reshape(shape) * per_channel[0] + per_channel[1]
    agree(context, "GroupNormalization", inputs, {"num_groups": 3}, opset=opset, expected=[expected.reshape(shape)])


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
def test_groups_with_swish(context: wn.MLContext, last: int, activation: int) -> None:
    x = values("float32", (2, 4, 3, 6))
    scale, bias = values("float32", (6,), 1), values("float32", (6,), 2)
    groups = x.transpose(0, 3, 1, 2).reshape(2, 3, -1)
    apart = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + np.float32(1e-5))
    expected = apart.reshape(2, 6, 4, 3).transpose(0, 2, 3, 1) * scale + bias
    expected = expected / (1 + np.exp(-expected)) if activation else expected
    if not last:
        x, expected = x.transpose(0, 3, 1, 2).copy(), expected.transpose(0, 3, 1, 2)
    attributes = {"groups": 3, "activation": activation, "channels_last": last}
    inputs = {"x": x, "scale": scale, "bias": bias}
    agree(context, "GroupNorm", inputs, attributes, domain=MICROSOFT, expected=[expected])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(2, 4, 3, 2), (1, 7, 2, 2)])
def test_local_responses(context: wn.MLContext, size: int, shape: tuple[int, ...]) -> None:
    x = values("float32", shape)
    padded = np.pad(x * x, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    sums = sum(padded[:, i : i + shape[1]] for i in range(size))
    expected = x / (np.float32(1.5) + np.float32(0.5) / size * sums) ** np.float32(0.6)
    attributes = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 1.5}
    agree(context, "LRN", {"x": x}, attributes, opset=13, expected=[expected])


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_layers(context: wn.MLContext, axis: int, bias: bool, name: str) -> None:
    shape = (2, 3, 5)
    inputs = {"x": values(name, shape), "scale": values(name, shape[axis:], 1)}
    if bias:
        inputs["bias"] = values(name, shape[axis:], 2)
    outputs = 3 if name == "float32" else 1
    agree(context, "LayerNormalization", inputs, {"axis": axis, "epsilon": 1e-3}, opset=17, outputs=outputs, atol=1e-2)


def test_statistics_of_halves(context: wn.MLContext) -> None:
    x, scale = values("float16", (2, 6)), values("float16", (6,), 1)
    wide = x.astype(np.float32)
    mean, inverse = wide.mean(-1, keepdims=True), 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    expected = [((wide - mean) * inverse * scale).astype(np.float16), mean, inverse.astype(np.float32)]
    agree(context, "LayerNormalization", {"x": x, "scale": scale}, opset=17, outputs=3, expected=expected, atol=1e-2)


def test_a_scale_that_is_broadcast(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (2, 3, 5)), "scale": values("float32", (3, 1), 1), "bias": values("float32", (1, 5), 2)}
    agree(context, "LayerNormalization", inputs, {"axis": 1}, opset=17, oracle="reference")


@pytest.mark.parametrize("axis", [-1, 1])
def test_root_mean_squares(context: wn.MLContext, axis: int) -> None:
    inputs = {"x": values("float32", (2, 3, 5)), "scale": values("float32", (2, 3, 5)[axis:], 1)}
    agree(context, "RMSNormalization", inputs, {"axis": axis}, opset=23, oracle="reference")


def test_simplified_layers(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (2, 3, 5)), "scale": values("float32", (5,), 1)}
    agree(context, "SimplifiedLayerNormalization", inputs, {"axis": -1, "epsilon": 1e-5}, opset=17)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("simplified", [False, True])
def test_skipped_layers(context: wn.MLContext, bias: bool, simplified: bool) -> None:
    inputs = {"x": values("float32", (2, 3, 8)), "skip": values("float32", (2, 3, 8), 1), "gamma": values("float32", (8,), 2)}
    if not simplified:
        inputs["beta"] = values("float32", (8,), 3)
    if bias:
        inputs["bias"] = values("float32", (8,), 4)
    op = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    attributes: dict[str, Any] = {"epsilon": 1e-5}
    agree(context, op, inputs, attributes, domain=MICROSOFT, outputs=[0, 3])


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization", "SkipLayerNormalization"])
def test_an_epsilon_that_no_half_holds(context: wn.MLContext, op: str) -> None:
    x, scale = np.full((2, 4), 0 if op == "RMSNormalization" else 3, np.float16), np.ones(4, np.float16)
    inputs = {"x": x, "skip": x, "scale": scale} if op.startswith("Skip") else {"x": x, "scale": scale}
    domain = MICROSOFT if op.startswith("Skip") else ""
    agree(context, op, inputs, {"epsilon": 1e-12}, opset=23, domain=domain, expected=[np.zeros((2, 4), np.float16)])


def test_root_mean_squares_of_halves(context: wn.MLContext) -> None:
    inputs = {"x": values("float16", (2, 3, 5)), "scale": values("float16", (3, 1), 1)}
    wide = inputs["x"].astype(np.float32)
    expected = wide / np.sqrt((wide * wide).mean((1, 2), keepdims=True) + 1e-5) * inputs["scale"]
    agree(context, "RMSNormalization", inputs, {"axis": 1}, opset=23, expected=[expected.astype(np.float16)])


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 0])
def test_norms(context: wn.MLContext, p: int, axis: int) -> None:
    x = values("float32", (3, 4, 2))
    x[1], x[:, 1] = 0, 0
    norm = np.linalg.norm(x, p, axis=axis, keepdims=True)
    expected = np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)
    agree(context, "LpNormalization", {"x": x}, {"p": p, "axis": axis}, opset=22, expected=[expected])


@pytest.mark.parametrize("attributes", [{}, {"axes": [0, 2]}, {"axes": [-1]}])
def test_mean_and_variance(context: wn.MLContext, attributes: dict[str, Any]) -> None:
    agree(context, "MeanVarianceNormalization", {"x": values("float32", (2, 3, 4, 2))}, attributes, opset=13)
