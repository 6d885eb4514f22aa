"""Results are a dictionary of arrays, also where the caller's arrays are filled."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import webnn_wgpu as wn


def program(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [3], "float32")
    graph = builder.build({"negative": builder.neg(x), "squares": builder.mul(x, x)})
    memory = np.empty(3, np.float32)
    result = context.compute(graph, {"x": [1, 2, 3]}, {"squares": memory, "negative": None})
    assert_type(result.outputs, dict[str, npt.NDArray[Any]])
    for name, values in result.items():
        assert_type(values, npt.NDArray[Any])
        assert name in graph.outputs
    assert memory.tolist() == [1, 4, 9]
    assert sum(array.sum() for array in result.values()) == 8
