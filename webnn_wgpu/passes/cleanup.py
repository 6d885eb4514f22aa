"""Passes that only take nodes away: dead ones, identities, identical ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from ..ir.graph import Graph, Node, Origin, substitute
from ..ops import OPS

_COMPARED_BYTES = 64
"""The size of the largest constants that are compared by their bytes. Most equal constants are numbers of formulas."""


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
    """Let consumers of an identity, or of a reshape, cast, expand, ... without effect, read its input directly."""
    replaced: dict[int, int] = {}
    origins: dict[int, tuple[Origin, ...]] = {}
    kept: list[Node] = []
    for original in graph.nodes:
        node = substitute(original, replaced)
        if OPS[node.op].copies and [graph.type(v) for v in node.operands] == [graph.type(v) for v in node.outputs]:
            replaced[node.outputs[0]] = node.operands[0]
            origins[node.outputs[0]] = node.origins
        else:
            kept.append(node)
    return _without(graph, kept, replaced, origins)


def merge_identical_nodes(graph: Graph) -> Graph:
    """Compute the same operator on the same operands, or on equal small constants, once. The remaining node has all origins."""
    replaced: dict[int, int] = {}
    constants = _small_constants(graph)
    first: dict[Hashable, int] = {}
    kept: list[Node] = []
    for original in graph.nodes:
        node = substitute(original, replaced)
        # By their text, so that 0.0 and -0.0, which are equal, stay apart.
        attrs = frozenset((name, repr(value) if isinstance(value, float) else value) for name, value in node.attrs.items())
        operands = tuple(None if value is None else constants.get(value, value) for value in node.inputs)
        key = (node.op, operands, node.block, attrs, tuple(graph.type(o) for o in node.outputs))
        at = first.get(key)
        if at is None:
            first[key] = len(kept)
            kept.append(node)
            continue
        replaced.update(zip(node.outputs, kept[at].outputs, strict=True))
        kept[at] = replace(kept[at], origins=(*kept[at].origins, *node.origins))
    origins = {gone: graph.values[gone].origins for gone in replaced}
    return _without(graph, kept, replaced, origins)


def _small_constants(graph: Graph) -> Mapping[int, Hashable]:
    """Return the types and bytes of small constants, by which equal ones are found."""
    small = {value: array for value, array in graph.constants.items() if array.nbytes <= _COMPARED_BYTES}
    return {value: (graph.type(value), array.tobytes()) for value, array in small.items()}


def _without(graph: Graph, kept: list[Node], replaced: Mapping[int, int], origins: Mapping[int, tuple[Origin, ...]]) -> Graph:
    """Return the graph of the kept nodes. A value that replaces another one gets the given origins of that value."""
    if not replaced:
        return graph
    values = dict(graph.values)
    for gone, value in replaced.items():
        values[value] = replace(values[value], origins=(*values[value].origins, *origins[gone]))
    outputs = {name: replaced.get(value, value) for name, value in graph.outputs.items()}
    return graph.with_nodes(tuple(kept), values=values, outputs=outputs)
