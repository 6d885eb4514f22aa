"""Options have the names that the signature shows."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.reduce_sum(x, keepdims=True)
    # refused by pyright: No parameter named "keepdims"
    # refused by mypy: Unexpected keyword argument "keepdims" for "reduce_sum"
