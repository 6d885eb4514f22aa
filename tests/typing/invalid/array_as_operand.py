"""An array becomes an operand by `constant` only."""

import numpy as np

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.matmul(x, np.ones((3, 3), np.float32))
    # refused by pyright: cannot be assigned to parameter "b" of type "MLOperand"
    # refused by mypy: Argument 2 to "matmul" of
