"""The data of one graph for the page's script: boxes and lines, kernels and their sources, memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from ...api.graph import MLGraph
from ...display.layered_drawing import draw
from ...inspection import GraphProfile, KernelTime
from ...inspection.kernels import Kernel
from ...inspection.profile import figures
from ...ir.graph import Graph, Node, file_places
from ...ops import OPS
from ...plan import ExecutionPlan
from ...plan.labels import node_label
from ..diff import GraphDiff

Record = dict[str, Any]

_CHARACTER, _SMALL = 9.0, 6.6
"""Width of a character of a box's first line, and of the others."""

_NARROWEST, _WIDEST = 84.0, 250.0
_MOST = 1e30
"""The largest error on the page: JSON has no infinity."""

_HEIGHTS = {"op": 54.0, "input": 38.0, "output": 38.0}


def scene(graph: MLGraph, name: str, profile: GraphProfile | None, diff: GraphDiff | None) -> Record:
    """Return the data of a graph for the page.

    Args:
        graph: the graph.
        name: the name of the graph on the page.
        profile: the times of its kernels.
        diff: the errors of its operators.
    """
    plan, optimized = graph.plan, graph.optimized
    timed = {each.name: each for each in profile.kernels} if profile else {}
    kernels = list(graph.kernels.values())
    sources = list(dict.fromkeys(kernel.wgsl for kernel in kernels))
    by_node: dict[int, list[int]] = {}
    by_origin: dict[int, list[int]] = {}
    for i, planned in enumerate(plan.dispatches if plan else ()):
        if planned.node is not None:
            by_node.setdefault(optimized.nodes[planned.node].id, []).append(i)
        for origin in planned.origins:
            by_origin.setdefault(origin.node, []).append(i)
    kept = {origin.node for node in optimized.nodes for origin in node.origins}
    labels = {node.id: node_label(node) for node in graph.source.nodes}
    errors = _errors(diff)
    return {
        "name": name,
        "built": _picture(graph.source, by_origin, labels, errors, kept),
        "run": _picture(optimized, by_node, labels, errors),
        "kernels": [
            {**_kernel(kernel, sources.index(kernel.wgsl)), **_times(profile, timed.get(kernel.name))} for kernel in kernels
        ],
        "sources": sources,
        "memory": _memory(plan, optimized, labels) if plan else None,
        "passes": [[*astuple(report)[:4], list(report.places)] for report in graph.passes],
        "summary": plan.summary() if plan else "the numpy reference has no kernels",
    }


def _errors(diff: GraphDiff | None) -> dict[str, float]:
    """Return the error of each operator relative to its bound."""
    errors: dict[str, float] = {}
    for each in diff.operators if diff else ():
        share = min(each.share, _MOST) if each.share == each.share else _MOST
        errors |= {label: max(share, errors.get(label, 0.0)) for label in (each.label, *each.labels)}
    return errors


def _picture(
    graph: Graph,
    kernels: Mapping[int, Sequence[int]],
    labels: Mapping[int, str],
    errors: Mapping[str, float],
    kept: set[int] | None = None,
) -> Record:
    """Return boxes and lines: inputs, operators in their order, outputs."""
    boxes: list[Record] = []
    maker: dict[int, int] = {}
    edges: list[tuple[int, int, int]] = []

    def read(values: Iterable[int]) -> None:
        edges.extend((maker[v], len(boxes), v) for v in dict.fromkeys(values) if v in maker)

    for name, value in graph.inputs.items():
        maker[value] = len(boxes)
        boxes.append({"kind": "input", "title": name, "label": "input", "type": str(graph.type(value))})
    for node in graph.nodes:
        read(node.operands)
        maker.update(dict.fromkeys(node.outputs, len(boxes)))
        boxes.append(_operator(graph, node, kernels.get(node.id, ()), labels, errors, kept))
    for name, value in graph.outputs.items():
        read([value])
        boxes.append({"kind": "output", "title": name, "label": "output", "type": str(graph.type(value))})
    sizes = [(_width(box), _HEIGHTS[box["kind"]]) for box in boxes]
    drawing = draw(sizes, [(a, b) for a, b, _ in edges])
    for box, (width, height), (x, y) in zip(boxes, sizes, drawing.centers, strict=True):
        box.update(x=x, y=y, w=width, h=height)
    lines = [
        [a, b, str(graph.type(v)), [coordinate for point in points for coordinate in point]]
        for (a, b, v), points in zip(edges, drawing.lines, strict=True)
    ]
    return {"boxes": boxes, "lines": lines, "width": drawing.width, "height": drawing.height}


def _operator(
    graph: Graph,
    node: Node,
    kernels: Sequence[int],
    labels: Mapping[int, str],
    errors: Mapping[str, float],
    kept: set[int] | None,
) -> Record:
    body = node.attrs.get("body")
    members = body.nodes if isinstance(body, Graph) else (node,)
    of = body if isinstance(body, Graph) else graph
    origins = list(dict.fromkeys(labels[o.node] for o in node.origins)) or [node_label(node)]
    found = [errors[label] for label in origins if label in errors]
    names = _operand_names(node)
    return {
        "kind": "op",
        "title": " + ".join(OPS[member.op].name for member in members),
        "label": node_label(node),
        "type": ", ".join(str(graph.type(v)) for v in node.outputs),
        "family": OPS[members[0].op].family,
        "kernels": list(kernels),
        "origins": origins,
        "places": list(file_places(node.origins)),
        "members": [[m.op, node_label(m), str(of.type(m.outputs[0]))] for m in members] if len(members) > 1 else [],
        "operands": [
            [names[i], str(graph.type(v)), "constant" if v in graph.constants else ""]
            for i, v in enumerate(node.inputs)
            if v is not None
        ],
        "options": {k: _option(v) for k, v in node.attrs.items() if v is not None and not isinstance(v, Graph)},
        "error": max(found) if found else None,
        "fate": _fate(node, kernels, kept),
    }


def _operand_names(node: Node) -> list[str]:
    """Return the names of a node's operands. An operand of a fused node has the name that its first consumer uses."""
    body = node.attrs.get("body")
    if not isinstance(body, Graph):
        return [*OPS[node.op].operand_names(len(node.inputs)), *("" for _ in node.inputs)]
    names: dict[int, str] = {}
    for member in body.nodes:
        for name, value in zip(OPS[member.op].operand_names(len(member.inputs)), member.inputs, strict=False):
            if value is not None:
                names.setdefault(value, f"{name} of {OPS[member.op].name}")
    return [names[value] for value in body.inputs.values()]


def _fate(node: Node, kernels: Sequence[int], kept: set[int] | None) -> str:
    """Return the reason why no kernel computes an operator, or "" if one does."""
    if kernels:
        return ""
    if OPS[node.op].view:
        return "a view: another name for the same memory"
    if kept is None:
        return "no kernel"
    return "a view takes its place" if node.id in kept else "gone: computed when the graph was built, merged, or not needed"


def _option(value: object) -> str:
    text = str(list(value)) if isinstance(value, tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType] - options are of any type
    return text if len(text) <= 120 else text[:117] + "..."


def _width(box: Mapping[str, Any]) -> float:
    """Return the width of a box for its lines. The page truncates longer ones."""
    longest = max(len(box["title"]) * _CHARACTER, len(box["label"]) * _SMALL, len(box["type"]) * _SMALL)
    return min(_WIDEST, max(_NARROWEST, longest + 26))


def _kernel(kernel: Kernel, source: int) -> Record:
    return {
        "name": kernel.name,
        "shader": kernel.shader,
        "template": kernel.template,
        "labels": list(kernel.labels),
        "reason": kernel.reason,
        "overridden": kernel.overridden,
        "grid": list(kernel.grid),
        "workgroup": kernel.workgroup_size,
        "bindings": [[b.name, b.access, b.element, b.bound_to, b.size_bytes] for b in kernel.bindings],
        "constants": {name: str(value) for name, value in kernel.constants.items()},
        "source": source,
    }


def _times(profile: GraphProfile | None, timed: KernelTime | None) -> Record:
    if profile is None or timed is None:
        return {"us": None, "rates": {}}
    _, share, *rates = figures(profile, timed)
    names = ("GB/s", "GFLOP/s", "of peak", "limit")
    return {"us": timed.microseconds, "rates": {"share": share, **dict(zip(names, rates, strict=True))}}


def _memory(plan: ExecutionPlan, graph: Graph, labels: Mapping[int, str]) -> Record:
    makers = {value: node for node in graph.nodes for value in node.outputs}

    def name(value: int) -> tuple[str, str, int]:
        node = makers.get(value)
        if node is None:
            return "scratch memory", "", -1
        return node_label(node), str(graph.type(value)), node.id

    return {
        "slots": [slot.size_bytes for slot in plan.slots],
        "unshared": plan.unshared_bytes,
        "live": plan.live_bytes(),
        "values": [
            [*name(each.value)[:2], each.slot, each.offset_bytes, each.size_bytes, each.first, each.last]
            for each in plan.intermediates
        ],
        "constants": plan.constant_bytes,
        "total": plan.total_bytes,
    }
