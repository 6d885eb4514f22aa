"""Operators of com.microsoft in exported transformers, besides attention."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..rounding import rounded
from ..tensors import OnnxTensor
from ..types import HELD, Array
from ._registry import MICROSOFT, SOME, Result, lowers
from .activations import tanh_gelu
from .quantization import Blocks


@lowers("Gelu", domain=MICROSOFT)
def gelu(call: NodeCall) -> Result:
    """X * (1 + erf(x / sqrt(2))) / 2."""
    return call.build.gelu(call.operand(0))


@lowers("BiasGelu", domain=MICROSOFT)
def bias_gelu(call: NodeCall) -> Result:
    """Gelu of x + bias."""
    return call.build.gelu(call.build.add(call.operand(0), call.operand(1)))


@lowers("FastGelu", domain=MICROSOFT)
def fast_gelu(call: NodeCall) -> Result:
    """Gelu's approximation by a hyperbolic tangent, of x + bias."""
    x = call.operand(0)
    return tanh_gelu(call, call.build.add(x, call.operand(1)) if call.has(1) else x)


@lowers("QuickGelu", domain=MICROSOFT)
def quick_gelu(call: NodeCall) -> Result:
    """X * sigmoid(alpha * x)."""
    x = call.operand(0)
    return call.build.mul(x, call.build.sigmoid(call.build.linear(x, alpha=call.attribute("alpha", 1.702))))


@lowers("BiasAdd", domain=MICROSOFT)
def bias_add(call: NodeCall) -> Result:
    """X + bias + skip."""
    return call.build.add(call.build.add(call.operand(0), call.operand(1)), call.operand(2))


@lowers("BiasSplitGelu", domain=MICROSOFT)
def bias_split_gelu(call: NodeCall) -> Result:
    """Half of x + bias times gelu of the other half."""
    x = call.build.add(call.operand(0), call.operand(1))
    left, right = call.build.split(x, 2, axis=len(x.shape) - 1)
    return call.build.mul(left, call.build.gelu(right))


@lowers("ExpandDims", domain=MICROSOFT, moves=True)
def expand_dims(call: NodeCall) -> Result:
    """The input with an additional dimension of size 1."""
    shape = list(call.tensor(0).shape)
    shape.insert(call.axis(call.integer(1), len(shape) + 1), 1)
    return call.reshape(call.operand(0), shape)


@lowers("EmbedLayerNormalization", domain=MICROSOFT, folds=False, ranks={0: (2,), 2: (2,), 3: (2,), 4: (2,)})
def embed_layer_normalization(call: NodeCall) -> Result:
    """The normalized sum of word, position and segment embeddings."""
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
    mask: OnnxTensor | None = None
    if call.wants(1):
        if call.has(7):
            counts = call.build.reduce_sum(call.cast(call.operand(7), "int32"), axes=[1])
            mask = OnnxTensor(shape=(batch,), dtype=np.dtype(np.int32), operand=counts)
        else:
            mask = OnnxTensor.known(np.zeros(batch, np.int32))
    return [
        OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=y),
        mask,
        OnnxTensor(shape=tuple(y.shape), dtype=dtype, operand=total),
    ]


@lowers("MatMulNBits", domain=MICROSOFT, folds=False)
def matmul_nbits(call: NodeCall) -> Result:
    """A product with weights of 2, 4 or 8 bits, which the kernel unpacks from their bytes."""
    a = call.operand(0)
    bits, block = call.attribute("bits", 4), call.required("block_size")
    columns, rows = call.required("N"), call.required("K")
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


@lowers("GatherBlockQuantized", domain=MICROSOFT, folds=False, ranks={0: SOME, 2: SOME})
def gather_block_quantized(call: NodeCall) -> Result:
    """Slices gathered from a table of a few bits per number. Only the gathered slices are scaled, block by block."""
    data, scales = call.tensor(0), call.tensor(2)
    bits, block = call.attribute("bits", 4), call.attribute("block_size", 128)
    if block < 1:
        call.fail(f"blocks of {block}")
    picked_axis = call.axis(call.attribute("gather_axis", 0), data.rank)
    axis = call.axis(call.attribute("quantize_axis", 1), data.rank)
    along_rows = picked_axis == 0 and axis == data.rank - 1 > 0
    packed = data.dtype == np.dtype(np.uint8)
    if packed and bits not in (2, 4, 8):
        call.fail(f"numbers of {bits} bits in bytes")
    if packed and not along_rows:
        call.fail("bytes that are not gathered along the first axis, in blocks along the last")
    table = _table(call) if along_rows else None
    if table is None:
        y = _gathered_blocks(call, picked_axis, axis, block)
    else:
        numbers, zero_points, width = table
        y = call.build.ext.gather_block_quantized(
            numbers,
            call.operand(1),
            call.operand(2),
            zero_points=zero_points,
            bits=bits if packed else 4,
            block_size=block,
        )
        if y.shape[-1] != width:
            y = call.build.slice(y, [0] * len(y.shape), [*y.shape[:-1], width])
    return OnnxTensor(shape=tuple(y.shape), dtype=scales.dtype, operand=rounded(call, y, scales.dtype))


def _table(call: NodeCall) -> tuple[MLOperand, MLOperand | None, int] | None:
    """Return a table as bytes, its zero points as bytes, and the numbers of a row. None if it cannot be packed."""
    data = call.tensor(0)
    if data.dtype == np.dtype(np.uint8):
        return call.operand(0), call.optional(3), data.shape[-1] * 8 // call.attribute("bits", 4)
    if data.array is None or (call.has(3) and call.tensor(3).array is None):
        return None
    zero_points = call.tensor(3).array if call.has(3) else np.zeros(call.tensor(2).shape, data.dtype)
    assert zero_points is not None
    return call.constant(_pairs(data.array), "uint8"), call.constant(_pairs(zero_points), "uint8"), data.shape[-1]


def _pairs(array: Array) -> Array:
    """Return numbers of 4 bits, two to a byte, the first in the low half. Signed numbers are stored plus 8."""
    numbers = array.astype(np.int8) + (8 if array.dtype == np.dtype(ml_dtypes.int4) else 0)
    numbers = np.pad(numbers, [(0, 0)] * (array.ndim - 1) + [(0, array.shape[-1] % 2)]).astype(np.uint8)
    return numbers[..., ::2] | numbers[..., 1::2] << 4


def _gathered_blocks(call: NodeCall, picked_axis: int, axis: int, block: int) -> MLOperand:
    """Gather numbers, scales and zero points along any axis, and only then compute (number - zero point) * scale."""
    data, indices = call.tensor(0), call.operand(1)
    of_blocks = indices
    if picked_axis == axis:
        # The gathered numbers have the scales of the blocks that contain the indices.
        size = call.like(data.shape[axis], indices)
        counted = call.build.where(call.build.lesser(indices, call.like(0, indices)), call.build.add(indices, size), indices)
        of_blocks, block = call.build.div(counted, call.like(block, indices)), 1
    elif axis > picked_axis:
        axis += len(indices.shape) - 1
    picked = call.build.gather(call.operand(0), indices, axis=picked_axis)
    scales = call.build.gather(call.cast(call.operand(2), "float32"), of_blocks, axis=picked_axis)
    zeros = call.operand(3) if call.has(3) else call.constant(np.zeros(call.tensor(2).shape), picked.data_type)
    zeros = call.build.gather(zeros, of_blocks, axis=picked_axis)
    blocks = Blocks(call, tuple(picked.shape), tuple(scales.shape), axis, block)
    y = call.build.dequantize_linear(picked, blocks.laid(scales), blocks.laid(zeros))
    return call.cast(y, HELD[call.tensor(2).dtype])
