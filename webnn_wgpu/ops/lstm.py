"""Long short-term memory: lstm, and lstmCell, one step of it.

W and R are the weights for input and hidden state, p are the peepholes, and f, g and k are the activations:

* `i = f(x Wi^T + bi + h Ri^T + rbi + pi c)`, and likewise `o` and `forget`
* `t = g(x Wg^T + bg + h Rg^T + rbg)`
* `c' = forget c + i t`
* `h' = o k(c')`

All three peepholes, that of the output gate included, read the cell state before the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._cells import (
    ACTIVATIONS_ATTR,
    HIDDEN_SIZE_ATTR,
    RECURRENCES,
    SEQUENCE_ATTRS,
    State,
    activate,
    check_activations,
    check_sizes,
    layout_attr,
    operand,
    parts,
    unroll,
)
from ._def import Lowering, OpCall, OpDef
from ._recurrent import TEMPLATES, VARIANTS, recurrent_calls
from ._recurrent_documentation import LSTM, LSTM_CELL
from ._rows import to_type, wide
from .gradients import recurrent as recurrent_gradients
from .interfaces.bounds import RECURRENT
from .interfaces.family import Family
from .interfaces.precision import Precision


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    data_type = call.input(0).data_type
    state = check_sizes(call, gates=4, peepholes="peepholeWeight")
    check_activations(call, "sigmoid", "tanh", "tanh")
    last = call.output(data_type, state)
    if not call.attrs.get("return_sequence"):
        return (last, last)
    return (last, last, call.output(data_type, (call.attrs["steps"], *state)))


def _cell(x: Array, parameters: Sequence[Array | None], state: State, attrs: Attrs) -> State:
    """Return the next state. The parameters are weight, recurrentWeight, bias, recurrentBias, peepholeWeight."""
    h, c = state
    f, g, k = attrs["activations"]
    weight, recurrent_weight, bias, recurrent_bias = (np.zeros(1) if p is None else wide(p) for p in parameters[:4])
    sums = wide(x) @ weight.T + bias + h @ recurrent_weight.T + recurrent_bias
    i, o, forget, t = parts(sums, "iofg", attrs["layout"], axis=1)
    peepholes = parameters[4]
    if peepholes is not None:
        # Their order does not depend on the layout.
        pi, po, pf = parts(wide(peepholes), "iof", "iof")
        i, o, forget = i + pi * c, o + po * c, forget + pf * c
    new = activate(f, forget) * c + activate(f, i) * activate(g, t)
    return activate(f, o) * activate(k, new), new


def _reference_cell(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, weight, recurrent_weight, h, c, *vectors = arrays
    assert x is not None
    assert h is not None
    assert c is not None
    with np.errstate(all="ignore"):
        state = _cell(x, [weight, recurrent_weight, *vectors], (wide(h), wide(c)), attrs)
        return [to_type(array, type_) for array, type_ in zip(state, out, strict=True)]


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, *parameters, h, c = arrays
    assert x is not None

    def step(direction: int, row: Array, state: State) -> State:
        return _cell(row, [None if p is None else p[direction] for p in parameters], state, attrs)

    with np.errstate(all="ignore"):
        return unroll(x, [h, c], attrs, step, out)


def _lower(low: Lowering) -> list[KernelCall]:
    return recurrent_calls(low)


_OPTIONS = (layout_attr("iofg", "ifgo"), ACTIVATIONS_ATTR)

OPS = (
    OpDef(
        name="lstm",
        operands=(
            operand("input", 3),
            operand("weight", 3, required=True),
            operand("recurrentWeight", 3, required=True),
            operand("bias", 2),
            operand("recurrentBias", 2),
            operand("peepholeWeight", 2),
            operand("initialHiddenState", 3),
            operand("initialCellState", 3),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(*SEQUENCE_ATTRS, *_OPTIONS),
        templates=TEMPLATES,
        variants=VARIANTS,
        spec="#api-mlgraphbuilder-lstm",
        family=Family.RECURRENT,
        without=("elementwise", "epilogue", "movement", "layout"),
        precision=Precision(weights=(1, 2)),
        cost=RECURRENCES,
        bounds=RECURRENT,
        outputs=("output0", "output1", "output2"),
        documentation=LSTM,
        gradient=recurrent_gradients.LSTM,
    ),
    OpDef(
        name="lstmCell",
        operands=(
            operand("input", 2),
            operand("weight", 2, required=True),
            operand("recurrentWeight", 2, required=True),
            operand("hiddenState", 2, required=True),
            operand("cellState", 2, required=True),
            operand("bias", 1),
            operand("recurrentBias", 1),
            operand("peepholeWeight", 1),
        ),
        infer=_infer,
        reference=_reference_cell,
        lower=_lower,
        attrs=(HIDDEN_SIZE_ATTR, *_OPTIONS),
        templates=TEMPLATES,
        variants=VARIANTS,
        spec="#api-mlgraphbuilder-lstmcell",
        family=Family.RECURRENT,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=RECURRENCES,
        bounds=RECURRENT,
        outputs=("output0", "output1"),
        documentation=LSTM_CELL,
        gradient=recurrent_gradients.LSTM_CELL,
    ),
)
