"""The oracles, which compute the expected results of an operator from its operands: the numpy reference, or another graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.accuracy.judging import Judgement, differs, judge
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import context_of, executable_of
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.graph import Graph, Node
from webnn_wgpu.ops import OPS
from webnn_wgpu.reference.interpreter import evaluate, interpret
from webnn_wgpu.runtime.program import Program


class Oracle(Protocol):
    """A source of expected results."""

    name: str

    def judge(
        self, position: int, operands: Sequence[Array | None], found: Sequence[Array | None], by_transforms: bool
    ) -> list[Judgement] | None:
        """Judge the results of a node of the optimized graph. None if the node has no promised accuracy."""
        ...

    def judge_alone(
        self, graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array | None]
    ) -> list[Judgement] | None:
        """Judge the results of an operator that was run by itself."""
        ...

    def outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the known outputs of a whole run."""
        ...


class Reference:
    """The numpy reference."""

    name = "the numpy reference"

    def __init__(self, graph: MLGraph) -> None:
        self._graph, self._optimized = graph, graph.optimized

    def judge(
        self, position: int, operands: Sequence[Array | None], found: Sequence[Array | None], by_transforms: bool
    ) -> list[Judgement] | None:
        """Compare the results with those of the reference on the same operands."""
        node = self._optimized.nodes[position]
        if _unknown(node):
            return None
        return judge(self._optimized, node, operands, found, patches=by_transforms)

    def judge_alone(
        self, graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array | None]
    ) -> list[Judgement] | None:
        """Compare the results with those of the reference on the same operands."""
        return judge(graph, node, operands, found)

    def outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the source graph in numpy."""
        source = self._graph.source
        if any(_unknown(node) for node in source.nodes):
            return {}
        with np.errstate(all="ignore"):
            return interpret(source, inputs)


def _unknown(node: Node) -> bool:
    """Return whether a node is a kernel of the application without a reference."""
    return OPS[node.op].opaque and node.attrs["kernel"].reference is None


class OtherGraph:
    """Another graph of the same operators, with its installed kernels and its device."""

    def __init__(self, graph: MLGraph, other: MLGraph) -> None:
        context_of(other).check_graph(other, "diff")
        self._optimized, self._other = graph.optimized, other
        self.name = f"a graph on {context_of(other).context.description}"
        theirs = other.optimized
        if _shape_of(self._optimized) != _shape_of(theirs):
            raise MLTypeError(
                "the other graph must be of the same operators, after the same passes",
                operator="diff",
                got=f"{len(theirs.nodes)} operators, not {len(self._optimized.nodes)}, or others",
                hint="A context may be given instead, which compiles this graph anew",
            )

    def judge(
        self, position: int, operands: Sequence[Array | None], found: Sequence[Array | None], by_transforms: bool
    ) -> list[Judgement] | None:
        """Compare the results with those of the other graph's kernel, within the bounds of both together."""
        node = self._optimized.nodes[position]
        expected = self._results(position, operands)
        allowed = bounds(self._optimized, node, operands, expected, patches=by_transforms)
        if allowed is None:
            return None
        judged = zip(found, expected, allowed, strict=True)
        return [Judgement(e, 2 * bound, differs(e if a is None else a, e, 2 * bound)) for a, e, bound in judged]

    def judge_alone(
        self, graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array | None]
    ) -> list[Judgement] | None:
        """Judge by the numpy reference: the other graph does not run the operator by itself."""
        return judge(graph, node, operands, found)

    def outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the other graph."""
        return dict(context_of(self._other).context.compute(self._other, inputs))

    def _results(self, position: int, operands: Sequence[Array | None]) -> list[Array]:
        graph, executable = self._other.optimized, executable_of(self._other)
        node = graph.nodes[position]
        if not isinstance(executable, Program):
            return evaluate(graph, node, operands)
        given = {v: a for v, a in zip(node.inputs, operands, strict=True) if v is not None and a is not None}
        made = executable.run_node(position, {v: a for v, a in given.items() if v not in graph.constants})
        types = [graph.type(value) for value in node.outputs]
        return [made[v] if v in made else np.zeros(t.shape, t.numpy) for v, t in zip(node.outputs, types, strict=True)]


def _shape_of(graph: Graph) -> list[tuple[object, ...]]:
    """Return a key that is equal for graphs whose nodes can run for each other."""
    return [
        (node.op, node.inputs, node.outputs, *(graph.type(value) for value in (*node.operands, *node.outputs)))
        for node in graph.nodes
    ]
