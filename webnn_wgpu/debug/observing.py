"""Runs of a graph with its installed kernels, with an observer of every value that the kernels store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import context_of, executable_of
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import InvalidStateError
from webnn_wgpu.ir.graph import Graph, Node, Origin
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import PASSES
from webnn_wgpu.plan.labels import node_label
from webnn_wgpu.reference.interpreter import evaluate

Seen = Callable[[int, list["Array | None"], list["Array | None"]], None]
"""A function that is called for each finished node with its position, operands and results. Unreadable values are None."""


class ObservedValues:
    """The values of one run, each kept until the last node that reads it has run.

    Args:
        graph: the graph after its passes.
        seen: the function that gets every node.
    """

    def __init__(self, graph: Graph, seen: Seen) -> None:
        self.graph = graph
        self._seen = seen
        self._readers = Counter(value for node in graph.nodes for value in node.operands)
        self._readers.update(graph.outputs.values())
        self._left = Counter[int]()
        self._arrays: dict[int, Array] = {}
        self._next = 0

    def __call__(self, position: int | None, made: Mapping[int, Array]) -> None:
        """Store the values that a run passes to its observer."""
        if position is None:
            self._arrays, self._left, self._next = {**self.graph.numbers, **made}, Counter(self._readers), 0
            return
        for at in range(self._next, position):
            self._pass_by(at)
        node = self.graph.nodes[position]
        self._seen(position, self._operands(node), [made.get(value) for value in node.outputs])
        self._keep(node, made)
        self._next = position + 1

    def finish(self) -> dict[str, Array]:
        """Return the outputs of the run that is over, as far as they could be read."""
        for at in range(self._next, len(self.graph.nodes)):
            self._pass_by(at)
        return {name: self._arrays[value] for name, value in self.graph.outputs.items() if value in self._arrays}

    def _pass_by(self, position: int) -> None:
        """Add the result of a node without a kernel: a view, a concatenation or a piece that shares its operand's memory."""
        node = self.graph.nodes[position]
        operands = self._operands(node)
        op = OPS[node.op]
        moved = op.movement is not None and (op.movement.parts or op.movement.runs)
        if (op.view or moved) and all(operand is not None for operand in operands):
            self._keep(node, dict(zip(node.outputs, evaluate(self.graph, node, operands), strict=True)))

    def _operands(self, node: Node) -> list[Array | None]:
        return [None if value is None else self._arrays.get(value) for value in node.inputs]

    def _keep(self, node: Node, made: Mapping[int, Array]) -> None:
        self._arrays.update({value: array for value, array in made.items() if self._left[value]})
        for value in node.operands:
            self._left[value] -= 1
            if not self._left[value]:
                self._arrays.pop(value, None)


@contextmanager
def observing(graph: MLGraph, values: ObservedValues, operator: str) -> Generator[None]:
    """Pass the values of a graph's runs by `compute` and `dispatch` to `values` in the `with` block.

    Raises:
        InvalidStateError: another observer watches the graph.
    """
    executable = executable_of(graph)
    with context_of(graph).lock:
        if executable.observer is not None:
            raise InvalidStateError("only one observer may watch a graph at a time", operator=operator, got=repr(graph))
        executable.observer = values
    try:
        yield
    finally:
        executable.observer = None


def part_of(graph: Graph, nodes: Iterable[Node], constants: Mapping[int, Array], every: bool = False) -> Graph:
    """Return a graph of some nodes alone, whose other operands are its inputs, named by value.

    Args:
        graph: the graph of the nodes' values.
        nodes: the nodes, in an order in which they can run.
        constants: the operands that are constants.
        every: whether all results are outputs, not just those without a consumer among the nodes.
    """
    # A node of this graph has itself as its only origin.
    alone = tuple(replace(n, label=node_label(n), origins=(Origin(n.id, node_label(n)),)) for n in nodes)
    made = [value for node in alone for value in node.outputs]
    read = list(dict.fromkeys(value for node in alone for value in node.operands))
    inputs = {f"v{value}": value for value in read if value not in made and value not in constants}
    outputs = {f"v{value}": value for value in made if every or value not in read}
    values = {value: graph.values[value] for value in (*read, *made)}
    return Graph(
        values=values,
        inputs=MappingProxyType(inputs),
        constants={value: constants[value] for value in read if value in constants},
        nodes=alone,
        outputs=MappingProxyType(outputs),
    )


def without(passes: Collection[str] = ()) -> list[str]:
    """Return the names of all passes but some."""
    return [each.name for each in PASSES if each.name not in passes]
