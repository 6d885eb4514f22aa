"""Neighboring element-wise kernels that read the same tensors become one kernel with several results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    kept: list[Node] = []
    for node in graph.nodes:
        joined = _joined(graph, kept[-1], node, target) if kept else None
        if joined is None:
            kept.append(node)
        else:
            kept[-1] = joined
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(tuple(kept))


def _joined(graph: Graph, first: Node, second: Node, target: Target) -> Node | None:
    """Return one node with the results of two nodes, or None if one kernel cannot compute both or reads nothing twice."""
    if not (_is_elementwise(first) and _is_elementwise(second)):
        return None
    needed = _read_after(graph, second)
    results = [value for value in (*first.outputs, *second.outputs) if value in needed]
    shape, group = graph.type(second.outputs[0]).shape, [*_members(first), *_members(second)]
    common = set(second.operands) & {*first.operands, *first.outputs}
    if not any(graph.type(value).shape == shape for value in common) or len(group) > target.costs.passes.most_fused_steps:
        return None
    if any(
        graph.type(value).shape != shape or not fits_binding(graph.type(value), target.caps)
        for value in (*first.outputs, *results)
    ):
        return None
    reads = [value for value in reads_of(group) if whole_number(graph, value) is None]
    beyond = len(reads) + len(results) - _MOST_BUFFERS
    if beyond > 0 and beyond > _replaced(graph, reads, results, needed):
        return None
    makers = {output: node for node in group for output in node.outputs}
    bodies = [node.attrs["body"] for node in (first, second) if "body" in node.attrs]
    inner = {number: value for body in bodies for number, value in body.values.items()}
    return fused_node(graph, group, inner, [makers[value] for value in results])


def _is_elementwise(node: Node) -> bool:
    transpose, anchor, chain = members_of(node, OPS)
    return transpose is None and anchor is None and all(OPS[step.op].elementwise is not None for step in chain)


def _members(node: Node) -> Sequence[Node]:
    return members_of(node, OPS).chain


def _read_after(graph: Graph, last: Node) -> Collection[int]:
    """Return the outputs of a graph, and the values that nodes after a node read."""
    after = graph.nodes[graph.nodes.index(last) + 1 :]
    return {value for node in after for value in node.operands} | set(graph.outputs.values())


def _replaced(graph: Graph, reads: Sequence[int], results: Sequence[int], needed: Collection[int]) -> int:
    """Return how many results replace an input of the graph that the kernel reads, and need no buffer beside it.

    The input is not `needed` later, and nor is a view of it, and the kernel reads no view of it.
    """
    sources = {graph.outputs[name]: graph.inputs[source] for name, source in graph.aliases.items()}
    viewed: dict[int, set[int]] = {}
    for node in graph.nodes:
        if OPS[node.op].view or OPS[node.op].movement is not None:
            for value in node.operands:
                viewed.setdefault(value, set()).update(node.outputs)
    found = [sources[value] for value in results if sources.get(value) in reads]
    return sum(source not in needed and _views(source, viewed).isdisjoint((*needed, *reads)) for source in found)


def _views(value: int, viewed: dict[int, set[int]]) -> set[int]:
    """Return all that may share the memory of a value."""
    found, waiting = set[int](), [value]
    while waiting:
        new = viewed.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
