"""Options, checks and numpy reference that gru, lstm and their cells share. The reference runs a cell over all time steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..core.data_types import FLOATS, MAX_DIMENSION, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from . import activation
from ._attrs import Attr
from ._def import OpCall, Operand
from ._rows import to_type, wide
from .interfaces.cost import Cost

ACTIVATIONS = MappingProxyType({op.name: op for op in activation.OPS if op.name != "prelu" and not op.internal})
"""The operators that can be the activation of a gate, by name. The draft has names for relu, sigmoid and tanh only."""

NAMED = ("relu", "sigmoid", "tanh")

ActivationCall: TypeAlias = tuple[str, tuple[tuple[str, Any], ...]]
"""An activation as an attribute: the operator's name, and its canonical options in alphabetical order."""

State: TypeAlias = tuple[Array, ...]
"""The hidden state, and with lstm the cell state: each [batch, hiddenSize], float64."""

CellStep: TypeAlias = Callable[[int, Array, State], State]
"""Returns the next state from a direction, its input [batch, inputSize] and its state."""


def operand(name: str, rank: int, *, required: bool = False) -> Operand:
    """Return the declaration of an operand: all but the input have its data type."""
    if name == "input":
        return Operand(name=name, data_types=FLOATS, min_rank=rank, max_rank=rank)
    return Operand(name=name, data_types=FLOATS, same_as="input", min_rank=rank, max_rank=rank, required=required)


def layout_attr(*allowed: str) -> Attr:
    """Return the option `layout`: the order of the gates, the default first."""
    return Attr("layout", "enum", allowed[0], allowed)


ACTIVATIONS_ATTR = Attr("activations", "activations", None, NAMED)
HIDDEN_SIZE_ATTR = Attr("hidden_size", "uint")
SEQUENCE_ATTRS = (
    Attr("steps", "uint"),
    HIDDEN_SIZE_ATTR,
    Attr("return_sequence", "bool", False),
    Attr("direction", "enum", "forward", ("forward", "backward", "both")),
)
"""Arguments and options of gru and lstm that their cells do not have, and the size that all have."""


def check_sizes(call: OpCall, gates: int, peepholes: str = "") -> tuple[int, ...]:
    """Check the shapes of all operands, and return those of a state: [directions, batch, hiddenSize], or [batch, hiddenSize].

    Args:
        call: a call of gru, lstm or one of their cells.
        gates: the number of gates in the weights.
        peepholes: name of the operand that holds three vectors rather than one per gate.
    """
    x, hidden = call.input(0), call.attrs["hidden_size"]
    call.require(
        0 < hidden and 2 * gates * hidden <= MAX_DIMENSION,
        f"{2 * gates} * hidden_size must be a valid dimension",
        got=f"hidden_size={hidden}",
        allowed=f"hidden_size 1..{MAX_DIMENSION // (2 * gates)}",
    )
    lead: tuple[int, ...] = ()
    names = ""
    if "steps" in call.attrs:
        steps = call.attrs["steps"]
        call.require(steps > 0, "steps must not be 0", got=f"steps={steps}", allowed=f"{x.shape[0]}")
        call.require(
            x.shape[0] == steps, "input.shape[0] must equal steps", got=f"steps={steps}, input {x}", allowed=f"{x.shape[0]}"
        )
        lead, names = (2 if call.attrs["direction"] == "both" else 1,), "numDirections, "
    batch, inputs = x.shape[-2:]
    state = (*lead, batch, hidden)
    wanted = {
        "weight": ((*lead, gates * hidden, inputs), f"[{names}{gates} * hidden_size, input_size]"),
        "recurrentWeight": ((*lead, gates * hidden, hidden), f"[{names}{gates} * hidden_size, hidden_size]"),
        "bias": ((*lead, gates * hidden), f"[{names}{gates} * hidden_size]"),
        "recurrentBias": ((*lead, gates * hidden), f"[{names}{gates} * hidden_size]"),
        peepholes: ((*lead, 3 * hidden), f"[{names}3 * hidden_size]"),
    }
    for declared, given in zip(call.op.operands[1:], call.inputs[1:], strict=True):
        shape, rule = wanted.get(declared.name, (state, f"[{names}batch_size, hidden_size]"))
        call.require(
            given is None or given.shape == shape,
            f"Shape mismatch: {declared.name} must have shape {rule}",
            got=f"{declared.name} {given}, hidden_size={hidden}, input {x}",
            allowed=str(list(shape)),
        )
    return state


def check_activations(call: OpCall, *defaults: str) -> None:
    """Check the activations, as many as there are defaults, and make their options canonical."""
    given: tuple[ActivationCall, ...] | None = call.attrs["activations"]
    found = tuple((name, ()) for name in defaults) if given is None else given
    call.require(
        len(found) == len(defaults),
        f"activations must have {len(defaults)} items",
        got=f"{len(found)} items",
        allowed=f"{len(defaults)} items",
    )
    call.attrs["activations"] = tuple(_canonical(call, name, dict(options)) for name, options in found)


def _canonical(call: OpCall, name: str, options: Mapping[str, Any]) -> ActivationCall:
    call.require(name in ACTIVATIONS, "Invalid activations", got=repr(name), allowed=", ".join(ACTIVATIONS))
    data_type = call.input(0).data_type
    _, found = ACTIVATIONS[name].check([TensorType(data_type, (1, 1))], options, call.label)
    # The scalar options are cast to the operand's type here, so that the reference and all kernels use the same numbers.
    cast = {k: None if v is None else cast_number(v, data_type) for k, v in found.items()}
    return name, tuple(sorted(cast.items()))


def activate(call: ActivationCall, x: Array) -> Array:
    """Return an activation of `x` in numpy. It rounds to float32, because kernels compute activations in float32 only."""
    name, options = call
    function = ACTIVATIONS[name].reference
    assert function is not None
    with np.errstate(over="ignore"):
        (y,) = function([x.astype(np.float32)], dict(options), (TensorType("float32", x.shape),))
    return y.astype(np.float64)


def parts(array: Array, gates: str, layout: str, axis: int = 0) -> list[Array]:
    """Return the parts of `array` for `gates`. Along `axis`, the array holds the parts of all gates in the layout's order."""
    found: list[Array] = np.split(array, len(layout), axis)
    return [found[layout.index(gate)] for gate in gates]


def unroll(
    x: Array, initial: Sequence[Array | None], attrs: Attrs, step: CellStep, outputs: Sequence[TensorType]
) -> list[Array]:
    """Run a cell over all time steps and return the outputs: the last states, and the hidden states of all steps on request.

    Args:
        x: the input, [steps, batch, inputSize].
        initial: the states before the first time step. None stands for zeros.
        attrs: the attributes of gru or lstm.
        step: the cell.
        outputs: the types of the outputs.
    """
    shape = outputs[0].shape
    states = [np.zeros(shape) if state is None else wide(state) for state in initial]
    last = [np.empty(shape) for _ in states]
    sequence = np.empty((len(x), *shape))
    for direction in range(shape[0]):
        state: State = tuple(s[direction] for s in states)
        times = range(len(x))
        for time in times if is_forward(attrs["direction"], direction) else reversed(times):
            state = step(direction, x[time], state)
            sequence[time, direction] = state[0]
        for whole, own in zip(last, state, strict=True):
            whole[direction] = own
    found = [*last, sequence] if attrs["return_sequence"] else last
    return [to_type(array, type_) for array, type_ in zip(found, outputs, strict=True)]


def is_forward(direction: str, index: int) -> bool:
    """Return whether direction number `index` reads the steps from the first to the last."""
    return direction == "forward" or (direction == "both" and index == 0)


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    source, weight, recurrent = types[:3]
    batch = source.shape[-2]
    steps = attrs.get("steps") or 1
    gates = math.prod(weight.shape[:-1])  # directions and the rows of all gates
    return 2 * steps * batch * (weight.num_elements + recurrent.num_elements) + 8 * steps * batch * gates


RECURRENCES = Cost(_operations)
"""The cost of products with weights and recurrent weights in each step, and of about eight operations for each gate."""
