"""Constant folding, through the reference."""

from __future__ import annotations

from ..costs import Target
from ..ir.graph import Array, Graph, Node, frozen_array
from ..ops import operator
from ..reference import evaluate


def fold_constants(graph: Graph, target: Target) -> Graph:
    """Replace nodes whose operands are all constants by their value, unless that is much larger than they are."""
    most = target.costs.passes.most_folded_growth_bytes
    constants: dict[int, Array] = dict(graph.constants)
    kept: list[Node] = []
    for node in graph.nodes:
        known = all(value in constants for value in node.operands) and not operator(node.op).opaque
        made = sum(graph.type(o).size_bytes for o in node.outputs)
        read = sum(graph.type(o).size_bytes for o in node.operands)
        if not known or made - read > most:
            kept.append(node)
            continue
        results = evaluate(graph, node, [None if i is None else constants[i] for i in node.inputs])
        constants.update({o: frozen_array(r) for o, r in zip(node.outputs, results, strict=True)})
    if len(kept) == len(graph.nodes):
        return graph
    return graph.with_nodes(tuple(kept), constants=constants)
