"""Reductions, positions of extremes, running sums and softmax, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def first_with_axes_input(name: str) -> int:
    return 13 if name == "Sum" else 18


@pytest.mark.parametrize("name", REDUCTIONS)
def test_axes_as_attribute_and_input(context: wn.MLContext, name: str) -> None:
    x = np.abs(values("float32", (3, 5, 2, 4))) + 0.5
    for axes in ([1], [-1, 0], None):
        given: dict[str, Any] = {} if axes is None else {"axes": axes}
        agree(context, f"Reduce{name}", {"x": x}, {"keepdims": 0, **given}, 11)
        constants = {} if axes is None else {"axes": np.array(axes)}
        agree(context, f"Reduce{name}", {"x": x}, opset=first_with_axes_input(name), constants=constants)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_empty_axes(context: wn.MLContext, name: str) -> None:
    x = values("float32", (3, 4))
    x = np.abs(x) if name.startswith("Log") else x
    opset = first_with_axes_input(name)
    for noop in (0, 1):
        attributes = {"noop_with_empty_axes": noop}
        agree(context, f"Reduce{name}", {"x": x}, attributes, opset, constants={"axes": np.zeros(0, np.int64)})
        agree(context, f"Reduce{name}", {"x": x}, attributes, opset)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_nothing_and_scalars(context: wn.MLContext, name: str) -> None:
    opset = first_with_axes_input(name)
    if name != "Mean":
        empty = np.zeros((2, 0, 3), np.float32)
        agree(
            context, f"Reduce{name}", {"x": empty}, opset=max(opset, 20), constants={"axes": np.array([1])}, oracle="reference"
        )
    agree(context, f"Reduce{name}", {"x": np.array(2.5, np.float32)}, opset=opset)


@pytest.mark.parametrize("name", ["L1", "L2", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
@pytest.mark.parametrize("element", ["int32", "int64", "uint32", "uint64"])
def test_integers(context: wn.MLContext, name: str, element: str) -> None:
    x = np.arange(-7, 8).reshape(3, 5) if element[0] == "i" else np.arange(15).reshape(3, 5)
    x = x.astype(element)
    # The reference implementation gives sums of squares a type of their own; onnxruntime does not know unsigned types.
    exact = {
        "L1": np.abs(x).sum(1),
        "L2": np.floor(np.sqrt((x.astype(np.float64) ** 2).sum(1))),
        "Max": x.max(1),
        "Mean": np.trunc(x.mean(1)),
        "Min": x.min(1),
        "Prod": x.prod(1, dtype=element),
        "Sum": x.sum(1),
        "SumSquare": (x * x).sum(1),
    }[name].astype(element)
    for opset in (11, first_with_axes_input(name)):
        old = {"axes": [1]} if opset == 11 else {}
        new = {} if opset == 11 else {"axes": np.array([1])}
        agree(context, f"Reduce{name}", {"x": x}, {"keepdims": 0, **old}, opset, constants=new, expected=[exact])


def test_roots_of_large_integers(context: wn.MLContext) -> None:
    x = np.array([[46341, 0], [3037000499, 0], [3037000499, 1], [94906266, 94906265], [4, 3]], np.int64)
    expected = np.array([46341, 3037000499, 3037000499, math.isqrt(94906266**2 + 94906265**2), 5])
    agree(context, "ReduceL2", {"x": x}, {"axes": [1], "keepdims": 0}, 12, expected=[expected])


@pytest.mark.parametrize("element", ["int8", "uint8", "bool", "float16", "bfloat16"])
def test_extremes_of_small_types(context: wn.MLContext, element: str) -> None:
    x = values(element, (4, 6))
    for name in ("Max", "Min"):
        agree(context, f"Reduce{name}", {"x": x}, opset=20, constants={"axes": np.array([0])}, oracle="reference")


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_extremes(context: wn.MLContext, op: str) -> None:
    x = np.array([[3, 1, 3, 2], [1, 1, 5, 5], [0, -4, 0, -4]])
    for element in ("float32", "float16", "int32", "int8", "uint8", "int64", "bfloat16"):
        given = {"x": np.abs(x).astype(dtype(element))}
        agree(context, op, given, {"axis": 1, "keepdims": 0}, 13, oracle="reference")
    for axis in (0, -1):
        for last in (0, 1):
            agree(context, op, {"x": x.astype(np.float32)}, {"axis": axis, "select_last_index": last}, 12)
    agree(context, op, {"x": x.astype(np.float32)}, opset=7)


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("element", ["float32", "float16", "int32", "uint32", "int64", "uint64"])
def test_running(context: wn.MLContext, op: str, element: str) -> None:
    x = np.array([[1, 2, 3, 2, 1], [2, 1, 2, 3, 4], [5, 2, 1, 1, 1]]).astype(element)
    opset = 14 if op == "CumSum" else 26
    for exclusive in (0, 1):
        for reverse in (0, 1):
            attributes = {"exclusive": exclusive, "reverse": reverse}
            agree(context, op, {"x": x}, attributes, opset, constants={"axis": np.array(1)}, oracle="reference")
    agree(context, op, {"x": x, "axis": np.array(-2, np.int32)}, opset=opset, oracle="reference")


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax(context: wn.MLContext, op: str) -> None:
    x = values("float32", (2, 3, 4, 5))
    x[0, 0, 0] = [1000, 0, 1000, -1000, 5]
    for opset in (7, 11, 13):
        for axis in (None, 0, 2, -1):
            if opset == 7 and axis == -1:
                continue  # negative axes came with version 11
            agree(context, op, {"x": x}, {} if axis is None else {"axis": axis}, opset, atol=1e-5)
    agree(context, op, {"x": x[0, 1].astype(np.float16)}, opset=13, oracle="reference", atol=2e-3)
