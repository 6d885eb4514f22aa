"""Cells of recurrent networks."""

from __future__ import annotations

from webnn_wgpu.eager import Tensor, ops

from ._convert import TensorLike, as_floats
from .products import mat_mul


def basic_lstm_cell(
    forget_bias: TensorLike, lstm_kernel: TensorLike, lstm_bias: TensorLike, data: TensorLike, c: TensorLike, h: TensorLike
) -> list[Tensor]:
    """Return the next states of an LSTM cell: the cell state and the hidden state.

    Args:
        forget_bias: a number, added to the forget gate.
        lstm_kernel: the weights of data and hidden state, for the gates i, j, f, o.
        lstm_bias: the biases of the gates.
        data: the input of the step.
        c: the cell state.
        h: the hidden state.
    """
    cell = as_floats(c)
    joined = ops.concat([as_floats(data), as_floats(h)], 1)
    gates = ops.split(mat_mul(joined, lstm_kernel) + as_floats(lstm_bias), 4, axis=1)
    into, new, forget, out = gates
    new_c = ops.sigmoid(into) * ops.tanh(new) + cell * ops.sigmoid(forget + as_floats(forget_bias))
    return [new_c, ops.tanh(new_c) * ops.sigmoid(out)]
