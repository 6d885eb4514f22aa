"""A context has no other methods than the documented ones."""

import webnn_wgpu as wn


def program(context: wn.MLContext, graph: wn.MLGraph) -> None:
    context.computeAsnyc(graph, {})
    # refused by pyright: Cannot access attribute "computeAsnyc" for class "MLContext"
    # refused by mypy: "MLContext" has no attribute "computeAsnyc"; maybe "computeAsync"
