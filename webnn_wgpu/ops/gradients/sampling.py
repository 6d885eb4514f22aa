"""Gradients of resampling, which are products with the transposed matrix of interpolation, and of weighted sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.graph import Array
from ..interfaces.gradient import GradientCall, GradientTerm, by_parts


def resample2d(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a resampling."""
    g = call.gradient
    axes: tuple[int, ...] = call.attrs["axes"]
    for axis, size in zip(axes, call.attrs["sizes"], strict=True):
        matrix = interpolation(call.x.shape[axis], size, call.attrs["mode"])
        shape = (*g.shape[:axis], matrix.shape[1], *g.shape[axis + 1 :])
        if not np.array_equal(matrix.astype(g.type.numpy), matrix.astype(np.float32)):
            g = g.cast("float32")  # float16 would round the factors, such as thirds
        transposed = call.constant(np.ascontiguousarray(matrix.T, g.type.numpy))
        g = transposed.apply("matmul", g.around(axis)).reshaped(shape)
    return (g.cast(call.x.type.data_type),)


def interpolation(size: int, output: int, mode: str) -> Array:
    """Return the matrix [output, size] that resamples a dimension.

    >>> interpolation(2, 4, "linear")
    array([[1.  , 0.  ],
           [0.75, 0.25],
           [0.25, 0.75],
           [0.  , 1.  ]])
    """
    matrix = np.zeros((output, size))
    rows = np.arange(output)
    # The coordinate (o + 1/2) size / output - 1/2 as a fraction of integers with the divisor 2 output.
    numerators = (2 * rows + 1) * size - output
    if mode == "nearest-neighbor":
        # ceil(coordinate - 1/2): of two elements as near, the one before.
        matrix[rows, -(-(numerators - output) // (2 * output))] = 1
        return matrix
    low = numerators // (2 * output)
    part = numerators / (2 * output) - low
    np.add.at(matrix, (rows, low.clip(0, size - 1)), 1 - part)
    np.add.at(matrix, (rows, (low + 1).clip(0, size - 1)), part)
    return matrix


def _weighted_gather(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    x, indices, weights = operands
    assert x is not None
    assert indices is not None
    assert weights is not None
    taken = x.cast(weights.type.data_type).around(call.attrs["axis"]).apply("gather", indices, axis=1)
    sums = (taken * weights.reshaped((*weights.shape, 1))).summed((2,))
    return (sums.cast(x.type.data_type).reshaped(call.y.shape),)


WEIGHTED_GATHER = by_parts(_weighted_gather)
