"""`to_html`: a graph as a page that needs nothing else."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np

from webnn_wgpu.api.graph import Graph, MLGraph

from .arguments import check_graph

CELL = (190, 70)
"""Width and height of a place in the drawing, in pixels."""
LISTED = 200
"""Characters of an option that are shown, at most."""


def to_html(graph: MLGraph, title: str = "graph") -> str:
    """Return a page that shows a graph as it was built: pan and zoom, search, operators with their options, constants.

    The page loads nothing. All names and labels are text, never markup.

    Args:
        graph: the graph.
        title: the page's title.

    Returns:
        The text of the page.

    Raises:
        MLTypeError: `graph` is no graph.

    Example:
        >>> from webnn_wgpu.exporters.html import to_html
        >>> page = to_html(b.build({"y": b.relu(x, label="<b>")}))
        >>> "<b>" in page, "src=" in page
        (False, False)
    """
    check_graph(graph, "to_html")
    data = json.dumps({"title": title, **_drawing(graph.source)}, sort_keys=True)
    # Within a script no text may look like markup.
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    page = files("webnn_wgpu.exporters").joinpath("page.html").read_text("utf-8")
    return page.replace("/*DATA*/null", data.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def _drawing(source: Graph) -> dict[str, Any]:
    """Return the boxes of a graph with their places, and the lines between them."""
    boxes: list[dict[str, Any]] = []
    of_value: dict[int, int] = {}
    ranks: list[int] = []
    lines: list[tuple[int, int]] = []

    def add(rank: int, **box: Any) -> int:
        boxes.append(box)
        ranks.append(rank)
        return len(boxes) - 1

    for name, value in source.inputs.items():
        of_value[value] = add(0, kind="input", title=name, type=str(source.type(value)))
    for i, node in enumerate(source.nodes):
        operands = [_operand(source, value) for value in node.operands]
        makers = [of_value[value] for value in node.operands if value in of_value]
        box = add(
            1 + max((ranks[maker] for maker in makers), default=0),
            kind="operator",
            title=node.op,
            label=node.label or f"{node.op}_{i}",
            type=", ".join(str(source.type(value)) for value in node.outputs),
            operands=operands,
            options={name: str(value)[:LISTED] for name, value in node.attrs.items() if value is not None},
        )
        lines += [(maker, box) for maker in dict.fromkeys(makers)]
        of_value.update(dict.fromkeys(node.outputs, box))
    for name, value in source.outputs.items():
        maker = of_value.get(value)
        rank = 1 + (0 if maker is None else ranks[maker])
        box = add(rank, kind="output", title=name, type=str(source.type(value)))
        if maker is not None:
            lines.append((maker, box))
    for box, (x, y) in zip(boxes, _places(ranks, lines), strict=True):
        box |= {"x": x * CELL[0], "y": y * CELL[1]}
    return {"boxes": boxes, "lines": lines}


def _places(ranks: list[int], lines: list[tuple[int, int]]) -> list[tuple[float, int]]:
    """Return a column and a row for each box: its rank, and its place among the boxes of that rank.

    Boxes of a rank are ordered by the mean of their makers' columns.
    """
    makers: dict[int, list[int]] = {}
    for maker, box in lines:
        makers.setdefault(box, []).append(maker)
    rows: dict[int, list[int]] = {}
    for box, rank in enumerate(ranks):
        rows.setdefault(rank, []).append(box)
    columns: dict[int, float] = {}
    for rank in sorted(rows):
        wanted = {b: float(np.mean([columns[m] for m in makers[b]])) if b in makers else 0.0 for b in rows[rank]}
        last = -np.inf
        for box in sorted(rows[rank], key=lambda b: (wanted[b], b)):
            last = max(
                last + 1, wanted[box] - (len(rows[rank]) - 1) / 2 if len(rows[rank]) > 1 and last == -np.inf else wanted[box]
            )
            columns[box] = float(last)
    return [(columns[box], rank) for box, rank in enumerate(ranks)]


def _operand(source: Graph, value: int) -> list[str]:
    """Return the description of an operand: its type, and of a constant its range."""
    type_ = str(source.type(value))
    array = source.constants.get(value)
    if array is None:
        return [type_, ""]
    numbers = array.astype(np.float64) if array.size else np.zeros(0)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return [type_, "constant"]
    lost = numbers.size - finite.size
    text = f"constant, {finite.min():.6g} to {finite.max():.6g}, mean {finite.mean():.6g}"
    return [type_, text + (f", {lost} not finite" if lost else "")]
