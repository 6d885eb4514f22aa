"""The documentation of recurrent networks and their cells."""

from __future__ import annotations

from .interfaces.documentation import RECURRENT, Documentation

_NETWORK_NUMERICS = "States are kept in float32, also for float16. Outputs are rounded once."
_CELL_NUMERICS = "Outputs are rounded once. With softmax, which is applied to a whole gate, every operator of the cell rounds."

_RESET_AFTER = (
    "Whether the reset gate is applied to the product of the hidden state with its weights, instead of to the hidden state "
    "before the product."
)
_RETURN_SEQUENCE = "Whether the hidden states of all steps are returned too."
_DIRECTION = '"forward", "backward" (from the last step to the first) or "both" (direction 0 is forward, 1 backward).'
_HIDDEN_SIZE = "The number of hidden units."
_STEPS = "The number of steps, which is the input's first dimension."

_GRU_LAYOUT = 'Order of the gates, "zrn" or "rzn": z updates, r resets, n is new.'
_GRU_ACTIVATIONS = "Two activations: for z and r, and for n. The default is sigmoid and tanh."

_LSTM_LAYOUT = 'Order of the gates, "iofg" or "ifgo": input, output, forget and cell gate.'
_LSTM_ACTIVATIONS = (
    "Three activations: for the gates i, o and f, for the cell gate g, and for the new cell state. The default is sigmoid, "
    "tanh and tanh."
)
_PEEPHOLES = (
    "for the input, the output and the forget gate, in this order for every layout. The default is 0. All three gates look "
    "at the cell state before the step."
)


def _biases(shape: str) -> dict[str, str]:
    text = f"The input's data type, with the shape {shape}. The default is 0."
    return {"bias": text, "recurrent_bias": text}


GRU = Documentation(
    group=RECURRENT,
    summary="Gated recurrent unit over all steps of a sequence, in one direction or in both.",
    arguments={
        "input": "{types}, with the shape [steps, batch, inputs].",
        "weight": (
            "The input's data type, as for all operands, with the shape [directions, 3 * hidden_size, inputs]. There are 2 "
            'directions for "both" and 1 otherwise. The gates are in the order of `layout`.'
        ),
        "recurrent_weight": "[directions, 3 * hidden_size, hidden_size].",
        "steps": _STEPS,
        "hidden_size": _HIDDEN_SIZE,
        **_biases("[directions, 3 * hidden_size]"),
        "initial_hidden_state": "[directions, batch, hidden_size]. The default is 0.",
        "reset_after": _RESET_AFTER,
        "return_sequence": _RETURN_SEQUENCE,
        "direction": _DIRECTION,
        "layout": _GRU_LAYOUT,
        "activations": _GRU_ACTIVATIONS,
    },
    returns=(
        "A list of the hidden state after the last step in each direction, [directions, batch, hidden_size], and with "
        "`return_sequence` the hidden states of all steps, [steps, directions, batch, hidden_size]. There, entry t belongs to "
        "step t of the input in every direction."
    ),
    raises=(
        "Shapes do not fit. There are not two activations, or an activation is softmax. An option is not allowed, data types "
        "differ or are not allowed"
    ),
    numerics=_NETWORK_NUMERICS,
    example="""
        >>> weight = b.constant(np.ones((1, 12, 3), np.float32))
        >>> recurrent_weight = b.constant(np.ones((1, 12, 4), np.float32))
        >>> two_steps = b.reshape(x, [2, 1, 3])
        >>> [o.shape for o in b.gru(two_steps, weight, recurrent_weight, 2, 4, return_sequence=True)]
        [(1, 1, 4), (2, 1, 1, 4)]
    """,
)

GRU_CELL = Documentation(
    group=RECURRENT,
    summary="One step of a gated recurrent unit.",
    arguments={
        "input": "{types}, with the shape [batch, inputs].",
        "weight": (
            "The input's data type, as for all operands, with the shape [3 * hidden_size, inputs]. The gates are in the order "
            "of `layout`."
        ),
        "recurrent_weight": "[3 * hidden_size, hidden_size].",
        "hidden_state": "The state before the step, [batch, hidden_size].",
        "hidden_size": _HIDDEN_SIZE,
        **_biases("[3 * hidden_size]"),
        "reset_after": _RESET_AFTER,
        "layout": _GRU_LAYOUT,
        "activations": _GRU_ACTIVATIONS,
    },
    returns="The hidden state after the step, [batch, hidden_size].",
    raises=("Shapes do not fit, there are not two activations, an option is not allowed, data types differ or are not allowed"),
    numerics=_CELL_NUMERICS,
    example="""
        >>> weight, recurrent_weight = (b.constant(np.ones((12, n), np.float32)) for n in (3, 4))
        >>> state = b.constant(np.zeros((2, 4), np.float32))
        >>> b.gru_cell(x, weight, recurrent_weight, state, 4, activations=["sigmoid", b.softsign()]).shape
        (2, 4)
    """,
)

LSTM = Documentation(
    group=RECURRENT,
    summary="Long short-term memory over all steps of a sequence, in one direction or in both.",
    arguments={
        "input": "{types}, with the shape [steps, batch, inputs].",
        "weight": (
            "The input's data type, as for all operands, with the shape [directions, 4 * hidden_size, inputs]. There are 2 "
            'directions for "both" and 1 otherwise. The gates are in the order of `layout`.'
        ),
        "recurrent_weight": "[directions, 4 * hidden_size, hidden_size].",
        "steps": _STEPS,
        "hidden_size": _HIDDEN_SIZE,
        **_biases("[directions, 4 * hidden_size]"),
        "peephole_weight": f"[directions, 3 * hidden_size], {_PEEPHOLES}",
        "initial_hidden_state": "[directions, batch, hidden_size]. The default is 0.",
        "initial_cell_state": "[directions, batch, hidden_size]. The default is 0.",
        "return_sequence": _RETURN_SEQUENCE,
        "direction": _DIRECTION,
        "layout": _LSTM_LAYOUT,
        "activations": _LSTM_ACTIVATIONS,
    },
    returns=(
        "A list of the hidden state and the cell state after the last step in each direction, [directions, batch, "
        "hidden_size], and with `return_sequence` the hidden states of all steps, [steps, directions, batch, hidden_size]. "
        "There, entry t belongs to step t of the input in every direction."
    ),
    raises=(
        "Shapes do not fit. There are not three activations, or an activation is softmax. An option is not allowed, data types "
        "differ or are not allowed"
    ),
    numerics=_NETWORK_NUMERICS,
    example="""
        >>> weight = b.constant(np.ones((2, 16, 3), np.float32))
        >>> recurrent_weight = b.constant(np.ones((2, 16, 4), np.float32))
        >>> two_steps = b.reshape(x, [2, 1, 3])
        >>> hidden, cell = b.lstm(two_steps, weight, recurrent_weight, 2, 4, direction="both")
        >>> hidden.shape, cell.shape
        ((2, 1, 4), (2, 1, 4))
    """,
)

LSTM_CELL = Documentation(
    group=RECURRENT,
    summary="One step of a long short-term memory.",
    arguments={
        "input": "{types}, with the shape [batch, inputs].",
        "weight": (
            "The input's data type, as for all operands, with the shape [4 * hidden_size, inputs]. The gates are in the order "
            "of `layout`."
        ),
        "recurrent_weight": "[4 * hidden_size, hidden_size].",
        "hidden_state": "The hidden state before the step, [batch, hidden_size].",
        "cell_state": "The cell state before the step, [batch, hidden_size].",
        "hidden_size": _HIDDEN_SIZE,
        **_biases("[4 * hidden_size]"),
        "peephole_weight": f"[3 * hidden_size], {_PEEPHOLES}",
        "layout": _LSTM_LAYOUT,
        "activations": _LSTM_ACTIVATIONS,
    },
    returns="A list of the hidden state and the cell state after the step, each [batch, hidden_size].",
    raises=(
        "Shapes do not fit, there are not three activations, an option is not allowed, data types differ or are not allowed"
    ),
    numerics=_CELL_NUMERICS,
    example="""
        >>> weight, recurrent_weight = (b.constant(np.ones((16, n), np.float32)) for n in (3, 4))
        >>> state = b.constant(np.zeros((2, 4), np.float32))
        >>> [o.shape for o in b.lstm_cell(x, weight, recurrent_weight, state, state, 4, layout="ifgo")]
        [(2, 4), (2, 4)]
    """,
)
