"""`ext` has the extension operators and no others."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.ext.bitwise_nand(x, x)
    # refused by pyright: Cannot access attribute "bitwise_nand" for class "Extensions"
    # refused by mypy: "Extensions" has no attribute "bitwise_nand"
