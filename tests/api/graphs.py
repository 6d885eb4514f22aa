"""Small graphs for the API tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import webnn_wgpu as wn

F32X3: dict[str, Any] = {"dataType": "float32", "shape": [3]}
X = np.float32([1, -2, 3])


def negation(context: wn.MLContext) -> wn.MLGraph:
    """y = -x, float32[3]."""
    builder = wn.MLGraphBuilder(context)
    return builder.build({"y": builder.neg(builder.input("x", F32X3))})


def sum_and_difference(context: wn.MLContext) -> wn.MLGraph:
    """sum = a + b, difference = a - b, float32[3]."""
    builder = wn.MLGraphBuilder(context)
    a, b = (builder.input(name, F32X3) for name in "ab")
    return builder.build({"sum": builder.add(a, b), "difference": builder.sub(a, b)})


def tensor(context: wn.MLContext, data: Any = None, shape: tuple[int, ...] = (3,)) -> wn.MLTensor:
    """A readable and writable float32 tensor."""
    made = context.create_tensor({"dataType": "float32", "shape": shape, "readable": True, "writable": True})
    if data is not None:
        context.write_tensor(made, data)
    return made


def pair(context: wn.MLContext) -> tuple[wn.MLTensor, wn.MLTensor]:
    """A tensor that holds X, and an empty one."""
    return tensor(context, X), tensor(context)
