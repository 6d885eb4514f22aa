"""Gathering, scattering and ordering, against onnxruntime or onnx's reference implementation."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, dtype, values

TYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool")


@pytest.mark.parametrize("name", TYPES)
def test_gathering(context: wn.MLContext, name: str) -> None:
    x = values(name, (3, 4, 5))
    indices = np.array([[0, -1], [2, 1]])
    agree(context, "Gather", {"x": x, "indices": indices}, {"axis": -2}, 13, oracle="reference")
    elements = np.array([[[0, -1, 2, -3, 1]]], np.int32)
    agree(context, "GatherElements", {"x": x[:1, :1], "indices": elements % 1}, {"axis": 1}, 13, oracle="reference")
    agree(context, "GatherND", {"x": x, "indices": np.array([[0, -1], [2, 3]])}, opset=13, oracle="reference")
    batched = np.array([[[3]], [[-1]], [[0]]])
    agree(context, "GatherND", {"x": x, "indices": batched}, {"batch_dims": 1}, 13, oracle="reference")


def test_gather_forms(context: wn.MLContext) -> None:
    x = values("float32", (3, 4, 5))
    agree(context, "Gather", {"x": x, "indices": np.array(-1)}, {"axis": 1}, 11)
    agree(context, "Gather", {"x": x, "indices": np.array([1, 0])}, opset=7)
    agree(context, "Gather", {"x": x}, {"axis": 2}, 13, constants={"indices": np.zeros((0, 2), np.int64)})
    agree(context, "GatherElements", {"x": x, "indices": np.array([[[0, 2]], [[-5, -1]]])}, {"axis": 2}, 13)
    agree(context, "GatherElements", {"x": x, "indices": np.array([[[0, 2, 1]]])}, opset=11)
    two = np.array([[[0, 1], [1, -1]], [[3, 4], [0, 0]], [[2, 2], [1, 1]]])
    agree(context, "GatherND", {"x": x, "indices": two}, {"batch_dims": 1}, 12)
    agree(context, "GatherND", {"x": x, "indices": two[:, :, None]}, {"batch_dims": 1}, 12)
    deep = np.arange(12).reshape(3, 4, 1) % 5
    agree(context, "GatherND", {"x": x, "indices": deep}, {"batch_dims": 2}, 12)


@pytest.mark.parametrize("name", TYPES)
def test_scattering(context: wn.MLContext, name: str) -> None:
    x = values(name, (4, 3))
    indices = np.array([[0, 3, 1], [-1, 0, 2]])
    updates = values(name, (2, 3), 5)
    agree(context, "ScatterElements", {"x": x, "indices": indices, "u": updates}, opset=18, oracle="reference")
    agree(context, "ScatterND", {"x": x, "indices": np.array([[2], [-4]]), "u": updates}, opset=18, oracle="reference")


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32", "uint8", "int64", "int16"])
def test_scattering_with_reductions(context: wn.MLContext, reduction: str, name: str) -> None:
    x = np.arange(12).reshape(4, 3).astype(dtype(name))
    indices = np.array([[0, 3, 1], [0, 3, 1], [2, -1, 2]])
    updates = np.arange(9)[::-1].reshape(3, 3).astype(dtype(name))
    attributes = {"reduction": reduction}
    agree(context, "ScatterElements", {"x": x, "indices": indices, "u": updates}, attributes, 18, oracle="reference")
    slices = np.array([[1], [1], [-1]])
    agree(context, "ScatterND", {"x": x, "indices": slices, "u": updates}, attributes, 18, oracle="reference")


def test_scatter_forms(context: wn.MLContext) -> None:
    x = values("float32", (3, 5, 4))
    u = np.arange(6, dtype=np.float32).reshape(2, 3, 1)
    indices = np.array([[[0], [3], [1]], [[2], [-1], [0]]])
    for axis in (0, 2, -1):
        places = indices % 3 if axis == 0 else indices
        agree(context, "ScatterElements", {"x": x, "indices": places, "u": u}, {"axis": axis}, 11)
    agree(context, "ScatterElements", {"x": x, "indices": indices, "u": u}, {"axis": 2, "reduction": "add"}, 16)
    agree(context, "Scatter", {"x": x, "indices": indices, "u": u}, {"axis": 2}, 9)
    nothing = {"indices": np.zeros((0, 2), np.int64), "u": np.zeros((0, 4), np.float32)}
    agree(context, "ScatterND", {"x": x}, opset=11, constants=nothing, oracle="reference")


@pytest.mark.parametrize("name", ["int64", "int32", "float32", "uint8"])
def test_one_hot(context: wn.MLContext, name: str) -> None:
    indices = np.array([[0, 2, 9], [4, 1, 3]])
    if name[0] != "u":
        indices[0, :2] = -1, -6
    for axis in (-1, 0, 1):
        constants = {"depth": np.array(5), "values": np.array([2, 7], np.float32)}
        agree(
            context,
            "OneHot",
            {"x": indices.astype(name)},
            {"axis": axis},
            11,
            constants=constants,
            oracle="exact",
            expected=[
                np.moveaxis(
                    np.where((indices[..., None] % 5 == np.arange(5)) & (np.abs(indices + 0.5) < 5.5)[..., None], 7, 2),
                    -1,
                    axis,
                ).astype(np.float32)
            ],
        )


def test_top_k(context: wn.MLContext) -> None:
    x = np.array([[3, 1, 3, 2, 0], [1, 1, 5, 5, -2], [0, -4, 0, -4, 9]], np.float32)
    for name in ("float32", "float16", "int64", "int32", "int8", "uint8", "bfloat16"):
        given = {"x": np.abs(x).astype(dtype(name))}
        agree(context, "TopK", given, opset=11, constants={"k": np.array([3])}, outputs=2, oracle="reference")
    for axis, largest in ((0, 1), (-1, 0), (1, 0)):
        attributes = {"axis": axis, "largest": largest}
        agree(context, "TopK", {"x": x}, attributes, 11, constants={"k": np.array([2])}, outputs=2)
    agree(context, "TopK", {"x": x}, {"k": 2, "axis": 0}, 9, outputs=2)
    agree(context, "TopK", {"x": x}, opset=11, constants={"k": np.array([0])}, outputs=2)


def test_reverse_sequence(context: wn.MLContext) -> None:
    x = values("float32", (4, 3, 2))
    agree(context, "ReverseSequence", {"x": x, "lengths": np.array([4, 1, 3])}, opset=10)
    lengths = np.array([3, 0, 2, 1])
    agree(context, "ReverseSequence", {"x": x, "lengths": lengths}, {"batch_axis": 0, "time_axis": 1}, 10, oracle="reference")


def test_compress_and_range(context: wn.MLContext) -> None:
    x = values("float32", (3, 4))
    condition = {"condition": np.array([True, False, True])}
    agree(context, "Compress", {"x": x}, {"axis": 1}, 11, constants=condition)
    agree(context, "Compress", {"x": x}, {"axis": -2}, 11, constants=condition)
    agree(context, "Compress", {"x": x}, opset=9, constants=condition)
    agree(context, "Compress", {"x": x}, opset=9, constants={"condition": np.zeros(2, bool)})
    agree(context, "Compress", {"x": x, **condition}, {"axis": 0}, 9, device_only=False)
    agree(context, "Range", {"start": np.array(2), "limit": np.array(11), "delta": np.array(3)}, opset=11)
    agree(context, "Range", {"start": np.float32(2), "limit": np.float32(-1), "delta": np.float32(-0.5)}, opset=11)


def test_left_to_the_host(context: wn.MLContext) -> None:
    x = np.array([[3, 0, 3], [0, 1, 1]], np.float32)
    agree(context, "NonZero", {"x": x}, opset=13, device_only=False)
    agree(context, "Unique", {"x": x}, {"axis": 1}, 11, outputs=4, device_only=False)
    with pytest.raises(wn.NotSupportedError, match="the shape of its result depends on elements"):
        agree(context, "NonZero", {"x": x}, opset=13)


def test_tensor_scatter(context: wn.MLContext) -> None:
    cache, update = values("float32", (2, 3, 5, 4)), values("float32", (2, 3, 2, 4), 1)
    given = {"cache": cache, "update": update, "places": np.array([1, 4])}
    agree(context, "TensorScatter", given, {"mode": "circular"}, 24, oracle="reference")
    given["places"] = np.array([3, 0])
    agree(context, "TensorScatter", given, opset=24, oracle="reference")
    agree(context, "TensorScatter", {"cache": cache, "update": update}, opset=24, oracle="reference")


def test_center_crop_pad(context: wn.MLContext) -> None:
    x = values("float32", (5, 4, 7))
    for shape in ([8, 1, 7], [3, 9, 4], [2, 2, 10]):
        agree(context, "CenterCropPad", {"x": x}, opset=18, constants={"shape": np.array(shape)}, oracle="reference")
    attributes = {"axes": [-1, 0]}
    agree(context, "CenterCropPad", {"x": x}, attributes, 18, constants={"shape": np.array([4, 8])}, oracle="reference")


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("outputs", [1, 4])
def test_unique_in_the_order_of_coming(context: wn.MLContext, outputs: int, axis: int | None) -> None:
    x = np.float32([[3, 1, 3, 0], [2, 1, 2, 0], [3, 1, 3, 0]])
    attributes = {"sorted": 0} if axis is None else {"sorted": 0, "axis": axis}
    agree(context, "Unique", {"x": x}, attributes, 11, outputs=outputs, device_only=False)


@pytest.mark.parametrize("centers", [0, 1])
@pytest.mark.parametrize(
    "given", ["", "most", "overlap", "least", "most overlap", "most least", "overlap least", "most overlap least"]
)
def test_boxes_with_limits_left_out(context: wn.MLContext, given: str, centers: int) -> None:
    generator = np.random.default_rng(3)
    boxes = generator.random((2, 9, 4), np.float32)
    boxes[:, 4] = boxes[:, 0]
    scores = (generator.integers(0, 5, (2, 3, 9)) / 4).astype(np.float32)  # many are equal
    limits = {"most": np.int64([4]), "overlap": np.float32([0.3]), "least": np.float32([0.25])}
    limits = {n: a for n, a in limits.items() if n in given.split()}
    order = ["boxes", "scores", *(n if n in limits else "" for n in ("most", "overlap", "least"))]
    while not order[-1]:
        order.pop()
    inputs = {"boxes": boxes, "scores": scores, **limits}
    agree(context, "NonMaxSuppression", inputs, {"center_point_box": centers}, 11, order=order, device_only=False)
