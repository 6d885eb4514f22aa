"""Matrix products."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ..tensors import PACKED, TfliteTensor
from ._registry import Result, lowers
from ._sums import Weights, centered, integer_sums, magnitude, rescaled, scales_of, sums_integers


@lowers(FULLY_CONNECTED=14, note="8 bits: integer sums, one rounding; float activations: weights stay packed")
def fully_connected(call: TfliteCall) -> Result:
    """Rows of the input times the transposed weights [out, in], plus a bias, with a fused activation."""
    if int(call.option("WeightsFormat")):
        call.fail("its weights are shuffled; convert the model again without this")
    shape, weights = call.shape(0), call.tensor(1)
    if weights.rank != 2:
        call.fail(f"the weights {list(weights.shape)} must be a matrix")
    out, depth = weights.shape
    if not depth or call.tensor(0).size % depth:
        call.fail(f"the input {list(shape)} has no rows of {depth}")
    if bool(call.option("KeepNumDims", False)):
        if not shape or shape[-1] != depth:
            call.fail(f"the input {list(shape)} has no rows of {depth}")
        final = [*shape[:-1], out]
    else:
        final = [call.tensor(0).size // depth, out]
    rows = [math.prod(final[:-1]), depth]
    if sums_integers(call, 0, 1):
        a = centered(call, call.tensor(0), call.reshape(call.operand(0), rows))
        y = _integer_product(call, a, weights)
        result = rescaled(call, y, 0, scales_of(call, 1), 2)
        assert result.operand is not None
        return call.bare(call.reshape(result.operand, final))
    x = call.reshape(call.floats(0), rows)
    bias = call.reshape(call.floats(2), [out]) if call.has(2) else None
    return call.reshape(call.activated(Weights.of(call, 1).products(x, bias)), final)


def _integer_product(call: TfliteCall, a: tuple[MLOperand, int], weights: TfliteTensor) -> MLOperand:
    """Return integer sums of products of rows with the rows of weights."""
    turned = TfliteTensor(
        shape=weights.shape[::-1],
        dtype=weights.dtype,
        quantization=weights.quantization,
        array=None if weights.array is None else np.ascontiguousarray(weights.array.T),
    )
    if weights.array is None:
        turned.operand = call.transpose(call.operand(1), [1, 0])
    b = centered(call, turned)
    return integer_sums(call, call.build.matmul, a, b, weights.shape[1], magnitude(weights, (1,)))


@lowers(BATCH_MATMUL=4, note="8 bits: integer sums, one rounding")
def batch_matmul(call: TfliteCall) -> Result:
    """Products of the last two dimensions. The others broadcast."""
    turned = [bool(call.option(name, False)) for name in ("AdjX", "AdjY")]

    def arranged(operand: MLOperand, turn: bool) -> MLOperand:
        order = list(range(len(operand.shape)))
        return call.transpose(operand, [*order[:-2], *order[:-3:-1]]) if turn else operand

    if sums_integers(call, 0, 1):
        a, b = (
            centered(call, call.tensor(i), arranged(call.operand(i), turned[i]))
            if call.tensor(i).dtype not in PACKED
            else _arranged_packed(call, i, turned[i])
            for i in (0, 1)
        )
        terms = call.shape(0)[-2 if turned[0] else -1]
        most = magnitude(call.tensor(1), (-1 if turned[1] else -2,))
        return rescaled(call, integer_sums(call, call.build.matmul, a, b, terms, most), 0, scales_of(call, 1), 2)
    x, y = (arranged(call.floats(i), turned[i]) for i in (0, 1))
    return call.build.matmul(x, y)


def _arranged_packed(call: TfliteCall, index: int, turn: bool) -> tuple[MLOperand, int]:
    values, bits = centered(call, call.tensor(index))
    order = list(range(len(values.shape)))
    return (call.transpose(values, [*order[:-2], *order[:-3:-1]]) if turn else values), bits
