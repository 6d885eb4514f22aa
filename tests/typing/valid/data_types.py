"""Data types as names, in variables of the right type, and as numpy has them."""

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu.typing import MLOperandDataType

NAMES: tuple[MLOperandDataType, ...] = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8")


def converted(x: wn.MLOperand, data_type: MLOperandDataType) -> wn.MLOperand:
    return x.builder.cast(x, data_type)


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [2], dtype=np.float16)
    y = builder.input("y", {"dataType": np.dtype(np.int32), "shape": 2})
    assert (x.data_type, y.data_type) == ("float16", "int32")
    assert [converted(x, name).data_type for name in NAMES] == list(NAMES)
    assert builder.ext.bitcast(y, "uint32").data_type == "uint32"
