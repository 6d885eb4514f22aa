"""A constant's data type is one of WebNN's."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.constant({"dataType": "float64", "shape": [1]}, b"")
    # refused by pyright: No overloads for "constant" match
    # refused by pyright: Argument of type "dict[str, str | list[int]]" cannot be assigned
    # refused by mypy: No overload variant of "constant" of "MLGraphBuilder"
