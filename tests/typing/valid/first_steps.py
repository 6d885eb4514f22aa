"""A graph is built, compiled and run; every step has the type that the documentation promises."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    weights = builder.constant(np.ones((3, 2), np.float32))
    scores = builder.softmax(builder.matmul(x, weights), axis=1)
    assert_type(scores, wn.MLOperand)
    graph = builder.build({"scores": scores})
    assert_type(graph, wn.MLGraph)
    result = context.compute(graph, {"x": np.ones((2, 3), np.float32)})
    assert_type(result, wn.MLComputeResult)
    assert_type(result["scores"], npt.NDArray[Any])
    assert result["scores"].shape == (2, 2)
