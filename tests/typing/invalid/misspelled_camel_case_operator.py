"""camelCase names are declared one by one."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.reduceSumm(x)
    # refused by pyright: Cannot access attribute "reduceSumm" for class "MLGraphBuilder"
    # refused by mypy: "MLGraphBuilder" has no attribute "reduceSumm"
