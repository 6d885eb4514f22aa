"""Operators whose results follow from shapes alone, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

import numpy as np
from onnx import helper, numpy_helper

import webnn_wgpu as wn

from .agreement import agree, values

X = values("float32", (3, 4, 5))


def test_shapes_and_sizes(context: wn.MLContext) -> None:
    agree(context, "Shape", {"x": X}, opset=7)
    for start, end in ((1, 3), (-2, 9), (2, -2)):
        agree(context, "Shape", {"x": X}, {"start": start, "end": end}, 15)
    agree(context, "Size", {"x": X}, opset=7)
    agree(context, "Shape", {"x": np.zeros((2, 0), np.float32)}, opset=13)


def test_constants_of_shapes(context: wn.MLContext) -> None:
    for value in (np.array([2.5], np.float32), np.array([7]), np.array([True])):
        agree(context, "ConstantOfShape", {"s": np.array([2, 3])}, {"value": numpy_helper.from_array(value)}, 9)
    agree(context, "ConstantOfShape", {"s": np.array([2, 0])}, opset=9)
    agree(context, "ConstantOfShape", {}, opset=9, constants={"s": np.zeros(0, np.int64)})


def test_eye_like(context: wn.MLContext) -> None:
    x = np.zeros((3, 5), np.int32)
    for k in (0, -1, 2):
        agree(context, "EyeLike", {"x": x}, {"k": k}, 9)
    agree(context, "EyeLike", {"x": x}, {"dtype": helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))}, 9)


def test_dropout_outside_training(context: wn.MLContext) -> None:
    agree(context, "Dropout", {"x": X}, {"ratio": 0.4}, 7)
    agree(context, "Dropout", {"x": X}, {"ratio": 0.4}, 10, outputs=2, oracle="reference")
    constants = {"ratio": np.float32(0.3), "training": np.array(False)}
    agree(context, "Dropout", {"x": X}, opset=13, constants=constants, outputs=2)
    constants = {"ratio": np.float32(0), "training": np.array(True)}
    agree(context, "Dropout", {"x": X}, opset=13, constants=constants, outputs=2)
    agree(context, "Identity", {"x": X}, opset=7)
