"""`save`: a graph as a file of the kind that its suffix names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import check_operators
from webnn_wgpu.api.optional import needed_by
from webnn_wgpu.core.errors import NotSupportedError

from .files import replace_files

KINDS: Mapping[str, str] = {
    ".webnn": "webnn",
    ".json": "json",
    ".onnx": "onnx",
    ".mlpackage": "coreml",
    ".mjs": "js",
    ".js": "js",
    ".html": "html",
    ".py": "py",
    ".dot": "dot",
}
"""Kinds of files by their suffixes."""

OPTIONS: Mapping[str, frozenset[str]] = {
    "webnn": frozenset({"weights", "quantized", "extensions", "operand_options", "name"}),
    "json": frozenset({"weights", "quantized", "extensions", "operand_options", "name"}),
    "onnx": frozenset({"opset", "external_data"}),
    "coreml": frozenset({"minimum"}),
    "js": frozenset({"weights"}),
    "py": frozenset({"weights"}),
    "html": frozenset(),
    "dot": frozenset(),
}
"""The options of each kind."""


def save(
    graph: MLGraph,
    path: str | os.PathLike[str],
    *,
    kind: str = "",
    dynamic: Mapping[str, int] | None = None,
    graph_of_sizes: Callable[[Mapping[str, int]], MLGraph] | None = None,
    order: Sequence[str] = (),
    **options: Any,
) -> list[Path]:
    """Write a graph as it was built, before any pass.

    Args:
        graph: the graph.
        path: the file.
        kind: the kind of file, one of `KINDS`. By default the suffix tells it.
        dynamic: names of dynamic dimensions with their largest sizes, for which `graph` is made. Only for `.webnn`, `.json` and
            `.onnx` files.
        graph_of_sizes: returns the graph for other sizes of these dimensions.
        order: names of inputs in the order that `.onnx` files get, if it is not the graph's.
        options: those of the kind of file, as for `MLGraph.save`. Those of their default value, None, are passed over.

    Returns:
        The files that were written.

    Raises:
        MLTypeError: a wrong option.
        NotSupportedError: an unknown suffix, an option that the kind of file does not have, or an operator that it cannot have.
    """
    check_operators(graph, "save")
    target = Path(path)
    suffix = target.suffix.lower()
    kind = kind or KINDS.get(suffix, "")
    if not kind:
        raise NotSupportedError("unknown kind of file", operator="save", got=repr(suffix), allowed=", ".join(sorted(KINDS)))
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in OPTIONS[kind]:
            allowed = ", ".join(sorted(OPTIONS[kind])) or "none"
            raise NotSupportedError(f"a {kind} file has no option '{name}'", operator="save", got=name, allowed=allowed)
    if dynamic and kind not in ("webnn", "json", "onnx"):
        raise NotSupportedError(f"a {kind} file has no dynamic dimensions", operator="save", got=", ".join(dynamic))
    with needed_by("save", {"onnx": "onnx", "coreml": "coreml"}.get(kind, "webnn")):
        if kind in ("webnn", "json"):
            return import_module(".webnn", __package__).write(
                graph, target, dynamic=dynamic, graph_of_sizes=graph_of_sizes, json_form=kind == "json", **given
            )
        if kind == "onnx":
            return import_module(".onnx", __package__).write_onnx(
                graph, target, dynamic=dynamic, graph_of_sizes=graph_of_sizes, order=order, **given
            )
        if kind == "coreml":
            return import_module(".coreml", __package__).write_coreml(graph, target, **given)
        if kind == "js":
            return import_module(".javascript", __package__).write_javascript(graph, target, **given)
        if kind == "py":
            return import_module(".python", __package__).write_python(graph, target, **given)
        if kind == "html":
            return replace_files({target: import_module(".html", __package__).to_html(graph, target.stem).encode()})
        return replace_files({target: import_module(".graphviz", __package__).to_dot(graph).encode() + b"\n"})
