"""Operators of com.microsoft that exported transformers carry, besides attention."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ..call import Call
from ..tensors import Tensor
from ._registry import MICROSOFT, Result, lowers


@lowers("Gelu", domain=MICROSOFT)
def gelu(call: Call) -> Result:
    """X * (1 + erf(x / sqrt(2))) / 2."""
    return call.build.gelu(call.operand(0))


@lowers("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: Call) -> Result:
    """The same of x + bias."""
    return call.build.gelu(call.build.add(call.operand(0), call.operand(1)))


@lowers("FastGelu", domain=MICROSOFT)
def fast_gelu(call: Call) -> Result:
    """Gelu's approximation by a hyperbolic tangent, of x + bias."""
    x = call.operand(0)
    return tanh_gelu(call, call.build.add(x, call.operand(1)) if call.has(1) else x)


def tanh_gelu(call: Call, x: MLOperand) -> MLOperand:
    """Return x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2."""
    square = call.build.mul(x, x)
    inner = call.build.linear(square, alpha=0.044715 * math.sqrt(2 / math.pi), beta=math.sqrt(2 / math.pi))
    return call.build.mul(x, call.build.linear(call.build.tanh(call.build.mul(x, inner)), alpha=0.5, beta=0.5))


@lowers("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: Call) -> Result:
    """X * sigmoid(alpha * x)."""
    x = call.operand(0)
    return call.build.mul(x, call.build.sigmoid(call.build.linear(x, alpha=call.attribute("alpha", 1.702))))


@lowers("BiasAdd", domain=MICROSOFT)
def bias_add(call: Call) -> Result:
    """X + bias + skip."""
    return call.build.add(call.build.add(call.operand(0), call.operand(1)), call.operand(2))


@lowers("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(call: Call) -> Result:
    """Half of x + bias times gelu of the other half."""
    x = call.build.add(call.operand(0), call.operand(1))
    left, right = call.build.split(x, 2, axis=len(x.shape) - 1)
    return call.build.mul(left, call.build.gelu(right))


@lowers("ExpandDims", domain=MICROSOFT, moves=True)
def expand_dims(call: Call) -> Result:
    """A size of 1 put in."""
    shape = list(call.tensor(0).shape)
    axis = int(call.number(1))
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
    return call.reshape(call.operand(0), shape)


@lowers("EmbedLayerNormalization", domain=MICROSOFT, folds=False)
def embed_layer_normalization(call: Call) -> Result:
    """Word, position and segment embeddings added, then normalised."""
    ids = call.operand(0)
    batch, length = (int(d) for d in ids.shape)
    total = call.build.gather(call.operand(2), ids)
    if call.has(8):
        total = call.build.add(total, call.build.gather(call.operand(3), call.operand(8)))
    else:
        table = call.operand(3)
        total = call.build.add(total, call.build.slice(table, [0, 0], [length, int(table.shape[1])]))
    if call.has(1) and call.has(4):
        total = call.build.add(total, call.build.gather(call.operand(4), call.operand(1)))
    y = call.build.layer_normalization(
        total, scale=call.operand(5), bias=call.operand(6), axes=[2], epsilon=call.attribute("epsilon", 1e-12)
    )
    dtype = call.tensor(2).dtype
    mask: Tensor | None = None
    if call.wants(1):
        if call.has(7):
            counts = call.build.reduce_sum(call.cast(call.operand(7), "int32"), axes=[1])
            mask = Tensor((batch,), np.dtype(np.int32), operand=counts)
        else:
            mask = Tensor.known(np.zeros(batch, np.int32))
    return [Tensor(tuple(y.shape), dtype, operand=y), mask, Tensor(tuple(y.shape), dtype, operand=total)]


@lowers("MatMulNBits", domain=MICROSOFT, folds=False)
def matmul_nbits(call: Call) -> Result:
    """A product with weights of 2, 4 or 8 bits, taken out of their bytes by the kernel."""
    a = call.operand(0)
    bits, block = call.attribute("bits", 4), call.attribute("block_size")
    columns, rows = call.attribute("N"), call.attribute("K")
    blocks = -(-rows // block)
    if bits not in (2, 4, 8):
        call.fail(f"weights of {bits} bits")
    if call.has(4):
        call.fail("g_idx, an order of rows of its own")
    b = call.reshape(call.operand(1), [columns, blocks, block * bits // 8])
    scales = call.cast(call.operand(2), a.data_type)
    zero_points = call.optional(3)
    if zero_points is not None:
        if zero_points.data_type == "uint8":
            zero_points = call.reshape(zero_points, [columns, -(-blocks * bits // 8)])
        else:
            zero_points = call.cast(call.reshape(zero_points, [columns, blocks]), a.data_type)
    return call.build.ext.matmul_nbits(
        a,
        b,
        call.reshape(scales, [columns, blocks]),
        zero_points=zero_points,
        bias=call.optional(5),
        bits=bits,
        block_size=block,
    )


@lowers("GatherBlockQuantized", domain=MICROSOFT, folds=False)
def gather_block_quantized(call: Call) -> Result:
    """Rows picked from a table of few bits per number, and scaled block by block: only what is picked is scaled."""
    data, indices = call.tensor(0), call.tensor(1)
    bits, block = call.attribute("bits", 4), call.attribute("block_size", 128)
    rank = data.rank
    gather_axis = call.axis(call.attribute("gather_axis", 0), rank)
    quantize_axis = call.axis(call.attribute("quantize_axis", 1), rank)
    if gather_axis != 0 or quantize_axis != rank - 1:
        call.fail("a gather_axis other than the first, or a quantize_axis other than the last")
    picked = call.build.gather(call.operand(0), call.operand(1))
    scales = call.build.gather(call.operand(2), call.operand(1))
    signed = data.dtype.name in ("int4", "int8")
    packed = data.dtype.name == "uint8"
    if packed and bits == 4:
        picked = unpacked(call, picked)
    default = 0 if signed or (packed and bits == 0) else 2 ** (bits - 1) if packed else 0
    values = call.cast(picked, "float32")
    points = None
    if call.has(3):
        points = call.build.gather(call.operand(3), call.operand(1))
        if packed and bits == 4:
            points = unpacked(call, points)
        blocks = int(scales.shape[-1])
        points = call.build.slice(points, [0] * len(points.shape), [*points.shape[:-1], blocks])
        points = call.cast(points, "float32")
    width, blocks = int(values.shape[-1]), int(scales.shape[-1])
    head = list(values.shape[:-1])
    if blocks * block != width:
        ending = [*[0] * len(head), blocks * block - width]
        values = call.build.pad(values, [0] * len(ending), ending)
    values = call.reshape(values, [*head, blocks, block])
    if points is not None:
        values = call.build.sub(values, call.reshape(points, [*head, blocks, 1]))
    elif default:
        values = call.build.sub(values, call.like(default, values))
    scaled = call.build.mul(values, call.cast(call.reshape(scales, [*head, blocks, 1]), "float32"))
    result = call.reshape(scaled, [*head, blocks * block])
    if blocks * block != width:
        result = call.build.slice(result, [0] * (len(head) + 1), [*head, width])
    dtype = call.tensor(2).dtype
    return Tensor((*indices.shape, *data.shape[1:-1], width), dtype, operand=call.cast(result, call.operand(2).data_type))


def unpacked(call: Call, pairs: MLOperand) -> MLOperand:
    """Turn bytes of two numbers each, the first in the low half, into twice as many bytes of one."""
    shape = list(pairs.shape)
    high = call.build.ext.shift_right(pairs, call.like(4, pairs))
    low = call.build.ext.bitwise_and(pairs, call.like(15, pairs))
    both = call.build.concat([call.reshape(low, [*shape, 1]), call.reshape(high, [*shape, 1])], len(shape))
    return call.reshape(both, [*shape[:-1], 2 * shape[-1]])
