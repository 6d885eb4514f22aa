"""`split` returns a list, not an operand."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.relu(builder.split(x, 2))
    # refused by pyright: No overloads for "relu" match
    # refused by pyright: Argument of type "list[MLOperand]" cannot be assigned to parameter "input"
    # refused by mypy: No overload variant of "relu" of "PiecewiseActivations" matches argument type "list[MLOperand]"
