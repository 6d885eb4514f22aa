"""Graphs for the tests of the runtime: a small network with constants and kernels of several kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

import webnn_wgpu as wn

RNG = np.random.default_rng(7)
WEIGHTS = RNG.standard_normal((16, 32)).astype(np.float32)
BIAS = RNG.standard_normal(32).astype(np.float32)
ROWS = RNG.standard_normal((4, 16)).astype(np.float32)


def network(context: wn.MLContext, *, scale: float = 1.0) -> wn.MLGraph:
    """x[4, 16] -> two outputs, through a matrix product, a normalization, a softmax and data movement."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 16]})
    hidden = builder.gelu(builder.add(builder.matmul(x, builder.constant(WEIGHTS * np.float32(scale))), builder.constant(BIAS)))
    normal = builder.layer_normalization(hidden, axes=[1])
    return builder.build(
        {
            "probability": builder.softmax(normal, 1),
            "columns": builder.transpose(builder.slice(normal, [0, 0], [4, 8]), permutation=[1, 0]),
        }
    )


def expected() -> dict[str, Any]:
    """What the network returns for ROWS, by the numpy reference."""
    with wn.ml.create_context(backend="reference") as context:
        return dict(context.compute(network(context), {"x": ROWS}))


def outputs(context: wn.MLContext) -> dict[str, wn.MLTensor]:
    """Tensors for the network's outputs."""
    return {
        "probability": context.create_tensor([4, 32], "float32", readable=True),
        "columns": context.create_tensor([8, 4], "float32", readable=True),
    }


def source(context: wn.MLContext) -> wn.MLTensor:
    """A tensor that holds ROWS."""
    tensor = context.create_tensor([4, 16], "float32", writable=True)
    context.write_tensor(tensor, ROWS)
    return tensor
