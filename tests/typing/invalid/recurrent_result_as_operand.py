"""`gru` returns a list, also where it has one item."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    hidden = builder.gru(x, x, x, 2, 4)
    builder.relu(hidden)
    # refused by pyright: No overloads for "relu" match
    # refused by pyright: Argument of type "list[MLOperand]" cannot be assigned to parameter "input"
    # refused by mypy: No overload variant of "relu" of "PiecewiseActivations" matches argument type "list[MLOperand]"
