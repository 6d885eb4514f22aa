"""Gradients that are added to the gradient of a normalization: those that pass by it, in networks with residuals."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir.graph import Graph, Node
from ..ops.elementwise import ADD
from ..ops.normalization_gradient import NORMALIZATION_GRADIENT

_ADDEND = 3
"""The index of the addend among the operands."""


def add_to_gradients(graph: Graph) -> Graph:
    """Let the kernel of a normalization's gradient add a tensor that exists before it."""
    times_read = Counter(value for node in graph.nodes for value in node.operands)
    times_read.update(graph.outputs.values())
    makers = {output: i for i, node in enumerate(graph.nodes) for output in node.outputs}
    nodes = dict(enumerate(graph.nodes))
    for i, node in enumerate(graph.nodes):
        if node.op != ADD.name:
            continue
        for value, other in (node.operands, node.operands[::-1]):
            at = makers.get(value, -1)
            maker = nodes.get(at)
            if maker is None or maker.op != NORMALIZATION_GRADIENT.name or maker.inputs[_ADDEND] is not None:
                continue
            alone = maker.outputs[0] == value and times_read[value] == 1
            if alone and graph.type(other) == graph.type(value) and makers.get(other, -1) < at:
                nodes[at] = _with_addend(maker, node, other)
                del nodes[i]
                break
    return graph if len(nodes) == len(graph.nodes) else graph.with_nodes(tuple(nodes.values()))


def _with_addend(gradient: Node, sum_: Node, addend: int) -> Node:
    return replace(
        gradient,
        inputs=(*gradient.inputs[:_ADDEND], addend),
        outputs=(sum_.outputs[0], *gradient.outputs[1:]),
        origins=(*gradient.origins, *sum_.origins),
    )
