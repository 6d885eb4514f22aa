"""`to_text`: a graph as readable lines, one per operator."""

from __future__ import annotations

from .graph import Graph, Node


def to_text(graph: Graph, indent: str = "") -> str:
    """Return the graph as text: inputs, constants, one line per operator with types and attributes, outputs."""
    lines = [f"{indent}input {name}: %{v} {graph.type(v)}" for name, v in graph.inputs.items()]
    for v in graph.constants:
        point = graph.values[v].zero_point
        lines.append(f"{indent}constant %{v} {graph.type(v)}" + (f" minus {point}" if point else ""))
    for node in graph.nodes:
        lines.append(indent + _line(graph, node))
        body = node.attrs.get("body")
        if isinstance(body, Graph):
            lines.append(to_text(body, indent + "    "))
    lines += [f"{indent}output {name}: %{v}" for name, v in graph.outputs.items()]
    return "\n".join(lines)


def _line(graph: Graph, node: Node) -> str:
    results = ", ".join(f"%{o} {graph.type(o)}" for o in node.outputs)
    inputs = ", ".join("-" if i is None else f"%{i}" for i in node.inputs)
    attrs = "".join(f", {k}={v}" for k, v in node.attrs.items() if not isinstance(v, Graph))
    return f"{results} = {node.op}({inputs}{attrs})" + (f"  # {node.label}" if node.label else "")
