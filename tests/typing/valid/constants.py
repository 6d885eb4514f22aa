"""Every form of `constant`."""

from typing import assert_type

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    tensor = context.create_constant_tensor({"dataType": "float32", "shape": [2]}, [1, 2])
    constants: list[wn.MLOperand] = [
        builder.constant({"dataType": "int32", "shape": [2]}, np.array([1, 2], np.int32)),
        builder.constant({"dataType": "uint4", "shape": [4]}, b"\x10\x32"),
        builder.constant("float16", 0.5),
        builder.constant("float32", np.float32(2)),
        builder.constant(type="int8", value=3),
        builder.constant(2.5),
        builder.constant(2, "int64"),
        builder.constant(value=2, data_type="uint8"),
        builder.constant(tensor),
        builder.constant(np.zeros((2, 3), np.float32)),
        builder.constant(np.zeros(6, np.float32), [2, 3], "float16"),
        builder.constant([[1, 2], [3, 4]], dtype="float32"),
        builder.constant(value=np.array([7], np.uint8), shape=[1, 1], data_type=np.uint8),
        builder.constant(0, 10, 2, "int32"),
        builder.constant(0, 1, 0.25),
    ]
    assert_type(builder.constant("float32", 1), wn.MLOperand)
    assert [constant.rank for constant in constants[-2:]] == [1, 1]
