"""Transposes of several results of one producer, such as the keys and values of attention, in one kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ..costs import Target
from ..ir.graph import Graph
from ..ops.strided import TRANSPOSE
from ..ops.transposes import MOST_TENSORS, TRANSPOSES, transposed_together
from .heads import selects_range
from .rewriting import joined

_WITHIN = 16
"""Most nodes by which a transpose may move forward. Until it is read there, its result takes memory that nothing had before."""


def merge_transposes(graph: Graph, target: Target) -> Graph:
    """Merge transposes of results of one producer into one node, which stands in the place of the first."""
    if not target.costs.passes.merges_transposes:
        return graph
    makers = {output: i for i, node in enumerate(graph.nodes) for output in node.outputs}
    outputs = frozenset(graph.outputs.values())
    groups: dict[object, list[list[int]]] = {}
    for i, node in enumerate(graph.nodes):
        if node.op != TRANSPOSE.name:
            continue
        (value,), permutation = node.operands, node.attrs["permutation"]
        if not transposed_together(graph.type(value), permutation, target):
            continue
        found = groups.setdefault((_producer(graph, makers, value), graph.type(value), permutation, node.block), [])
        # Outputs of the graph have memory of their own all the time.
        if found and len(found[-1]) < MOST_TENSORS:
            first = found[-1][0]
            if makers.get(value, -1) < first and (i - first <= _WITHIN or node.outputs[0] in outputs):
                found[-1].append(i)
                continue
        found.append([i])
    several = [group for found in groups.values() for group in found if len(group) > 1]
    if not several:
        return graph
    merged = {group[0]: joined(TRANSPOSES.name, [graph.nodes[at] for at in group], 0) for group in several}
    dropped = {at for group in several for at in group[1:]}
    return graph.with_nodes(tuple(merged.get(i, node) for i, node in enumerate(graph.nodes) if i not in dropped))


def _producer(graph: Graph, makers: Mapping[int, int], value: int) -> object:
    """Return a key of the node whose result a value is, or a range or view of. A value without such a node is its own key."""
    while value in makers and selects_range(graph.nodes[makers[value]]):
        value = graph.nodes[makers[value]].operands[0]
    return ("node", makers[value]) if value in makers else ("value", value)
