"""The observation of a run's values: each is read back directly after its producer, before another value takes its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..core.data_types import Array
from .bound import Ends
from .readback import StagingPool
from .recorder import Recorder

if TYPE_CHECKING:
    from .program import Program

Observer: TypeAlias = Callable[[int | None, Mapping[int, Array]], None]
"""A function that a run calls with None and the inputs, then with each finished node and its results as arrays by value.

The node is its position in the plan's graph.
"""


def run_observed(program: Program, recorder: Recorder, ends: Ends, observer: Observer) -> None:
    """Submit a run node by node, and pass the inputs and the results of each node to an observer.

    The observer does not get values in buffers that forbid reading.

    Args:
        program: the program to run. The caller holds the lock of its device.
        recorder: its dispatches over `ends`.
        ends: the buffers of its inputs and outputs.
        observer: the function that gets the values.
    """
    graph = program.plan.graph
    observer(None, _read(program, ends, list(graph.inputs.values())))
    bound = program.memory.bound_ends(ends)
    for node, first, end in parts(program):
        program.submit(recorder.part(first, end), ends)
        if node is not None:
            observer(node, _read(program, bound, graph.nodes[node].outputs))


def run_node(program: Program, recorder: Recorder, ends: Ends, node: int, operands: Mapping[int, Array]) -> dict[int, Array]:
    """Run one node of a program on other operands than those of a run, and return its results.

    Args:
        program: the program of the node. The caller holds the lock of its device.
        recorder: its dispatches over `ends`.
        ends: the buffers of its inputs and outputs.
        node: position of the node in the plan's graph.
        operands: the operands that are no constants, by value.
    """
    for value, array in operands.items():
        _write(program, ends, value, array)
    for of, first, end in parts(program):
        if of == node:
            program.submit(recorder.part(first, end), ends)
    return _read(program, ends, program.plan.graph.nodes[node].outputs)


def parts(program: Program) -> list[tuple[int | None, int, int]]:
    """Return which dispatches compute each node: its position, the first, and the one past the last."""
    dispatches = program.plan.dispatches
    grouped = groupby(range(len(dispatches)), key=lambda i: dispatches[i].node)
    return [(node, (numbers := list(group))[0], numbers[-1] + 1) for node, group in grouped]


def _read(program: Program, ends: Ends, values: Sequence[int]) -> dict[int, Array]:
    plan, pool = program.plan, StagingPool.of(program.device)
    found: dict[int, Array] = {}
    for value in values:
        part = plan.parts.get(value)
        whole = part.value if part else value
        if whole not in plan.places:
            continue  # a result without consumers
        buffer, type_ = program.memory.buffer_of(plan.places[whole], ends), plan.graph.type(whole)
        if buffer.readable:
            array = pool.read(buffer, np.empty(type_.shape, type_.numpy)).result()["data"]
            shape = plan.graph.type(value).shape
            found[value] = part.within(array, shape).reshape(shape).copy() if part else array
    return found


def _write(program: Program, ends: Ends, value: int, array: Array) -> None:
    """Store a value at its allocation. A value that is a part of a larger one leaves the other elements unchanged."""
    plan = program.plan
    part = plan.parts.get(value)
    if part:
        whole = _read(program, ends, [part.value])[part.value]
        part.within(whole, array.shape)[:] = array.reshape(-1, array.shape[-1])
        value, array = part.value, whole
    program.memory.buffer_of(plan.places[value], ends).write(array)
