"""A builder has the specification's operators and no others."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.sofmax(x)
    # refused by pyright: Cannot access attribute "sofmax" for class "MLGraphBuilder"
    # refused by mypy: "MLGraphBuilder" has no attribute "sofmax"
