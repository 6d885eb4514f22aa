"""An operand has a few attributes and no others."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    print(x.dtype)
    # refused by pyright: Cannot access attribute "dtype" for class "MLOperand"
    # refused by mypy: "MLOperand" has no attribute "dtype"
