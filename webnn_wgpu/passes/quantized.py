"""Quantized graphs as exporters write them: numbers that are quantized and dequantized at once, and weights of few bits."""

from __future__ import annotations

import numpy as np

from ..core.data_types import Array
from ..ir.graph import Graph, Node
from ..ops.quantization import QUANTIZE_DEQUANTIZE
from .rewriting import Rewriter, rewrite

_NARROW = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4}
"""Bits of the quantized data types that have few."""


def merge_quantization(graph: Graph) -> Graph:
    """Make one element-wise operator of quantizing to 8 bits and dequantizing, where both have one scale and zero point."""
    return rewrite(graph, _round_trip)


def _round_trip(r: Rewriter, node: Node) -> bool:
    quantize = r.made_for_one(node.operands[0], "quantizeLinear") if node.op == "dequantizeLinear" else None
    if quantize is None or r.type(node.operands[0]).data_type not in ("int8", "uint8"):
        return False
    numbers = [r.number(value) for value in (*quantize.operands[1:], *node.operands[1:])]
    same_type = r.type(quantize.operands[0]) == r.type(node.outputs[0])
    if None in numbers or numbers[:2] != numbers[2:] or not same_type or not np.isfinite(numbers[0] or 0):
        return False
    attrs = {"scale": numbers[0], "zero_point": int(numbers[1] or 0), "data_type": r.type(node.operands[0]).data_type}
    r.add(QUANTIZE_DEQUANTIZE.name, (quantize.operands[0],), attrs, (quantize, node), node.outputs[0])
    return True


def recognise_matmul_nbits(graph: Graph) -> Graph:
    """Multiply by constant weights that are dequantized block by block from where they are, without a wide copy of them."""
    return rewrite(graph, _matmul_nbits)


def _matmul_nbits(r: Rewriter, node: Node) -> bool:
    transposed = False
    if node.op == "gemm":
        attrs = node.attrs
        if attrs["a_transpose"] or attrs["alpha"] != 1 or attrs["beta"] != 1:
            return False
        transposed = attrs["b_transpose"]
    elif node.op != "matmul":
        return False
    value, sources = node.operands[1], list[Node]()
    if (turn := r.made_for_one(value, "transpose")) is not None and turn.attrs["permutation"] == (1, 0):
        value, transposed = turn.operands[0], not transposed
        sources.append(turn)
    dequantize = r.made_for_one(value, "dequantizeLinear")
    if dequantize is None or len(r.shape(value)) != 2 or any(v not in r.constants for v in dequantize.operands):
        return False
    b, scales, zeros = (r.constants[v] if transposed else r.constants[v].T for v in dequantize.operands)
    bias = node.operands[2] if len(node.operands) == 3 else None
    data_type = r.type(dequantize.operands[0]).data_type
    packed = _packed(b, scales, zeros, data_type)
    if packed is None or r.type(node.operands[0]).data_type != r.type(value).data_type:
        return False
    if bias is not None and r.shape(bias) != (b.shape[0],):
        return False
    numbers, block_scales, zero_points = packed
    # The types of what they are made from differ: packed bytes, floats.
    inputs = (
        node.operands[0],
        r.constant(numbers, dequantize.operands[0], "uint8"),
        r.constant(block_scales, dequantize.operands[1]),
        r.constant(zero_points, dequantize.operands[2], "uint8"),
        bias,
    )
    attrs = {"bits": _NARROW[data_type], "block_size": b.shape[1] // block_scales.shape[1]}
    r.add("x.matmul_nbits", inputs, attrs, (dequantize, *sources, node), node.outputs[0])
    return True


def _packed(b: Array, scales: Array, zeros: Array, data_type: str) -> tuple[Array, Array, Array] | None:
    """Return the numbers as bytes [N, blocks, bytes], scales [N, blocks] and packed zero points; None where that cannot be.

    Args:
        b: [N, K], one number per element.
        scales: [N or 1, blocks].
        zeros: zero points of the same shape.
        data_type: of the numbers.
    """
    bits = _NARROW.get(data_type)
    (N, K), blocks = b.shape, scales.shape[1]
    size = K // blocks
    if bits is None or scales.shape[0] not in (1, N) or K % 16:
        return None
    # One scale for a whole row is that of each of its blocks; but a row of bytes is better off dequantized at build time.
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
