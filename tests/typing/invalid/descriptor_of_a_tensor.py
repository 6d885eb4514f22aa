"""An input's descriptor has no flags of tensors."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.input("x", {"dataType": "float32", "shape": [2], "readable": True})
    # refused by pyright: "readable" is an undefined item in type "MLOperandDescriptor"
    # refused by mypy: No overload variant of "input" of "MLGraphBuilder" matches argument types "str", "dict[str, object]"
