"""A number becomes an operand by `constant` only."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    builder.add(x, 2.0)
    # refused by pyright: Argument of type "float" cannot be assigned to parameter "b" of type "MLOperand"
    # refused by mypy: Argument 2 to "add" of "BinaryOperators" has incompatible type "float"; expected "MLOperand"
