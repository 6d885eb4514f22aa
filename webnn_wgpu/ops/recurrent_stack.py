"""Stacks of gru or lstm layers, which a pass makes of layers whose input is the sequence of the layer below.

The layers go in one direction and have the same sizes. `stackedWeights` is [2 * layers - 1, gates * H, H]: the recurrent
weights of the first layer, then for each other layer those for the input and the recurrent ones. Each gate has one bias, the
sum of both. Gru's gate n has another one, for the sum that the reset gate multiplies. `bias` has those of the first layer.
`vectors` has a row per layer: its biases, which are zeros for the first layer, then the other bias of gru, or the peepholes
of lstm if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from . import gru, lstm
from ._attrs import Attr
from ._cells import ACTIVATIONS_ATTR, HIDDEN_SIZE_ATTR, RECURRENCES, check_activations, operand
from ._def import OpCall, OpDef, Operand
from ._product import TEMPLATES as PRODUCTS
from ._recurrent_cooperative import COOPERATIVE
from ._recurrent_stack import STACK, stack_calls
from ._rows import to_type
from ._strided_copy import STRIDED
from .interfaces.bounds import RECURRENT, Reference
from .interfaces.family import Family

STATE = 5
"""The position of the first state among the operands."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, state, hidden = call.input(), call.input(STATE), call.attrs["hidden_size"]
    gates, layers = len(call.attrs["layout"]), state.shape[0]
    row = call.input(3).shape[-1]
    # Three biases and the other one of gru. Four biases of lstm, then three peepholes or none.
    rows = [4 * hidden, 7 * hidden][: gates - 2]
    wanted = {
        "weight": (1, gates * hidden, x.shape[2]),
        "stackedWeights": (2 * layers - 1, gates * hidden, hidden),
        "vectors": (layers, row if row in rows else rows[0]),
        "bias": (1, gates * hidden),
    }
    for declared, given in zip(call.op.operands[1:], call.inputs[1:], strict=True):
        shape = wanted.get(declared.name, (layers, x.shape[1], hidden))
        call.require(given is None or given.shape == shape, f"{declared.name} has the wrong shape", allowed=str(list(shape)))
    call.require(x.shape[0] == call.attrs["steps"], "input.shape[0] must equal steps", allowed=str(x.shape[0]))
    check_activations(call, *("sigmoid", "tanh", "tanh")[: gates - 1])
    last = tuple(call.output(x.data_type, state.shape) for _ in call.inputs[STATE:])
    if not call.attrs["return_sequence"]:
        return last
    return (*last, call.output(x.data_type, (x.shape[0], 1, *state.shape[1:])))


def _vectors(bias: Array, others: Array, attrs: Attrs) -> list[Array | None]:
    """Return the bias, the recurrent bias and, with lstm, the peepholes of a layer, given its vectors in a stack."""
    gates, hidden = attrs["layout"], attrs["hidden_size"]
    if "n" not in gates:
        return [bias, None, others if others.size else None]
    n = gates.index("n") * hidden
    recurrent = np.zeros_like(bias)
    recurrent[:, n : n + hidden] = others
    return [bias, recurrent]


def _reference(single: OpDef) -> Reference:
    """Return the reference, which computes one layer after the other. Between them it rounds to float32."""
    layer_of = single.reference
    assert layer_of is not None

    def compute(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
        x, weight, stacked, vectors, bias, *states = arrays
        assert x is not None
        assert stacked is not None
        assert vectors is not None
        assert bias is not None
        columns = stacked.shape[1]
        own = {"reset_after": True, **attrs, "return_sequence": True}
        state = TensorType("float32", (1, *out[0].shape[1:]))
        types = (*(state for _ in states), TensorType("float32", (len(x), *state.shape)))
        lasts: list[list[Array]] = []
        for layer in range(len(vectors)):
            if layer > 0:
                weight, bias = stacked[2 * layer - 1 : 2 * layer], vectors[layer : layer + 1, :columns]
            own_vectors = _vectors(bias, vectors[layer : layer + 1, columns:], attrs)
            given = [x, weight, stacked[2 * layer : 2 * layer + 1], *own_vectors]
            given += [None if s is None else s[layer : layer + 1] for s in states]
            *last, sequence = layer_of(given, own, types)
            lasts.append(last)
            x = sequence[:, 0]
        found = [np.concatenate(each) for each in zip(*lasts, strict=True)]
        if attrs["return_sequence"]:
            found.append(x[:, None])
        return [to_type(array, type_) for array, type_ in zip(found, out, strict=True)]

    return compute


def _stack(name: str, single: OpDef, *states: str) -> OpDef:
    """Return the operator of a stack of layers, given its name, that of a single layer and the names of the states."""
    (layout,) = (attr for attr in single.attrs if attr.name == "layout")
    return OpDef(
        name=name,
        operands=(
            operand("input", 3),
            *(Operand(name=name, data_types=FLOATS, min_rank=3, max_rank=3) for name in ("weight", "stackedWeights")),
            *(Operand(name=name, data_types=("float32",), min_rank=2, max_rank=2) for name in ("vectors", "bias")),
            *(operand(state, 3, required=True) for state in states),
        ),
        infer=_infer,
        reference=_reference(single),
        lower=stack_calls,
        attrs=(
            Attr("steps", "uint"),
            HIDDEN_SIZE_ATTR,
            Attr("return_sequence", "bool"),
            Attr("direction", "enum", "forward", ("forward", "backward")),
            layout,
            ACTIVATIONS_ATTR,
        ),
        templates=(STACK, COOPERATIVE, *PRODUCTS, STRIDED),
        family=Family.RECURRENT,
        without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
        cost=RECURRENCES,
        bounds=RECURRENT,
        outputs=(*(f"output{i}" for i in range(len(states))), "sequence"),
        internal=True,
    )


GRU_STACK = _stack("gruStack", gru.OPS[0], "initialHiddenState")
"""Layers of gru that reset after the product."""

LSTM_STACK = _stack("lstmStack", lstm.OPS[0], "initialHiddenState", "initialCellState")
"""Layers of lstm."""

STACKS = MappingProxyType({gru.OPS[0].name: GRU_STACK, lstm.OPS[0].name: LSTM_STACK})
"""The operators of stacks, by those of their layers."""

OPS = (GRU_STACK, LSTM_STACK)
