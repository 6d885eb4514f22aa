"""Recurrent networks return lists, gru_cell one operand; activations are names and objects."""

from typing import assert_type

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    steps = builder.input("steps", [2, 1, 3], "float32")

    def weights(*shape: int) -> wn.MLOperand:
        return builder.constant(np.ones(shape, np.float32))

    outputs = builder.gru(steps, weights(1, 12, 3), weights(1, 12, 4), 2, 4, direction="backward", activations=["relu", "tanh"])
    assert_type(outputs, list[wn.MLOperand])
    hidden, cell = builder.lstm(steps, weights(2, 16, 3), weights(2, 16, 4), 2, 4, direction="both", layout="ifgo")
    assert hidden.shape == cell.shape == (2, 1, 4)
    x, state = builder.reshape(steps, [2, 3]), weights(2, 4)
    after = builder.gruCell(x, weights(12, 3), weights(12, 4), state, 4, {"resetAfter": False, "layout": "rzn"})
    assert_type(after, wn.MLOperand)
    both = builder.lstm_cell(
        x, weights(16, 3), weights(16, 4), after, state, 4, activations=("sigmoid", builder.softsign(), builder.tanh())
    )
    assert_type(both, list[wn.MLOperand])
