"""Pictures of graphs, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..ir.graph import Graph, Node
from ..ops import OPS
from .html import escape, facts_html
from .layered_drawing import draw

MOST_DRAWN = 150
"""The maximum number of operators of a graph that a notebook draws. `debug.view` shows larger graphs."""

_COLORS = {
    "convolution": "#3b82f6",
    "product": "#6366f1",
    "attention": "#a855f7",
    "normalization": "#14b8a6",
    "element-wise": "#f59e0b",
    "movement": "#94a3b8",
    "pooling": "#0ea5e9",
    "reduction": "#10b981",
    "recurrent": "#ec4899",
    "quantization": "#84cc16",
    "other": "#78716c",
    "input": "#22a06b",
    "output": "#d9480f",
}
_HEIGHT, _CHARACTER = 40.0, 7.2


def graph_html(source: Graph, facts: Mapping[str, str], *, destroyed: bool) -> str:
    """Return a compiled graph's inputs and outputs, facts about it, and its picture if the picture is not too large.

    Args:
        source: the graph before any pass.
        facts: further facts: name -> text, which is left out if it is empty.
        destroyed: whether the compiled graph is destroyed.
    """
    ends = {
        what: ", ".join(f"{name}: {source.type(value)}" for name, value in values.items())
        for what, values in (("inputs", source.inputs), ("outputs", source.outputs))
    }
    shown = facts_html("MLGraph" + (", destroyed" if destroyed else ""), {**ends, **facts})
    if len(source.nodes) > MOST_DRAWN:
        return f"{shown}<p>webnn_wgpu.debug.view(graph) draws graphs of this size.</p>"
    return f'{shown}<div style="max-height: 480px; overflow: auto">{graph_svg(source)}</div>'


def graph_svg(graph: Graph) -> str:
    """Return a picture of a graph: inputs, operators with their results' types, outputs."""
    boxes: list[tuple[str, str, str]] = []
    maker: dict[int, int] = {}
    edges: list[tuple[int, int]] = []
    for name, value in graph.inputs.items():
        maker[value] = len(boxes)
        boxes.append((name, str(graph.type(value)), "input"))
    for node in graph.nodes:
        edges += [(maker[value], len(boxes)) for value in dict.fromkeys(node.operands) if value in maker]
        maker.update(dict.fromkeys(node.outputs, len(boxes)))
        boxes.append((_title(node), ", ".join(str(graph.type(o)) for o in node.outputs), OPS[node.op].family))
    for name, value in graph.outputs.items():
        edges += [(maker[value], len(boxes))] if value in maker else []
        boxes.append((name, str(graph.type(value)), "output"))
    sizes = [(max(len(title), len(type_)) * _CHARACTER + 24, _HEIGHT) for title, type_, _ in boxes]
    drawing = draw(sizes, edges)
    parts = [_line(points) for points in drawing.lines if points]
    parts += [_box(box, center, size) for box, center, size in zip(boxes, drawing.centers, sizes, strict=True)]
    width, height = drawing.width + 4, drawing.height + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="-2 -2 {width:.0f} {height:.0f}" font-family="sans-serif">{"".join(parts)}</svg>'
    )


def _title(node: Node) -> str:
    return f"{node.op}: {node.label}" if node.label else node.op


def _line(points: Sequence[tuple[float, float]]) -> str:
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y1 - y0) / 2
        path += f"C{x0:g} {y0 + bend:g} {x1:g} {y1 - bend:g} {x1:g} {y1:g}"
    return f'<path d="{path}" fill="none" stroke="#8d97a8"/>'


def _box(box: tuple[str, str, str], center: tuple[float, float], size: tuple[float, float]) -> str:
    title, type_, kind = box
    (x, y), (width, height) = center, size
    radius = height / 2 if kind in ("input", "output") else 7
    middle = f'<text x="{x:g}" text-anchor="middle"'
    return (
        f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
        f'fill="#fff" stroke="{_COLORS[kind]}" stroke-width="1.6"/>'
        f'{middle} y="{y - 3:g}" font-size="12" font-weight="600" fill="#1c2230">{escape(title)}</text>'
        f'{middle} y="{y + 12:g}" font-size="10.5" fill="#5d6779">{escape(type_)}</text>'
    )
