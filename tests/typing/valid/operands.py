"""Properties of operands; shapes are tuples that are also put together with lists."""

from typing import assert_type

import webnn_wgpu as wn


def flattened(x: wn.MLOperand) -> wn.MLOperand:
    return x.builder.reshape(x, [x.shape[0], x.shape[1] * x.shape[2]])


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", shape=[2, 3, 4], data_type="float32")
    assert_type(x.builder, wn.MLGraphBuilder)
    assert_type(x.name, str | None)
    assert_type(x.shape[0], int)
    assert (x.rank, x.data_type, x.dataType(), x.shape()) == (3, "float32", "float32", (2, 3, 4))
    assert builder.reshape(x, x.shape[1:] + [2]).shape == [3, 4, 2]  # noqa: RUF005 - shapes are added to lists
    assert flattened(x).shape == (2, 12)
    same = builder.cast(builder.cast(x, "int8"), x.data_type)
    assert same.data_type == x.data_type
    zero = builder.constant(x.data_type, 0)
    assert builder.max(x, zero).shape == x.shape
