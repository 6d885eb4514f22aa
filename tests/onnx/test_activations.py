"""Activation functions and clipping, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

ACTIVATIONS: list[tuple[str, int, dict[str, Any]]] = [
    ("Elu", 7, {"alpha": 2.0}),
    ("Celu", 12, {"alpha": 0.7}),
    ("Selu", 7, {}),
    ("Selu", 7, {"alpha": 1.25, "gamma": 2.0}),
    ("LeakyRelu", 7, {"alpha": 0.25}),
    ("LeakyRelu", 16, {}),
    ("HardSigmoid", 7, {}),
    ("HardSigmoid", 7, {"alpha": 0.5, "beta": 0.25}),
    ("HardSwish", 14, {}),
    ("ThresholdedRelu", 10, {"alpha": 0.5}),
    ("Shrink", 9, {"bias": 0.25, "lambd": 1.5}),
    ("Shrink", 9, {}),
    ("Mish", 18, {}),
    ("Gelu", 20, {}),
    ("Gelu", 20, {"approximate": "tanh"}),
    ("Swish", 24, {"alpha": 1.5}),
    ("Swish", 24, {}),
    ("Relu", 7, {}),
    ("Sigmoid", 7, {}),
    ("Softplus", 7, {}),
    ("Softsign", 7, {}),
]
LARGE = np.array([-200, -30, -6, -3, -1.5, -0.5, -0.25, -0.0, 0, 0.25, 0.5, 1, 1.5, 3, 30, 200], np.float32)


@pytest.mark.parametrize(("op", "opset", "attributes"), ACTIVATIONS)
def test_activation(context: wn.MLContext, op: str, opset: int, attributes: dict[str, Any]) -> None:
    agree(context, op, {"x": LARGE.reshape(4, 4)}, attributes, opset, atol=1e-6)
    agree(context, op, {"x": LARGE.astype(np.float16)}, attributes, opset, oracle="reference", atol=1e-3)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        *(("Relu", name) for name in ("float32", "float16", "bfloat16", "int8", "int32", "int64")),
        *(("PRelu", name) for name in ("float32", "float16", "bfloat16", "int32", "int64", "uint32", "uint64")),
    ],
)
def test_rectifiers_in_all_types(context: wn.MLContext, op: str, name: str) -> None:
    inputs = {"x": np.arange(-6, 6).reshape(2, 3, 2).astype(dtype(name))}
    if op == "PRelu":
        inputs["slope"] = np.array([[2], [3], [4]]).astype(dtype(name))
    agree(context, op, inputs, opset=16, oracle="reference")


@pytest.mark.parametrize("name", ["int8", "uint8", "int16"])
def test_shrink_of_integers(context: wn.MLContext, name: str) -> None:
    agree(context, "Shrink", {"x": values(name, (3, 5))}, {"bias": 1.0, "lambd": 1.5}, 9)
    if name != "uint8":
        agree(context, "Shrink", {"x": values(name, (3, 5))}, {"bias": 1.5, "lambd": 20.0}, 9)
    x = np.array([5, -5, 2**40 + 1, -(2**40) - 1, 0, 3])
    agree(context, "Shrink", {"x": x}, {"bias": 2.0, "lambd": 3.5}, 9, expected=[[3, -3, 2**40 - 1, 1 - 2**40, 0, 0]])


@pytest.mark.parametrize(
    "name", ["float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
)
def test_clip(context: wn.MLContext, name: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(dtype(name))
    low, high = np.array(3).astype(dtype(name)), np.array(7).astype(dtype(name))
    for bounds in ({"low": low, "high": high}, {"low": high, "high": low}, {"low": low}):
        agree(context, "Clip", {"x": x}, opset=13, constants=bounds, oracle="reference")
        agree(context, "Clip", {"x": x, **bounds}, opset=13, oracle="reference")
    agree(context, "Clip", {"x": x, "high": high}, opset=13, order=["x", "", "high"], oracle="reference")


def test_clip_of_infinities(context: wn.MLContext) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 2, -2], np.float32)
    agree(context, "Clip", {"x": x}, {"min": -1.0}, 7)
    agree(context, "Clip", {"x": x}, {"max": 1.0}, 10)
    agree(context, "Clip", {"x": x}, opset=13, constants={"low": np.float32(-1)})
    agree(context, "Clip", {"x": x}, opset=13)


FUSED = {"Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.3], "HardSigmoid": [0.3, 0.4], "Clip": [-0.5, 0.7]}


@pytest.mark.parametrize("activation", FUSED)
def test_activations_that_onnxruntime_fused(context, activation):
    rng = np.random.default_rng(0)
    image = {"x": rng.standard_normal((2, 4, 5, 6), np.float32), "more": rng.standard_normal((2, 6, 5, 6), np.float32)}
    filters = {"w": rng.standard_normal((6, 2, 3, 3), np.float32), "b": rng.standard_normal(6, np.float32)}
    attributes = {"activation": activation, "group": 2, "pads": [1, 1, 1, 1]}
    if FUSED[activation]:
        attributes["activation_params"] = FUSED[activation]
    options = {"constants": filters, "domain": "com.microsoft"}
    agree(context, "FusedConv", image, attributes, 17, order=["x", "w", "b", "more"], **options)
    del image["more"]
    agree(context, "FusedConv", image, attributes, 17, **options)
    if activation == "Clip":
        return
    parameters = dict(zip(("activation_alpha", "activation_beta"), FUSED[activation], strict=False))
    matrix = {"w": rng.standard_normal((5, 7), np.float32), "b": rng.standard_normal(5, np.float32)}
    attributes = {"activation": activation, "transB": 1, "alpha": 0.5, **parameters}
    x = {"x": rng.standard_normal((3, 7), np.float32)}
    agree(context, "FusedGemm", x, attributes, 17, constants=matrix, domain="com.microsoft")
