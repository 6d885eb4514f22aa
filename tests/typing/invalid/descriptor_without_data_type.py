"""A descriptor has a data type."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.input("x", {"shape": [2, 3]})
    # refused by pyright: "dataType" is required in "MLOperandDescriptor"
    # refused by mypy: No overload variant of "input" of "MLGraphBuilder" matches argument types "str", "dict[str, list[int]]"
