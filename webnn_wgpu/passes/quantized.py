"""Quantized graphs as exporters write them: numbers that are quantized and dequantized at once, and weights of few bits."""

from __future__ import annotations

import math

import numpy as np

from ..core.data_types import Array
from ..ir.graph import Graph, Node
from .matching import Match
from .patterns import AnyNumber, Operator, Variable
from .rules import Computed, Rule, apply_rules

_NARROW = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4}
"""Bits of the quantized data types that have few."""


quantize, dequantize = Operator("quantizeLinear"), Operator("dequantizeLinear")
matmul, gemm, transpose = Operator("matmul"), Operator("gemm"), Operator("transpose")

# ---------------------------------------------------------------------------------------------- quantized and dequantized

x, scale, zero_point = Variable("x"), AnyNumber("scale"), AnyNumber("zero_point")
quantized = quantize(x, scale, zero_point).of("int8", "uint8")
dequantized = dequantize(quantized, scale, zero_point)

ROUND_TRIP = Rule(
    name="quantized and dequantized",
    pattern=dequantized,
    result=Operator("quantizeDequantize")(
        x,
        scale=scale,
        zero_point=Computed("zero_point", lambda m: int(m[zero_point])),
        data_type=Computed("data_type", lambda m: m.r.type(m.value(quantized)).data_type),
    ),
    where={
        "the result has the type of x": lambda m: m.r.type(m.value(dequantized)) == m.r.type(m[x]),
        "scale is finite": lambda m: math.isfinite(m[scale]),
    },
)


def merge_quantization(graph: Graph) -> Graph:
    """Merge quantization to 8 bits and dequantization with the same scale and zero point into one element-wise operator."""
    return apply_rules(graph, ROUND_TRIP)


# ------------------------------------------------------------------------------------------------- weights of few bits

b, scales, zeros = (Variable(name, constant=True) for name in ("b", "scales", "zero_points"))
bias = Variable("bias", optional=True)
weights = dequantize(b, scales, zeros).named("weights")
turned = transpose(weights, permutation=(1, 0))
either = turned | weights
plain, with_bias = matmul(x, either), gemm(x, either, bias, a_transpose=False, alpha=1, beta=1)


def _matmul_nbits(m: Match, node: Node) -> bool:
    """Multiply by the numbers in packed form, if they can be packed."""
    r, arrays = m.r, [m.r.constants[m[v]] for v in (b, scales, zeros)]
    transposed = (turned in m) != (with_bias in m and m[with_bias].attrs["b_transpose"])
    whole, *of_blocks = (array if transposed else array.T for array in arrays)
    data_type = r.type(m[b]).data_type
    packed = _packed(whole, of_blocks[0], of_blocks[1], data_type)
    if packed is None or (m.get(bias) is not None and r.shape(m[bias]) != whole.shape[:1]):
        return False
    numbers, block_scales, zero_points = packed
    # The data types of their sources differ: packed bytes, floats.
    inputs = (
        m[x],
        r.constant(numbers, m[b], "uint8"),
        r.constant(block_scales, m[scales]),
        r.constant(zero_points, m[zeros], "uint8"),
        m.get(bias),
    )
    attrs = {"bits": _NARROW[data_type], "block_size": whole.shape[1] // block_scales.shape[1]}
    r.add("x.matmul_nbits", inputs, attrs, m.nodes, node.outputs[0])
    return True


MATMUL_NBITS = Rule(
    name="product with weights of few bits",
    pattern=plain | with_bias,
    result=Operator("x.matmul_nbits")(x, b, scales, zeros, bias),
    where={"the weights are a matrix": lambda m: len(m.r.shape(m[b])) == 2},
    build=_matmul_nbits,
)


def recognize_matmul_nbits(graph: Graph) -> Graph:
    """Multiply by constant weights in their quantized form, block by block, without a dequantized copy of them."""
    return apply_rules(graph, MATMUL_NBITS)


def _packed(b: Array, scales: Array, zeros: Array, data_type: str) -> tuple[Array, Array, Array] | None:
    """Return the numbers as bytes [N, blocks, bytes], scales [N, blocks] and packed zero points. None if that is impossible.

    Args:
        b: [N, K], one number per element.
        scales: [N or 1, blocks].
        zeros: zero points of the same shape.
        data_type: the data type of the numbers.
    """
    bits = _NARROW.get(data_type)
    (N, K), blocks = b.shape, scales.shape[1]
    size = K // blocks
    if bits is None or scales.shape[0] not in (1, N) or K % 16:
        return None
    # One scale for a whole row is the scale of each of its blocks. Rows of bytes are faster if dequantized at build time.
    if blocks == 1 and bits == 4:
        size = next(s for s in (128, 64, 32, 16) if K % s == 0)
    elif blocks == 1 or size < 16 or size & (size - 1):
        return None
    repeats = K // size // blocks
    scales, zeros = (np.repeat(np.broadcast_to(a, (N, blocks)), repeats, axis=1) for a in (scales, zeros))
    # Signed numbers and their zero points move up by half of the range.
    offset = 2 ** (bits - 1) if not data_type.startswith("u") else 0
    numbers, points = ((a.astype(np.int64) + offset).astype(np.uint8) for a in (b, zeros))
    if bits == 4:
        numbers = numbers[:, ::2] | numbers[:, 1::2] << 4
        points = np.pad(points, ((0, 0), (0, points.shape[1] % 2)))
        points = points[:, ::2] | points[:, 1::2] << 4
    return numbers.reshape(N, K // size, -1), np.ascontiguousarray(scales), np.ascontiguousarray(points)
