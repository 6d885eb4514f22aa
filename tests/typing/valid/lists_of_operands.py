"""Operators of several results return lists of operands."""

from typing import assert_type

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [4, 6], "float32")
    parts = builder.split(x, 3, axis=1)
    assert_type(parts, list[wn.MLOperand])
    first, *rest = builder.split(x, [1, 3])
    assert_type(first, wn.MLOperand)
    assert_type(rest, list[wn.MLOperand])
    assert builder.concat(parts, 1).shape == x.shape
    values, indices = builder.ext.top_k(x, 2, largest=False, indices_data_type="int32")
    assert_type(values, wn.MLOperand)
    assert indices.data_type == "int32"
    scale, zero_point = builder.ext.quantization_parameters(x)
    assert builder.quantize_linear(x, scale, zero_point).data_type == "uint8"
