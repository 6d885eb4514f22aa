"""Inputs have names."""

import webnn_wgpu as wn


def program(context: wn.MLContext, graph: wn.MLGraph) -> None:
    context.compute(graph, [[1.0, 2.0]])
    # refused by pyright: cannot be assigned to parameter "inputs" of type "Mapping[str, TensorData]"
    # refused by mypy: Argument 2 to "compute" of "MLContext" has incompatible type "list[list[float]]"
