"""`verify`: the rules every graph keeps; tests run it after every pass."""

from __future__ import annotations

from .graph import Graph


class GraphError(AssertionError):
    """A graph breaks one of its own rules: a pass is wrong, not the user's program."""


def verify(graph: Graph) -> Graph:
    """Return `graph` if it is well formed.

    Raises:
        GraphError: a value is used before it is made, made twice, unknown, an output is missing, or a constant's array does
            not have its value's type.
    """
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
    for name, value in graph.outputs.items():
        if value not in known:
            raise GraphError(f"output '{name}' is %{value}, which nothing makes")
    for value in known:
        if value not in graph.values or graph.values[value].id != value:
            raise GraphError(f"%{value} has no type")
    return graph
