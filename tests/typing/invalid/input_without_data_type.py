"""An input has a shape and a data type."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.input("x", [2, 3])
    # refused by pyright: "list[int]" is not assignable to "MLOperandDescriptor"
    # refused by mypy: No overload variant of "input" of "MLGraphBuilder" matches argument types "str", "list[int]"
