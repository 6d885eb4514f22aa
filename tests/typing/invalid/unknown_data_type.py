"""Data types are literals."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.cast(x, "float23")
    # refused by pyright: cannot be assigned to parameter "data_type" of type "OperandDataType"
    # refused by mypy: has incompatible type "Literal['float23']"
