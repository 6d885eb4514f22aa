"""Stacks of gru or lstm layers in a dispatch per wave: each layer makes a time step, the next one a step behind.

A step of a layer needs the state of the layer below after the same step, and its own after the step before. Both are there one
wave later, so all layers take part in a dispatch. The inputs of the first layer are one matrix product for all steps. The other
layers multiply their input within the step. The states are kept in float32 between steps.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.caps import Caps
from ..core.data_types import DATA_TYPES
from ..costs import Choice, RecurrentSize, Target
from ..costs.recurrent import SHARED_ROWS, STEP_WORKGROUP
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp
from ._def import Lowering
from ._factors import Factor, row_major
from ._quads import fits_binding
from ._recurrent_cooperative import cooperative_calls, stack_obstacle, turn_calls
from ._recurrent_network import BoundOperand, Field, Network, Sizes, Vector, make_network, with_quads

STACK = KernelTemplate("recurrent_stack", ("cell", "width", "rows", "shares"))

_LEAST_SHARES = QUAD * SHARED_ROWS
"""Invocations that share a sum at least, so that there is one for each result of a workgroup."""

_WEIGHTS, _VECTORS = 2, 3
"""The operands that hold the weights and vectors of all layers."""


def choose_stack(
    target: Target, x: TensorType, weights: TensorType, layers: int, copies: int = 0, *, constant: bool = True
) -> Choice:
    """Return how layers make their steps: "stack" is together in a dispatch per step, "cooperative" in one dispatch.

    "layers" is one layer after the other. "turns" is the same in one node, a dispatch for each layer.

    Args:
        target: the device.
        x: the type of the input of a layer.
        weights: the type of its recurrent weights, or of the weights of several.
        layers: the number of layers.
        copies: dispatches that copy states into and out of a stack.
        constant: whether the weights are a constant.
    """
    size = _size(x, weights, layers)
    in_way = {"cooperative": stack_obstacle(target.caps, size), "turns": "" if constant else "weights that are not constant"}
    return target.costs.recurrent.choose_stack(size, copies, in_way=in_way)


def _size(x: TensorType, weights: TensorType, layers: int) -> RecurrentSize:
    steps, batch, _ = x.shape
    *_, columns, hidden = weights.shape
    return RecurrentSize(
        steps=steps,
        directions=1,
        rows=batch,
        hidden=hidden,
        gates=columns // hidden,
        element_bytes=DATA_TYPES[weights.data_type].size_bytes,
        step_dispatches=1,
        layers=layers,
    )


def stack_fits(caps: Caps, x: TensorType, weights: TensorType, layers: int) -> bool:
    """Return whether the kernels of a stack may bind their operands whole. Arguments are those of `choose_stack`."""
    (steps, batch, _), (_, columns, hidden) = x.shape, weights.shape
    bound = (
        TensorType("float32", (steps, batch, columns)),
        TensorType(weights.data_type, (2 * layers - 1, columns, hidden)),
        TensorType("float32", (layers, batch, hidden)),
    )
    return all(fits_binding(type_, caps) for type_ in bound)


def stack_calls(low: Lowering) -> list[KernelCall]:
    """Return the kernel calls of a stack of layers."""
    calls: list[KernelCall] = []
    steps, batch, _ = low.input().shape
    layers, _, hidden = low.output().shape
    sizes = Sizes(D=1, S=steps, B=batch, H=hidden, N=len(low.attrs["layout"]) * hidden)
    network = make_network(low, sizes, 0, calls)
    row = low.input(_VECTORS).shape[-1] // hidden
    network = replace(network, cell=replace(network.cell, vectors=_vectors(low.attrs["layout"], row), held=True))
    stored = low.input(_WEIGHTS)
    choice = choose_stack(low.target, low.input(), stored, layers, constant=low.is_constant(low.value(_WEIGHTS)))
    reason = f"{layers} layers of {sizes.H * sizes.N} recurrent weights, {choice.reason}"
    quad = sizes.H % QUAD == 0
    weight = Binding(name="weight", access="read", element=stored.data_type, quad=quad)
    vectors = BoundOperand(Binding(name="vectors", access="read", element=low.input(_VECTORS).data_type), low.value(_VECTORS))
    if choice.variant in ("cooperative", "turns"):
        fixed, size = (BoundOperand(weight, low.value(_WEIGHTS)), vectors), _size(low.input(), stored, layers)
        add_calls = turn_calls if choice.variant == "turns" else cooperative_calls
        add_calls(network, size, fixed, reason, calls, row=row)
        return calls
    width = QUAD if quad else 1
    weights = row_major(low, Factor(low.value(_WEIGHTS), stored.data_type, stored.shape, transposed=True), "weights", calls)
    fixed = (network.projection, BoundOperand(weight, weights), vectors)
    rows = min(sizes.B, SHARED_ROWS)
    invocations = layers * -(-sizes.B // SHARED_ROWS) * -(-sizes.H // width)
    shares = max(_LEAST_SHARES, low.target.costs.recurrent.shares_of_sums(invocations))
    blocks, panels = -(-sizes.B // rows), -(-sizes.H // (STEP_WORKGROUP // shares * width))
    tiles = layers * blocks * panels
    params = {"width": width, "rows": rows, "shares": shares}
    before = tuple(network.initial.values())
    waves = sizes.S + layers - 1
    for wave in range(waves):
        after = _after(network, layers, wave, last=wave == waves - 1)
        state, *others = before
        bound = (*fixed, with_quads(state, width == QUAD), *others, *after, *network.outputs[len(network.states) :])
        numbers = {"wave": wave, "layers": layers, "vectors": row, "blocks": blocks, "panels": panels, "tiles": tiles}
        fields: list[Field] = [(name, "u32", number) for name, number in numbers.items()]
        calls.append(network.call(STACK, bound, fields, tiles, reason, params))
        before = tuple(
            BoundOperand(replace(b.binding, name=name, access="read"), b.operand)
            for name, b in zip(network.states, after, strict=True)
        )
    return calls


def _after(network: Network, layers: int, wave: int, *, last: bool) -> tuple[BoundOperand, ...]:
    """Return the operands that hold the states of all layers after a wave: the outputs, or scratch memory."""
    if last:
        return network.outputs[: len(network.states)]
    state_bytes = 4 * layers * network.sizes.B * network.sizes.H
    return tuple(
        BoundOperand(Binding(name=f"new_{state}", access="write"), Temp(f"{state} {wave % 2}", state_bytes))
        for state in network.states
    )


def _vectors(layout: str, row: int) -> tuple[Vector, ...]:
    """Return the vectors of a layer behind its biases, given how many vectors of H elements it has."""
    name = "reset_bias" if "n" in layout else "peephole_weight"
    gates = len(layout)
    return (Vector(name=name, binding="vectors", offset=gates, row=row, length=row - gates),) if row > gates else ()
