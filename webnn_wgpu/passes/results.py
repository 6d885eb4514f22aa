"""Neighboring element-wise kernels that read the same tensors become one kernel with several results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ..core.caps import DEFAULT_LIMITS
from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops._quads import fits_binding
from ..ops.fused import members_of, whole_number
from .fuse import fused_node, reads_of

_MOST_BUFFERS = DEFAULT_LIMITS["max-storage-buffers-per-shader-stage"]


def merge_results(graph: Graph, target: Target) -> Graph:
    """Compute element-wise operators of one shape in one kernel, if they follow each other and read a tensor in common.

    Such are the updates of a parameter and of the moving means of its gradient. The kernel reads each tensor once.
    """
    merger, kept = _Merger(graph, target), list[Node]()
    for position, node in enumerate(graph.nodes):
        joined = merger.joined(kept[-1], node, position) if kept else None
        if joined is None:
            kept.append(node)
        else:
            kept[-1] = joined
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(tuple(kept))


class _Merger:
    """A graph whose element-wise nodes are joined with the nodes before them."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self._graph, self._target = graph, target
        self._last_reader = {value: i for i, node in enumerate(graph.nodes) for value in node.operands}
        self._last_reader.update(dict.fromkeys(graph.outputs.values(), len(graph.nodes)))

    def joined(self, first: Node, second: Node, position: int) -> Node | None:
        """Return one node with the results of two nodes, or None if one kernel cannot compute both or reads nothing twice.

        Args:
            first: a node, or several that were joined.
            second: the next node of the graph.
            position: the position of the second one.
        """
        graph, target = self._graph, self._target
        if not (_is_elementwise(first) and _is_elementwise(second)):
            return None
        shape, group = graph.type(second.outputs[0]).shape, [*_members(first), *_members(second)]
        common = set(second.operands) & {*first.operands, *first.outputs}
        if not any(graph.type(value).shape == shape for value in common) or len(group) > target.costs.passes.most_fused_steps:
            return None
        results = [value for value in (*first.outputs, *second.outputs) if self._needed(value, position)]
        if any(
            graph.type(value).shape != shape or not fits_binding(graph.type(value), target.caps)
            for value in (*first.outputs, *results)
        ):
            return None
        reads = [value for value in reads_of(group) if whole_number(graph, value) is None]
        beyond = len(reads) + len(results) - _MOST_BUFFERS
        if beyond > 0 and beyond > self._replaced(reads, results, position):
            return None
        makers = {output: node for node in group for output in node.outputs}
        bodies = [node.attrs["body"] for node in (first, second) if "body" in node.attrs]
        inner = {number: value for body in bodies for number, value in body.values.items()}
        return fused_node(graph, group, inner, [makers[value] for value in results])

    def _needed(self, value: int, position: int) -> bool:
        """Return whether a value is an output, or a node behind a position reads it."""
        return self._last_reader.get(value, -1) > position

    def _replaced(self, reads: Sequence[int], results: Sequence[int], position: int) -> int:
        """Return how many results replace an input of the graph that the kernel reads, and need no buffer beside it.

        No node behind the position reads the input or a view of it, and the kernel reads no view of it.
        """
        graph = self._graph
        sources = {graph.outputs[name]: graph.inputs[source] for name, source in graph.aliases.items()}
        found = [sources[value] for value in results if sources.get(value) in reads]
        return sum(
            not self._needed(source, position)
            and not any(self._needed(view, position) or view in reads for view in _views(source, self._viewed))
            for source in found
        )

    @cached_property
    def _viewed(self) -> dict[int, set[int]]:
        """The values that may share the memory of a value."""
        viewed: dict[int, set[int]] = {}
        for node in self._graph.nodes:
            if OPS[node.op].view or OPS[node.op].movement is not None:
                for value in node.operands:
                    viewed.setdefault(value, set()).update(node.outputs)
        return viewed


def _is_elementwise(node: Node) -> bool:
    members = members_of(node, OPS)
    elementwise = all(OPS[step.op].elementwise is not None for step in members.chain)
    return members.transpose is None and members.anchor is None and elementwise


def _members(node: Node) -> Sequence[Node]:
    return members_of(node, OPS).chain


def _views(value: int, viewed: Mapping[int, set[int]]) -> set[int]:
    """Return all that may share the memory of a value, directly or through others."""
    found, waiting = set[int](), [value]
    while waiting:
        new = viewed.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
