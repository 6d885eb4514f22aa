"""The forms of tensor data that `compute` and `write_tensor` take."""

import array

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu.typing import TensorData


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [2, 2], "float32")
    graph = builder.build({"y": builder.neg(x)})
    tensor = context.create_host_tensor([2, 2], "float32")
    context.write_tensor(tensor, np.ones((2, 2), np.float32))
    forms: list[TensorData] = [
        np.ones((2, 2), np.float32),
        [[1, 1], [1, 1]],
        ((1.0, 1), (1, 1)),
        np.ones(4, np.float32).tobytes(),
        memoryview(bytes(12) + b"\0\0\x80\xc0"),
        bytearray(12) + b"\0\0\x80\xc0",
        array.array("f", [1, 1, 1, 1]),
        tensor,
    ]
    for data in forms:
        assert abs(context.compute(graph, {"x": data})["y"].sum()) == 4
    one = np.float32(1)
    assert context.compute(graph, {"x": [one, one, one, one]})["y"].sum() == -4
