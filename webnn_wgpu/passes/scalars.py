"""Operators on single elements, which their consumers repeat for each of their own elements. No kernel runs for them alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.graph import Graph
from ..ops import OPS
from ..ops.fused import members_of
from .fuse import MAX_INPUTS, fused_node, reads_of

if TYPE_CHECKING:
    from ..costs import PassCosts, Target
    from ..ir.graph import Node


def repeat_scalars(graph: Graph, target: Target) -> Graph:
    """Compute an element-wise operator on single elements inside the kernels that read its result, if all of them can."""
    costs = target.costs.passes
    if not costs.most_repeated_steps:
        return graph
    nodes = {node.id: node for node in graph.nodes}
    readers: dict[int, list[int]] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.operands):
            readers.setdefault(value, []).append(node.id)
    outputs = set(graph.outputs.values())
    for producer in graph.nodes:
        if outputs.isdisjoint(producer.outputs) and _is_scalar(graph, producer, costs.most_repeated_steps):
            consumers = [nodes[reader] for reader in readers.get(producer.outputs[0], ())]
            joined = [_joined(graph, producer, consumer, costs) for consumer in consumers]
            if joined and all(joined):
                nodes.update((node.id, node) for node in joined if node)
                del nodes[producer.id]
    kept = tuple(nodes[node.id] for node in graph.nodes if node.id in nodes)
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(kept)


def _is_scalar(graph: Graph, node: Node, most_steps: int) -> bool:
    """Return whether a node consists of few element-wise operators, all of them on single elements."""
    members = members_of(node, OPS)
    if members.anchor or len(members.chain) > most_steps or any(OPS[step.op].elementwise is None for step in members.chain):
        return False
    return all(graph.type(value).num_elements == 1 for value in (*node.operands, *node.outputs))


def _joined(graph: Graph, producer: Node, consumer: Node, costs: PassCosts) -> Node | None:
    """Return a consumer that computes its scalar operand by itself, or None if its kernel cannot."""
    members = members_of(consumer, OPS)
    chain, front = members.chain, [node for node in (members.transpose, members.anchor) if node]
    read_before = any(value in producer.outputs for node in front for value in node.operands)
    if not chain or read_before or any(OPS[step.op].elementwise is None for step in chain):
        return None
    if graph.type(consumer.outputs[0]).num_elements == 1 or len(consumer.outputs) > 1:
        return None
    group = [*front, *members_of(producer, OPS).chain, *chain]
    if len(group) > costs.most_fused_steps or len(reads_of(group)) > MAX_INPUTS:
        return None
    bodies = [body for node in (producer, consumer) if isinstance(body := node.attrs.get("body"), Graph)]
    inner = {number: value for body in bodies for number, value in body.values.items()}
    return replace(fused_node(graph, group, inner), label=consumer.label)
