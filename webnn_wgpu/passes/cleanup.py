"""Passes that only take nodes away: dead ones, identities, identical ones."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from ..ir.graph import Graph, Node, substitute


def drop_dead_nodes(graph: Graph) -> Graph:
    """Drop the nodes that no output depends on."""
    needed = set(graph.outputs.values())
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.operands)
            kept.append(node)
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(tuple(reversed(kept)))


def drop_identities(graph: Graph) -> Graph:
    """Let readers of an identity, or of a reshape to the same shape, read its input instead."""
    replaced: dict[int, int] = {}
    kept: list[Node] = []
    for original in graph.nodes:
        node = substitute(original, replaced)
        same = node.op in ("identity", "reshape") and graph.type(node.operands[0]) == graph.type(node.outputs[0])
        if same:
            replaced[node.outputs[0]] = node.operands[0]
        else:
            kept.append(node)
    if not replaced:
        return graph
    outputs = {name: replaced.get(value, value) for name, value in graph.outputs.items()}
    return graph.with_nodes(tuple(kept), outputs=outputs)


def merge_identical_nodes(graph: Graph) -> Graph:
    """Compute the same operator on the same operands once; the survivor carries all origins."""
    replaced: dict[int, int] = {}
    first: dict[Hashable, int] = {}
    kept: list[Node] = []
    for original in graph.nodes:
        node = substitute(original, replaced)
        key = (node.op, node.inputs, tuple(sorted(node.attrs.items())), tuple(graph.type(o) for o in node.outputs))
        at = first.get(key)
        if at is None:
            first[key] = len(kept)
            kept.append(node)
            continue
        replaced.update(zip(node.outputs, kept[at].outputs, strict=True))
        kept[at] = replace(kept[at], origins=(*kept[at].origins, *node.origins))
    if not replaced:
        return graph
    outputs = {name: replaced.get(value, value) for name, value in graph.outputs.items()}
    return graph.with_nodes(tuple(kept), outputs=outputs)
