"""Keys of dictionaries are those of the specification."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.reduceMean(x, {"axes": [1], "keepDimension": True})
    # refused by pyright: "keepDimension" is an undefined item in type "MLReduceOptions"
    # refused by mypy: Extra key "keepDimension" for TypedDict "MLReduceOptions"
