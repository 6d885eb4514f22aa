"""Sums of the columns of several tensors of one type, such as the gradients of biases, in one kernel."""

from __future__ import annotations

from ..core.data_types import FLOATS
from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops.column_sums import COLUMN_SUMS, MOST_TENSORS, sums_together
from ..ops.reduce import REDUCE_SUM
from .rewriting import joined

_WITHIN = 16
"""Most nodes between the first and the last of the sums: their operands stay in memory until the last one."""


def merge_sums(graph: Graph, target: Target) -> Graph:
    """Merge sums of columns of tensors of one type into one node, which stands in the place of the last."""
    waiting: dict[object, list[int]] = {}
    groups: list[list[int]] = []

    def end(key: object) -> None:
        if len(group := waiting.pop(key)) > 1:
            groups.append(group)

    for i, node in enumerate(graph.nodes):
        for key, group in list(waiting.items()):
            made = {value for at in group for value in graph.nodes[at].outputs}
            if made.intersection(node.operands) or i - group[0] > _WITHIN or len(group) == MOST_TENSORS:
                end(key)
        if node.op == REDUCE_SUM and _sums_columns(graph, node, target):
            waiting.setdefault((graph.type(node.operands[0]), *node.attrs.values()), []).append(i)
    for key in list(waiting):
        end(key)
    if not groups:
        return graph
    merged = {group[-1]: joined(COLUMN_SUMS.name, [graph.nodes[at] for at in group], -1) for group in groups}
    dropped = {at for group in groups for at in group[:-1]}
    return graph.with_nodes(tuple(merged.get(i, node) for i, node in enumerate(graph.nodes) if i not in dropped))


def _sums_columns(graph: Graph, node: Node, target: Target) -> bool:
    type_, axes = graph.type(node.operands[0]), node.attrs["axes"]
    return bool(axes) and type_.data_type in FLOATS and sums_together(type_, axes, target)
