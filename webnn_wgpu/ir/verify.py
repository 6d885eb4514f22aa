"""`verify`: the rules that every graph satisfies. Tests apply it after every pass."""

from __future__ import annotations

from .graph import Graph, Node


class GraphError(AssertionError):
    """A graph breaks one of its own rules: a pass is wrong, not the user's program."""


def verify(graph: Graph) -> Graph:
    """Return `graph` if it is well-formed.

    Raises:
        GraphError: a value is unknown, has several producers, or is used before its producer, or an output is missing. A
            constant's array does not have its value's type, or a node's body is malformed or does not have the node's types.
    """
    for value in (*graph.inputs.values(), *graph.constants, *(v for n in graph.nodes for v in (*n.operands, *n.outputs))):
        if value not in graph.values or graph.values[value].id != value:
            raise GraphError(f"%{value} has no type")
    known = set(graph.inputs.values()) | set(graph.constants)
    if len(known) != len(graph.inputs) + len(graph.constants):
        raise GraphError("a value is both an input and a constant, or named twice")
    for value, array in graph.constants.items():
        wanted = graph.type(value)
        if array.dtype != wanted.numpy or array.shape != wanted.shape:
            raise GraphError(f"constant %{value} is {array.dtype}{list(array.shape)}, its value is {wanted}")
    seen: set[int] = set()
    for node in graph.nodes:
        if node.id in seen:
            raise GraphError(f"node {node.id} stands twice")
        seen.add(node.id)
        for value in node.operands:
            if value not in known:
                raise GraphError(f"{node.op} (node {node.id}) reads %{value} before it is made")
        for value in node.outputs:
            if value in known:
                raise GraphError(f"{node.op} (node {node.id}) makes %{value}, which exists")
            known.add(value)
        body = node.attrs.get("body")
        if isinstance(body, Graph):
            _verify_body(graph, node, body)
    for name, value in graph.outputs.items():
        if value not in known:
            raise GraphError(f"output '{name}' is %{value}, which nothing makes")
    return graph


def _verify_body(graph: Graph, node: Node, body: Graph) -> None:
    """Check a body, and that the node's operands and outputs have the types of its inputs and outputs, by position."""
    verify(body)
    for kind, outer, inner in (("input", node.operands, body.inputs), ("output", node.outputs, body.outputs)):
        if set(inner) != {str(i) for i in range(len(outer))}:
            raise GraphError(f"{node.op} (node {node.id}) has {len(outer)} {kind}s, its body {sorted(inner)}")
        for i, value in enumerate(outer):
            if graph.type(value) != body.type(inner[str(i)]):
                raise GraphError(f"{kind} {i} of {node.op} (node {node.id}) is not of its body's type")
