"""Gated recurrent units: gru, and gruCell, one step of it.

W and R are the weights for input and hidden state, f and g are the activations:

* `z = f(x Wz^T + bz + h Rz^T + rbz)`
* `r = f(x Wr^T + br + h Rr^T + rbr)`
* `n = g(x Wn^T + bn + r (h Rn^T + rbn))`
* `h' = z h + (1 - z) n`

With the reset before the product, `n = g(x Wn^T + bn + (r h) Rn^T + rbn)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import KernelCall
from ._attrs import Attr
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
from ._recurrent_documentation import GRU, GRU_CELL
from ._rows import to_type, wide
from .gradients import recurrent as recurrent_gradients
from .interfaces.bounds import RECURRENT
from .interfaces.family import Family
from .interfaces.precision import Precision


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    data_type = call.input(0).data_type
    state = check_sizes(call, gates=3)
    check_activations(call, "sigmoid", "tanh")
    last = call.output(data_type, state)
    if not call.attrs.get("return_sequence"):
        return (last,)
    return (last, call.output(data_type, (call.attrs["steps"], *state)))


def _cell(x: Array, parameters: Sequence[Array | None], h: Array, attrs: Attrs) -> Array:
    """Return the next hidden state. The parameters are weight, recurrentWeight, bias, recurrentBias of one direction."""
    f, g = attrs["activations"]
    weight, recurrent_weight, bias, recurrent_bias = (np.zeros(3 * h.shape[1]) if p is None else wide(p) for p in parameters)
    layout = attrs["layout"]
    xz, xr, xn = parts(wide(x) @ weight.T + bias, "zrn", layout, axis=1)
    hz, hr, hn = parts(h @ recurrent_weight.T + recurrent_bias, "zrn", layout, axis=1)
    z, r = activate(f, xz + hz), activate(f, xr + hr)
    if attrs["reset_after"]:
        inner = r * hn
    else:
        (new_weight,), (new_bias,) = (parts(p, "n", layout) for p in (recurrent_weight, recurrent_bias))
        inner = (r * h) @ new_weight.T + new_bias
    return z * h + (1 - z) * activate(g, xn + inner)


def _reference_cell(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, weight, recurrent_weight, h, *biases = arrays
    assert x is not None
    assert h is not None
    with np.errstate(all="ignore"):
        return [to_type(_cell(x, [weight, recurrent_weight, *biases], wide(h), attrs), out[0])]


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, *parameters, initial = arrays
    assert x is not None

    def step(direction: int, row: Array, state: State) -> State:
        return (_cell(row, [None if p is None else p[direction] for p in parameters], state[0], attrs),)

    with np.errstate(all="ignore"):
        return unroll(x, [initial], attrs, step, out)


def _lower(low: Lowering) -> list[KernelCall]:
    return recurrent_calls(low)


_OPTIONS = (Attr("reset_after", "bool", True), layout_attr("zrn", "rzn"), ACTIVATIONS_ATTR)

OPS = (
    OpDef(
        name="gru",
        operands=(
            operand("input", 3),
            operand("weight", 3, required=True),
            operand("recurrentWeight", 3, required=True),
            operand("bias", 2),
            operand("recurrentBias", 2),
            operand("initialHiddenState", 3),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(*SEQUENCE_ATTRS, *_OPTIONS),
        templates=TEMPLATES,
        variants=VARIANTS,
        spec="#api-mlgraphbuilder-gru",
        family=Family.RECURRENT,
        without=("elementwise", "epilogue", "movement", "layout"),
        precision=Precision(weights=(1, 2)),
        cost=RECURRENCES,
        bounds=RECURRENT,
        outputs=("output0", "output1"),
        documentation=GRU,
        gradient=recurrent_gradients.GRU,
    ),
    OpDef(
        name="gruCell",
        operands=(
            operand("input", 2),
            operand("weight", 2, required=True),
            operand("recurrentWeight", 2, required=True),
            operand("hiddenState", 2, required=True),
            operand("bias", 1),
            operand("recurrentBias", 1),
        ),
        infer=_infer,
        reference=_reference_cell,
        lower=_lower,
        attrs=(HIDDEN_SIZE_ATTR, *_OPTIONS),
        templates=TEMPLATES,
        variants=VARIANTS,
        spec="#api-mlgraphbuilder-grucell",
        family=Family.RECURRENT,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=RECURRENCES,
        bounds=RECURRENT,
        documentation=GRU_CELL,
        gradient=recurrent_gradients.GRU_CELL,
    ),
)
