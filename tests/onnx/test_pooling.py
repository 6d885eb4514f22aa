"""Poolings of one to three dimensions against onnxruntime, onnx's reference implementation, or numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values

SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ((1, 2, 7, 10), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]}),
    ((1, 2, 7, 10), {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 0, 1], "ceil_mode": 1}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 2, 6, 5), {"kernel_shape": [2, 3], "auto_pad": "VALID"}),
    ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 3], "strides": [2, 1, 2], "pads": [1, 1, 0, 0, 1, 1]}),
    ((1, 3, 5, 6, 7), {"kernel_shape": [3, 2, 3], "strides": [2, 2, 3], "ceil_mode": 1}),
]
DILATED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 2, 11), {"kernel_shape": [3], "dilations": [3], "strides": [2], "pads": [2, 1]}),
    ((1, 2, 9, 8), {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 1, 2, 0]}),
    ((1, 2, 6, 7, 5), {"kernel_shape": [2, 2, 3], "dilations": [3, 2, 1], "strides": [1, 2, 1]}),
]


@pytest.mark.parametrize(("x", "attributes"), [*SHAPES, *DILATED])
def test_maximum_and_its_place(context: wn.MLContext, x: tuple[int, ...], attributes: dict[str, Any]) -> None:
    # Few different elements: the first of equal ones counts.
    array = np.random.default_rng(5).integers(-3, 3, x).astype(np.float32)
    agree(context, "MaxPool", {"x": array}, attributes, opset=12, outputs=2)


@pytest.mark.parametrize("name", ["int8", "uint8"])
def test_maximum_of_integers(context: wn.MLContext, name: str) -> None:
    x = values(name, (1, 2, 5, 5)) // 100
    agree(context, "MaxPool", {"x": x}, {"kernel_shape": [3, 3], "pads": [1] * 4}, opset=12, outputs=2)


def test_maximum_of_halves(context: wn.MLContext) -> None:
    x = values("float16", (1, 2, 5, 4))
    agree(context, "MaxPool", {"x": x}, {"kernel_shape": [2, 2]}, opset=12, oracle="reference")


def test_places_by_columns(context: wn.MLContext) -> None:
    attributes = {"kernel_shape": [2, 3], "storage_order": 1, "strides": [2, 1]}
    agree(context, "MaxPool", {"x": values("float32", (2, 2, 6, 5))}, attributes, opset=12, outputs=2)


def test_places_of_what_is_not_a_number(context: wn.MLContext) -> None:
    x = np.array([[[1, np.nan, 3, 2]]], np.float32)
    expected = [np.array([[[np.nan, np.nan, 3]]], np.float32), np.array([[[1, 1, 2]]])]
    agree(context, "MaxPool", {"x": x}, {"kernel_shape": [2]}, opset=12, outputs=2, expected=expected)


@pytest.mark.parametrize(("x", "attributes"), SHAPES)
@pytest.mark.parametrize("counted", [0, 1])
def test_average(context: wn.MLContext, x: tuple[int, ...], attributes: dict[str, Any], counted: int) -> None:
    agree(context, "AveragePool", {"x": values("float32", x)}, {**attributes, "count_include_pad": counted}, opset=11)


@pytest.mark.parametrize(("x", "attributes"), DILATED)
@pytest.mark.parametrize("counted", [0, 1])
def test_average_of_dilated_windows(
    context: wn.MLContext, x: tuple[int, ...], attributes: dict[str, Any], counted: int
) -> None:
    agree(context, "AveragePool", {"x": values("float32", x)}, {**attributes, "count_include_pad": counted}, opset=19)


@pytest.mark.parametrize(("x", "attributes"), [s for s in SHAPES if "ceil_mode" not in s[1]])
@pytest.mark.parametrize("p", [1, 2, 3])
def test_root_of_powers(context: wn.MLContext, x: tuple[int, ...], attributes: dict[str, Any], p: int) -> None:
    agree(context, "LpPool", {"x": values("float32", x)}, {**attributes, "p": p}, opset=11)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("x", [(2, 3, 5), (1, 2, 4, 3), (1, 2, 3, 4, 2)])
def test_whole_images(context: wn.MLContext, op: str, x: tuple[int, ...]) -> None:
    for p in (1, 2, 3) if op == "GlobalLpPool" else (0,):
        agree(context, op, {"x": values("float32", x)}, {"p": p} if p else {}, opset=7)


@pytest.mark.parametrize("wanted", [None, [1, 2, 6, 5]])
def test_what_undoes_a_maximum(context: wn.MLContext, wanted: list[int] | None) -> None:
    x, places = values("float32", (1, 2, 2, 2)), np.array([0, 3, 10, 15, 17, 22, 24, 31]).reshape(1, 2, 2, 2)
    constants = {} if wanted is None else {"shape": np.array(wanted)}
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    agree(context, "MaxUnpool", {"x": x, "i": places}, attributes, opset=11, oracle="reference", constants=constants)
