"""Smaller graphs that fail as a large one does: fewer or earlier outputs, and nodes whose results become inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from webnn_wgpu.ir.graph import frozen_array
from webnn_wgpu.passes.cleanup import drop_dead_nodes
from webnn_wgpu.reference import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from webnn_wgpu.ir.graph import Array, Graph, Node

    Case = tuple[Graph, Mapping[str, Array]]


def shrink(graph: Graph, feeds: Mapping[str, Array], fails: Callable[[Graph, Mapping[str, Array]], bool]) -> Case:
    """Return a graph, and what to feed it, from which nothing can be taken without its ceasing to fail."""
    case: Case = (graph, feeds)
    found = True
    while found:
        found = False
        for smaller in _smaller(*case):
            if fails(*smaller):
                case, found = smaller, True
                break
    return case


def _smaller(graph: Graph, feeds: Mapping[str, Array]) -> Iterator[Case]:
    """Yield what is tried, the greatest savings first."""
    if len(graph.outputs) > 1:
        for name, value in graph.outputs.items():
            yield _cleaned(replace(graph, outputs={name: value}), feeds)
        for name in graph.outputs:
            yield _cleaned(replace(graph, outputs={n: v for n, v in graph.outputs.items() if n != name}), feeds)
    for node in graph.nodes[:-1]:
        yield _cleaned(replace(graph, outputs={str(i): o for i, o in enumerate(node.outputs)}), feeds)
    values = _interpreted(graph, feeds)
    for node in reversed(graph.nodes):
        if not set(graph.outputs.values()) <= set(node.outputs):
            yield _cleaned(*_cut(graph, feeds, node, values))


def _cut(graph: Graph, feeds: Mapping[str, Array], node: Node, values: Mapping[int, Array]) -> Case:
    """Return the graph without a node, whose results are inputs instead."""
    made = {f"v{o}": o for o in node.outputs}
    kept = tuple(n for n in graph.nodes if n is not node)
    outputs = {n: v for n, v in graph.outputs.items() if v not in node.outputs}
    cut = replace(graph, inputs={**graph.inputs, **made}, nodes=kept, outputs=outputs)
    return cut, {**feeds, **{name: frozen_array(values[o]) for name, o in made.items()}}


def _interpreted(graph: Graph, feeds: Mapping[str, Array]) -> dict[int, Array]:
    values: dict[int, Array] = dict(graph.constants) | {v: feeds[n] for n, v in graph.inputs.items()}
    for node in graph.nodes:
        operands = [None if i is None else values[i] for i in node.inputs]
        values.update(zip(node.outputs, evaluate(graph, node, operands), strict=True))
    return values


def _cleaned(graph: Graph, feeds: Mapping[str, Array]) -> Case:
    """Drop what no output needs: nodes, inputs, constants."""
    graph = drop_dead_nodes(graph)
    used = {v for node in graph.nodes for v in node.operands} | set(graph.outputs.values())
    inputs = {n: v for n, v in graph.inputs.items() if v in used}
    constants = {v: a for v, a in graph.constants.items() if v in used}
    return replace(graph, inputs=inputs, constants=constants), {n: feeds[n] for n in inputs}
