"""An asynchronous context hands on what the context has."""

import webnn_wgpu as wn


def program(context: wn.AsyncMLContext, graph: wn.MLGraph) -> None:
    context.compute_asyn(graph, {})
    # refused by pyright: Cannot access attribute "compute_asyn" for class "AsyncMLContext"
    # refused by mypy: "AsyncMLContext" has no attribute "compute_asyn"
