"""Tensor data is no text."""

import webnn_wgpu as wn


def program(context: wn.MLContext, graph: wn.MLGraph) -> None:
    context.compute(graph, {"x": "1 2 3"})
    # refused by pyright: cannot be assigned to parameter "inputs" of type "Mapping[str, TensorData]"
    # refused by mypy: Dict entry 0 has incompatible type "str": "str"
