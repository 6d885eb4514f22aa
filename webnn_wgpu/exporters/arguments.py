"""The check of the graph that an exporter is given."""

from __future__ import annotations

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.core.errors import MLTypeError


def check_graph(graph: object, operator: str) -> None:
    """Check that an exporter is given a graph.

    Raises:
        MLTypeError: it is something else. For an imported model the message says where its graphs are.
    """
    if isinstance(graph, MLGraph):
        return
    hint = "An imported model has its graphs in `graphs`" if hasattr(graph, "graphs") else ""
    raise MLTypeError("graph must be an MLGraph", operator=operator, got=type(graph).__name__, hint=hint)
