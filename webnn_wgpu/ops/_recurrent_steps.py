"""gru, lstm and their cells in a dispatch per step, which is spread over the whole device.

Where gru resets before the product, a step takes two dispatches: WebGPU lets workgroups wait for each other only between
dispatches. The states are kept in float32 between steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.data_types import DATA_TYPES
from ..costs.recurrent import SHARED_ROWS, STEP_WORKGROUP
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Temp, Work, grid_1d
from ._def import Lowering
from ._factors import Factor, row_major
from ._recurrent_network import BoundOperand, Field, Network, Sizes, initial_states
from ._strided_copy import strided_call

STEPS = KernelTemplate("recurrent.steps", ("cell", "width", "sources", "rows", "shares"))

_STATES = ("hidden", "cell", "reset", "new_hidden", "new_cell", "new_reset")
"""Bindings that hold a number per direction, batch row and unit."""


@dataclass(frozen=True)
class _Block:
    """Hidden units first..end-1 and their recurrent weights, [directions, H, gates, units]."""

    first: int
    end: int
    weights: BoundOperand


def _blocks(low: Lowering, sizes: Sizes, calls: list[KernelCall]) -> tuple[_Block, ...]:
    """Return the units in blocks whose recurrent weights fit a binding. Kernels read these weights transposed."""
    weight, limit = low.input(2), low.caps.limit("max-storage-buffer-binding-size")
    element_bytes = DATA_TYPES[weight.data_type].size_bytes
    binding = Binding(name="recurrent_weight", access="read", element=weight.data_type, quad=sizes.H % QUAD == 0)
    of_direction = sizes.H * sizes.N * element_bytes
    room = limit - STORAGE_ALIGNMENT_BYTES - (0 if sizes.D == 1 else low.caps.limit("min-storage-buffer-offset-alignment"))
    if of_direction <= room or padded_bytes(sizes.D * of_direction) <= limit:
        factor = Factor(low.value(2), weight.data_type, weight.shape, transposed=True)
        return (_Block(0, sizes.H, BoundOperand(binding, row_major(low, factor, "recurrent_weight", calls))),)
    gates = sizes.gates
    width = max(QUAD, room // (sizes.H * gates * element_bytes) // QUAD * QUAD)
    blocks: list[_Block] = []
    for first in range(0, sizes.H, width):
        end = min(sizes.H, first + width)
        dims = (sizes.D, sizes.H, gates, end - first)
        temp = Temp(f"recurrent_weight {first}", math.prod(dims) * element_bytes)
        strides = (sizes.N * sizes.H, 1, sizes.H * sizes.H, sizes.H)
        reason = f"recurrent weights of units {first} to {end}"
        calls.append(strided_call(low.value(2), weight.data_type, first * sizes.H, dims, strides, temp, low.target, reason))
        blocks.append(_Block(first, end, BoundOperand(binding, temp)))
    return tuple(blocks)


def bindings_besides(low: Lowering, steps: int) -> int:
    """Return how many bindings the kernel with the most of them has besides its vectors."""
    states = len(initial_states(low))
    if steps > 1:
        # From the second step on there is a state, also where none was given.
        states = 1 if len(low.attrs["layout"]) == 3 else 2
    reset = not low.attrs.get("reset_after", True)
    # Projection, recurrent weights, the states before the step, r * h, the states after the step, and the sequence.
    return 2 + states + int(reset) + len(low.node.outputs)


def steps_calls(network: Network, reason: str, calls: list[KernelCall]) -> None:
    """Add the calls that make one step after the other."""
    sizes = network.sizes
    blocks = _blocks(network.low, sizes, calls)
    state_bytes = 4 * sizes.D * sizes.B * sizes.H
    quad = sizes.H % QUAD == 0
    before = dict(network.initial)
    outputs = network.outputs
    sequence = outputs[len(network.states) :]
    for step in range(sizes.S):
        after = outputs[: len(network.states)]
        if step + 1 < sizes.S:
            temps = {state: Temp(f"{state} {step % 2}", state_bytes) for state in network.states}
            after = tuple(BoundOperand(Binding(name=f"new_{state}", access="write"), temp) for state, temp in temps.items())
        reads = list(before.values())
        if "hidden" in before:
            reads[0] = replace(reads[0], binding=replace(reads[0].binding, quad=quad))
        if network.cell.reset_after or "hidden" not in before:
            gates = network.cell.gates if "hidden" in before else ""
            calls += _step_calls(network, blocks, step, gates, reads, (*after, *sequence), reason)
        else:
            # Gru that resets before the product: all of r * h must be there before any of it is multiplied.
            reset = Temp("reset", state_bytes)
            calls += _step_calls(
                network, blocks, step, "r", reads, [BoundOperand(Binding(name="new_reset", access="write"), reset)], reason
            )
            reads.append(BoundOperand(Binding(name="reset", access="read", quad=quad), reset))
            calls += _step_calls(network, blocks, step, "zn", reads, (*after, *sequence), reason)
        before = {
            state: BoundOperand(replace(b.binding, name=state, access="read"), b.operand)
            for state, b in zip(network.states, after, strict=True)
        }


def _step_calls(
    network: Network,
    parts: Sequence[_Block],
    step: int,
    gates: str,
    reads: Sequence[BoundOperand],
    writes: Sequence[BoundOperand],
    reason: str,
) -> list[KernelCall]:
    """Return the calls of a time step that multiply the state by the weights of `gates` and compute the values of `writes`."""
    sizes = network.sizes
    width = QUAD if sizes.H % QUAD == 0 else 1
    invocations = sizes.D * -(-sizes.B // SHARED_ROWS) * -(-sizes.H // width)
    shares = network.low.target.costs.recurrent.shares_of_sums(invocations) if gates else 1
    rows = next((r for r in (1, 2) if sizes.B <= r), 4 if shares == 1 else SHARED_ROWS)
    if shares > 1:
        network = replace(network, cell=replace(network.cell, held=True))
    blocks = -(-sizes.B // rows)
    resets = any(b.binding.name == "reset" for b in reads)
    sources = tuple((gate, "reset" if resets and gate == "n" else "hidden") for gate in gates)
    calls: list[KernelCall] = []
    for block in parts:
        units = block.end - block.first
        panels = -(-units // (STEP_WORKGROUP // shares * width))
        tiles = sizes.D * blocks * panels
        numbers = {"step": step, "blocks": blocks, "panels": panels, "tiles": tiles, "first": block.first, "end": block.end}
        numbers["weight_row"] = units * sizes.gates
        fields: list[Field] = [(name, "u32", number) for name, number in numbers.items()]
        bound = (network.projection, block.weights, *network.vectors, *reads, *writes)
        names = [b.binding.name for b in bound]
        work = _step_work(network, numbers, rows, names)
        params = {"width": width, "sources": sources, "rows": rows, "shares": shares}
        calls.append(network.call(STEPS, bound, fields, tiles, reason, params, work=work))
    return calls


def _step_work(network: Network, numbers: Mapping[str, int], rows: int, names: Sequence[str]) -> Work:
    """Return the division of a time step. Its tiles are numbered by direction, then block of batch rows, then panel."""
    sizes, caps = network.sizes, network.low.caps
    blocks, panels, step = numbers["blocks"], numbers["panels"], numbers["step"]
    backward = next(int(value) for name, _, value in network.fields if name == "backward")

    def reach(first: int, end: int) -> list[Interval | None]:
        directions = first // (blocks * panels), (end - 1) // (blocks * panels)
        batch = 0, sizes.B
        if directions[0] == directions[1]:
            batch = first // panels % blocks * rows, min(sizes.B, ((end - 1) // panels % blocks + 1) * rows)
        touched: dict[str, list[Interval]] = {}
        for d in directions:
            time = sizes.S - 1 - step if backward >> d & 1 else step
            row = (time * sizes.B + batch[0]) * sizes.D + d
            rows_past = (batch[1] - batch[0] - 1) * sizes.D + 1
            touched.setdefault("projection", []).append((row * sizes.N, (row + rows_past) * sizes.N))
            for name, row, width in (
                ("sequence", (time * sizes.D + d) * sizes.B, sizes.H),
                ("state", d * sizes.B, sizes.H),
            ):
                touched.setdefault(name, []).append(((row + batch[0]) * width, (row + batch[1]) * width))
        weights = sizes.H * numbers["weight_row"]
        touched["recurrent_weight"] = [(d * weights, (d + 1) * weights) for d in directions]
        touched |= {name: touched["state"] for name in _STATES}
        for vector in network.cell.vectors:
            touched[vector.binding] = [(d * vector.row * sizes.H, (d + 1) * vector.row * sizes.H) for d in directions]
        found = [touched.get(name) for name in names]
        return [None if f is None else (min(low for low, _ in f), max(past for _, past in f)) for f in found]

    return Work(numbers["tiles"], lambda tiles: ({"tiles": tiles}, grid_1d(tiles, caps)), reach)
