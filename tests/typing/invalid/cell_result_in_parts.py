"""`gru_cell` returns one operand."""

import webnn_wgpu as wn


def program(builder: wn.MLGraphBuilder, x: wn.MLOperand) -> None:
    _hidden, _cell = builder.gru_cell(x, x, x, x, 4)
    # refused by pyright: "MLOperand" is not iterable
    # refused by mypy: "MLOperand" object is not iterable
