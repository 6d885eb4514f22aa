"""What programs of pywebnn's users share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([[-2, -1, 0], [1, 2, 3]], np.float32)


def run(context: Any, make: Callable[..., Any], **inputs: np.ndarray) -> Any:
    """Build a graph of one output from inputs of these shapes and types, and compute it."""
    builder = context.create_graph_builder()
    operands = [builder.input(name, list(array.shape), str(array.dtype)) for name, array in inputs.items()]
    graph = builder.build({"output": make(builder, *operands)})
    return context.compute(graph, inputs)["output"]


def doubler(context: Any, shape: list[int]) -> Any:
    builder = context.create_graph_builder()
    x = builder.input("x", shape, "float32")
    return builder.build({"y": builder.add(x, x)})
