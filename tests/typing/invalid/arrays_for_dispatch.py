"""`dispatch` takes tensors; `compute` takes arrays."""

import numpy as np

import webnn_wgpu as wn


def program(context: wn.MLContext, graph: wn.MLGraph) -> None:
    context.dispatch(graph, {"x": np.ones(2)}, {})
    # refused by pyright: cannot be assigned to parameter "inputs" of type "Mapping[str, MLTensor]"
    # refused by mypy: expected "str": "MLTensor"
