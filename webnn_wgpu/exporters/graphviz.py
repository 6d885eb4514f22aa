"""`to_dot`: a graph in Graphviz' language, drawn by `dot -Tsvg graph.dot`."""

from __future__ import annotations

from collections.abc import Mapping

from webnn_wgpu.api.graph import MLGraph

from .arguments import check_graph

_COLORS = {"oval": "#d0e6ff", "diamond": "#f0f0f0", "doublecircle": "#d6f5d6"}
"""Of inputs, constants and outputs, whose shapes are those that rustnn draws them in."""


def to_dot(graph: MLGraph, *, optimized: bool = False) -> str:
    r"""Return a graph in Graphviz' language: inputs oval, constants diamonds, outputs in double circles, operators in boxes.

    Args:
        graph: the graph.
        optimized: whether to take it as the passes left it, with fused groups as one box, and not as it was built.

    Returns:
        The text of the drawing.

    Raises:
        MLTypeError: `graph` is no graph.

    Example:
        >>> from webnn_wgpu.exporters.graphviz import to_dot
        >>> print(to_dot(b.build({"y": b.relu(x, label='a "rectifier"')})))
        digraph webnn {
          rankdir=LR;
          node [fontname="Helvetica"];
          edge [fontname="Helvetica"];
        <BLANKLINE>
          input_0 [shape=oval,style=filled,fillcolor="#d0e6ff",label="x\nfloat32[2, 3]"];
          op_0 [shape=box,style=rounded,label="relu\na \"rectifier\""];
          input_0 -> op_0 [label="float32[2, 3]"];
          output_0 [shape=doublecircle,style=filled,fillcolor="#d6f5d6",label="y\nfloat32[2, 3]"];
          op_0 -> output_0 [label="float32[2, 3]"];
        }
    """
    check_graph(graph, "to_dot")
    drawn = graph.optimized if optimized else graph.source
    lines = ["digraph webnn {", "  rankdir=LR;", '  node [fontname="Helvetica"];', '  edge [fontname="Helvetica"];', ""]
    names: dict[int, str] = {}

    def end(name: str, shape: str, *label: str) -> None:
        lines.append(f"  {name} [shape={shape},style=filled,fillcolor={_quoted(_COLORS[shape])},label={_quoted(*label)}];")

    def line(value: int, name: str) -> None:
        lines.append(f"  {names[value]} -> {name} [label={_quoted(str(drawn.type(value)))}];")

    for i, (name, value) in enumerate(drawn.inputs.items()):
        names[value] = f"input_{i}"
        end(names[value], "oval", name, str(drawn.type(value)))
    for i, node in enumerate(drawn.nodes):
        lines.append(f"  op_{i} [shape=box,style=rounded,label={_quoted(_operators(node.op, node.attrs), node.label)}];")
        for value in dict.fromkeys(node.operands):
            if value not in names:
                names[value] = f"constant_{value}"
                end(names[value], "diamond", str(drawn.type(value)))
            line(value, f"op_{i}")
        names.update(dict.fromkeys(node.outputs, f"op_{i}"))
    for i, (name, value) in enumerate(drawn.outputs.items()):
        end(f"output_{i}", "doublecircle", name, str(drawn.type(value)))
        if value not in names:
            names[value] = f"constant_{value}"
            end(names[value], "diamond", str(drawn.type(value)))
        line(value, f"output_{i}")
    return "\n".join([*lines, "}"])


def _operators(op: str, attrs: Mapping[str, object]) -> str:
    nodes = getattr(attrs.get("body"), "nodes", ())
    return " + ".join(node.op for node in nodes) or op


def _quoted(*lines: str) -> str:
    r"""Return lines of a label as a quoted string: backslashes, which begin Graphviz' own escapes, and quotes are escaped.

    >>> print(_quoted("a\\N", 'say "hi"'))
    "a\\N\nsay \"hi\""
    """
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for line in lines if line]
    return '"' + "\\n".join(escaped) + '"'
