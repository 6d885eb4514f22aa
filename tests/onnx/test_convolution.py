"""Convolutions of one to four dimensions, transposed and deformable ones, against onnxruntime or what they are defined by."""

from __future__ import annotations

from typing import Any

import pytest

import webnn_wgpu as wn

from .agreement import agree, values

CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), {"pads": [1, 2], "strides": [2]}),
    ((1, 4, 11), (6, 2, 3), {"group": 2, "dilations": [2], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 7, 6), (5, 3, 3, 2), {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}),
    ((1, 4, 8, 5), (4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER", "strides": [3, 2]}),
    ((1, 2, 6, 7), (3, 2, 2, 3), {"auto_pad": "VALID", "kernel_shape": [2, 3]}),
    ((2, 2, 5, 6, 4), (4, 2, 3, 2, 3), {"pads": [1, 0, 1, 1, 1, 0], "strides": [2, 1, 2]}),
    ((1, 6, 7, 5, 5), (4, 3, 2, 3, 1), {"group": 2, "dilations": [2, 1, 3], "auto_pad": "SAME_UPPER"}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS)
def test_convolution(context: wn.MLContext, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]) -> None:
    inputs = {"x": values("float32", x), "w": values("float32", w, 1)}
    if "strides" in attributes:
        inputs["b"] = values("float32", w[:1], 2)
    agree(context, "Conv", inputs, attributes, opset=11, rtol=1e-4)


def test_convolution_of_four_dimensions(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (1, 2, 4, 3, 5, 3)), "w": values("float32", (3, 2, 2, 2, 3, 1), 1)}
    agree(context, "Conv", inputs, {"pads": [1, 0, 1, 0, 0, 1, 1, 0]}, opset=22, oracle="reference")


@pytest.mark.parametrize("name", ["float16", "float64"])
def test_convolution_of_other_types(context: wn.MLContext, name: str) -> None:
    inputs = {"x": values(name, (1, 2, 5, 5)), "w": values(name, (3, 2, 3, 3), 1), "b": values(name, (3,), 2)}
    agree(context, "Conv", inputs, {"pads": [1, 1, 1, 1]}, opset=22, atol=2e-2, oracle="reference")


def test_weights_of_an_initializer(context: wn.MLContext) -> None:
    weights = {"w": values("float32", (4, 3, 3, 3), 1), "b": values("float32", (4,), 2)}
    agree(context, "Conv", {"x": values("float32", (1, 3, 6, 6))}, {"pads": [1] * 4}, opset=7, constants=weights)


def test_shapes_that_do_not_fit(context: wn.MLContext) -> None:
    inputs = {"x": values("float32", (1, 3, 6, 6)), "w": values("float32", (4, 2, 3, 3), 1)}
    with pytest.raises(wn.NotSupportedError, match="do not fit 1 groups"):
        agree(context, "Conv", inputs, expected=[values("float32", (1, 4, 4, 4))])


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 5), (3, 4, 3), {"strides": [2], "pads": [1, 0], "output_padding": [1]}),
    ((1, 4, 4, 3), (4, 3, 3, 2), {"strides": [2, 3], "group": 2, "dilations": [2, 1]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ((1, 2, 3, 3), (2, 2, 4, 3), {"strides": [2, 2], "output_shape": [7, 6], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 3, 4), (2, 1, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 3, 4), (2, 1, 3, 3), {"strides": [2, 1], "auto_pad": "VALID"}),
    ((1, 2, 3, 4), (2, 3, 3, 3), {"dilations": [2, 2], "strides": [2, 2], "output_padding": [1, 1], "pads": [1, 1, 1, 1]}),
    ((1, 4, 3, 2, 3), (4, 2, 3, 2, 2), {"strides": [2, 1, 3], "group": 2, "pads": [1, 0, 0, 1, 0, 1]}),
    ((1, 2, 3, 4, 2), (2, 3, 2, 3, 2), {"dilations": [2, 1, 1], "output_padding": [1, 0, 1], "strides": [2, 1, 2]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED)
def test_transposed_convolution(
    context: wn.MLContext, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    inputs = {"x": values("float32", x), "w": values("float32", w, 1)}
    if "dilations" not in attributes:
        inputs["b"] = values("float32", (w[1] * attributes.get("group", 1),), 2)
    agree(context, "ConvTranspose", inputs, attributes, opset=11, rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    [
        ((2, 4, 6, 5), (4, 2, 3, 2), {"group": 2, "offset_group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1]}),
        ((1, 2, 5, 5), (3, 2, 2, 2), {"dilations": [2, 2]}),
    ],
)
@pytest.mark.parametrize("mask", [False, True])
def test_deformable_convolution(
    context: wn.MLContext, x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], mask: bool
) -> None:
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations, groups = attributes.get("dilations", [1, 1]), attributes.get("offset_group", 1)
    out = [(x[2 + i] + pads[i] + pads[i + 2] - (w[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in (0, 1)]
    taps = w[2] * w[3] * groups
    inputs = {
        "x": values("float32", x),
        "w": values("float32", w, 1),
        "offset": values("float32", (x[0], 2 * taps, *out), 2),
        "b": values("float32", w[:1], 3),
    }
    if mask:
        inputs["mask"] = values("float32", (x[0], taps, *out), 4)
    agree(context, "DeformConv", inputs, attributes, opset=19, oracle="reference", rtol=1e-3)


@pytest.mark.parametrize("state", [False, True])
def test_causal_convolution_with_state(context: wn.MLContext, state: bool) -> None:
    inputs = {"x": values("float32", (2, 3, 5)), "w": values("float32", (3, 1, 4), 1), "b": values("float32", (3,), 2)}
    if state:
        inputs["past"] = values("float32", (2, 3, 3), 3)
    agree(context, "CausalConvWithState", inputs, {"activation": "silu"}, opset=27, outputs=2)
