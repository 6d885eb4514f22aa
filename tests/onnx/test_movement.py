"""Operators that move elements, in several versions, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

X = values("float32", (3, 4, 5))


@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]
)
def test_all_types_move(context: wn.MLContext, name: str) -> None:
    x = values(name, (2, 3, 4))
    agree(context, "Transpose", {"x": x}, {"perm": [2, 0, 1]}, 21, oracle="reference")
    agree(context, "Concat", {"a": x, "b": x[:, :1]}, {"axis": 1}, 13, oracle="reference")
    constants = {"starts": np.array([3, 0]), "ends": np.array([0, 9]), "axes": np.array([2, 1]), "steps": np.array([-1, 2])}
    agree(context, "Slice", {"x": x}, opset=13, constants=constants, oracle="reference")
    agree(context, "Tile", {"x": x}, opset=13, constants={"n": np.array([1, 2, 3])}, oracle="reference")
    agree(context, "Pad", {"x": x}, {"mode": "edge"}, 21, constants={"pads": np.array([0, 1, 2, 1, 0, 0])}, oracle="reference")


def test_reshaping(context: wn.MLContext) -> None:
    for sizes in ([5, 12], [0, -1], [-1], [3, 0, 1, -1], [3, 0, 5]):
        agree(context, "Reshape", {"x": X}, opset=7, constants={"shape": np.array(sizes)})
    agree(context, "Reshape", {"x": X, "shape": np.array([15, 4])}, opset=13)
    empty = np.zeros((0, 3, 4), np.float32)
    given = {"x": empty}
    agree(
        context, "Reshape", given, {"allowzero": 1}, 14, constants={"s": np.array([3, 4, 0])}, expected=[empty.reshape(3, 4, 0)]
    )
    y = X.reshape(3, 1, 4, 5, 1)
    agree(context, "Squeeze", {"x": y}, {"axes": [1]}, 7)
    agree(context, "Squeeze", {"x": y}, {"axes": [-1]}, 11)
    agree(context, "Squeeze", {"x": y}, opset=13, constants={"axes": np.array([-1, 1])})
    agree(context, "Squeeze", {"x": y}, opset=13)
    agree(context, "Unsqueeze", {"x": X}, {"axes": [0, 3]}, 7)
    agree(context, "Unsqueeze", {"x": X}, {"axes": [-1, 1]}, 11)
    agree(context, "Unsqueeze", {"x": X}, opset=13, constants={"axes": np.array([4, 0])})
    for axis in (0, 1, 3):
        agree(context, "Flatten", {"x": X}, {"axis": axis}, 9)
    agree(context, "Flatten", {"x": X}, {"axis": -1}, 13)
    agree(context, "Transpose", {"x": X}, opset=7)


def test_slicing(context: wn.MLContext) -> None:
    agree(context, "Slice", {"x": X}, {"starts": [1, -3], "ends": [9, -1], "axes": [0, 2]}, 7)
    agree(context, "Slice", {"x": X}, {"starts": [0, 1], "ends": [2, 1000]}, 9)
    for start, end, step in ((4, -6, -1), (-1, -(2**63), -2), (0, 2**63 - 1, 3), (3, 1, 1), (7, 0, -1), (-9, 2, 1)):
        constants = {"s": np.array([start]), "e": np.array([end]), "a": np.array([-1]), "t": np.array([step])}
        agree(context, "Slice", {"x": X}, opset=10 if step > 0 else 13, constants=constants)
    agree(context, "Slice", {"x": X, "s": np.array([1, 1, 1]), "e": np.array([3, 3, 3])}, opset=11)


def test_splitting(context: wn.MLContext) -> None:
    agree(context, "Split", {"x": X}, {"axis": 1, "split": [1, 3]}, 7, outputs=2)
    agree(context, "Split", {"x": X}, {"axis": -2}, 11, outputs=2)
    agree(context, "Split", {"x": X}, {"axis": 2}, 13, constants={"split": np.array([2, 0, 3])}, outputs=3)
    agree(context, "Split", {"x": X}, {"axis": 2, "num_outputs": 2}, 18, outputs=2)
    agree(context, "Split", {"x": X}, {"num_outputs": 3}, 18, outputs=3)


def test_repeating_and_joining(context: wn.MLContext) -> None:
    agree(context, "Expand", {"x": X[:, :1]}, opset=8, constants={"shape": np.array([2, 1, 4, 1])})
    agree(context, "Expand", {"x": np.array(2.5, np.float32), "shape": np.array([2, 3])}, opset=13)
    agree(context, "Tile", {"x": X, "repeats": np.array([2, 1, 3])}, opset=7)
    parts: dict[str, Any] = {"a": X, "b": np.zeros((3, 0, 5), np.float32), "c": X[:, :2]}
    agree(context, "Concat", parts, {"axis": 1}, 7)
    agree(context, "Concat", {"a": X, "b": X}, {"axis": -1}, 11)


def test_padding(context: wn.MLContext) -> None:
    pads = [1, 0, 2, 0, 3, 1]
    for mode in ("constant", "reflect", "edge"):
        agree(context, "Pad", {"x": X}, {"mode": mode, "pads": pads}, 7)
        agree(context, "Pad", {"x": X}, {"mode": mode}, 13, constants={"pads": np.array(pads)})
    agree(context, "Pad", {"x": X}, {"mode": "wrap"}, 19, constants={"pads": np.array(pads)})
    agree(context, "Pad", {"x": X}, {"pads": pads, "value": 1.5}, 7)
    agree(context, "Pad", {"x": X}, opset=11, constants={"pads": np.array([0, -1, 1, 1, 2, -3]), "value": np.float32(-2)})
    constants = {"pads": np.array([1, 2]), "value": np.array(7, np.float32), "axes": np.array([-2])}
    agree(context, "Pad", {"x": X}, opset=18, constants=constants)
    agree(
        context,
        "Pad",
        {"x": np.arange(6).reshape(2, 3)},
        opset=13,
        constants={"pads": np.array([0, 1, 1, 0]), "v": np.array(9)},
    )


def test_triangles_and_blocks(context: wn.MLContext) -> None:
    for upper in (0, 1):
        for k in (-2, 0, 1):
            agree(context, "Trilu", {"x": X}, {"upper": upper}, 14, constants={"k": np.array(k)})
    agree(context, "Trilu", {"x": X > 0}, opset=14)
    image = values("float32", (2, 8, 4, 6))
    agree(context, "DepthToSpace", {"x": image}, {"blocksize": 2}, 7)
    for mode in ("DCR", "CRD"):
        agree(context, "DepthToSpace", {"x": image}, {"blocksize": 2, "mode": mode}, 11)
        # Blocks of channels in the other order came with version 28.
        agree(context, "SpaceToDepth", {"x": image}, {"blocksize": 2, "mode": mode}, 28, oracle="reference")
    agree(context, "SpaceToDepth", {"x": image}, {"blocksize": 2}, 7)


@pytest.mark.parametrize("name", ["int4", "uint2", "float8_e5m2", "float4_e2m1fn"])
def test_narrow_types_move(context: wn.MLContext, name: str) -> None:
    x = (np.arange(12).reshape(3, 4) % 3).astype(np.float32).astype(dtype(name))
    agree(context, "Transpose", {"x": x}, opset=25, oracle="reference")
    agree(context, "Reshape", {"x": x}, opset=25, constants={"shape": np.array([2, 6])}, oracle="reference")
