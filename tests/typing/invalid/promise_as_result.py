"""A promise is not its result."""

import webnn_wgpu as wn


def program(context: wn.MLContext, graph: wn.MLGraph) -> None:
    context.compute_async(graph, {})["y"]
    # refused by pyright: "__getitem__" method not defined on type "MLPromise[MLComputeResult]"
    # refused by mypy: Value of type "MLPromise[MLComputeResult]" is not indexable
