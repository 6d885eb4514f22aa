"""Operators that normalize, reduce, accumulate, and choose the largest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import FLOAT32
from ..call import TfjsCall
from ._registry import Result, lowers
from .elementwise import numbers

MOST_CHANNELS = 1 << 13
"""The maximum number of channels of a product over neighboring channels."""


def batch_normalized(call: TfjsCall, x: MLOperand, parts: Sequence[MLOperand], epsilon: float, axis: int) -> MLOperand:
    """Return channels with scale, offset, mean and variance given."""
    if len(parts) != 4:
        call.fail(f"{len(parts)} inputs of a normalization, of which there must be 4")
    scale, offset, mean, variance = parts
    return call.build.batch_normalization(x, mean, variance, scale=scale, bias=offset, axis=axis, epsilon=epsilon)


@lowers("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(call: TfjsCall) -> Result:
    """Channels with scale, offset, mean and variance."""
    x = call.floats(0)
    axis = 1 if call.text("data_format", "NHWC").startswith("NC") else len(x.shape) - 1
    parts = [call.floats(i) for i in range(1, len(call.inputs))]
    y = batch_normalized(call, x, parts, call.float("epsilon", 0.001), axis)
    # Mean and variance once more: TensorFlow.js has no other results in inference.
    return [y, *(parts[i] for i in (2, 3, 2, 3, 3))][: len(call.node.outputs)] if len(call.node.outputs) > 1 else y


@lowers("LRN")
def local_response(call: TfjsCall) -> Result:
    """Elements divided by a power of the squares of channels around them."""
    x, b = call.floats(0), call.build
    radius, channels = call.integer("depth_radius", 5), call.tensor(0).shape[3]
    if channels > MOST_CHANNELS:
        call.fail(f"{channels} channels, of which {MOST_CHANNELS} are allowed")
    lanes = np.arange(channels)
    near = (np.abs(lanes[:, None] - lanes[None, :]) <= radius).astype(np.float32)
    squares = b.matmul(b.reshape(b.mul(x, x), [int(np.prod(x.shape[:3])), channels]), call.constant(near, "float32"))
    sums = b.reshape(squares, x.shape)
    base = b.add(b.mul(sums, call.constant(call.float("alpha", 1), "float32")), call.constant(call.float("bias", 1), "float32"))
    return b.div(x, b.pow(base, call.constant(call.float("beta", 0.5), "float32")))


@lowers("Softmax")
def softmax(call: TfjsCall) -> Result:
    """Softmax over the last dimension."""
    x = call.floats(0)
    return call.build.softmax(x, len(x.shape) - 1)


@lowers("LogSoftmax")
def log_softmax(call: TfjsCall) -> Result:
    """The logarithm of softmax over the last dimension."""
    x = call.floats(0)
    return call.build.ext.log_softmax(x, len(x.shape) - 1)


_REDUCTIONS = {
    "Max": "reduce_max",
    "Mean": "reduce_mean",
    "Min": "reduce_min",
    "Sum": "reduce_sum",
    "Prod": "reduce_product",
    "All": "reduce_min",
    "Any": "reduce_max",
    "EuclideanNorm": "reduce_l2",
}


@lowers(*_REDUCTIONS)
def reduce(call: TfjsCall) -> Result:
    """One number of many."""
    tensor, op = call.tensor(0), call.node.op
    axes = call.axes(call.ints(1), tensor.rank)
    keep = call.flag("keep_dims") or call.flag("keepDims")
    if op in ("All", "Any"):
        x = call.cast(call.cast(call.operand(0), "uint8"), "int32")
    else:
        x = call.floats(0) if op in ("Mean", "EuclideanNorm") else numbers(call, 0)[0]
    if not axes:
        return (
            x
            if op not in ("All", "Any", "EuclideanNorm")
            else call.cast(x, "uint8")
            if op != "EuclideanNorm"
            else call.build.abs(x)
        )
    y = getattr(call.build, _REDUCTIONS[op])(x, axes=axes, keep_dimensions=keep)
    return call.cast(y, "uint8") if op in ("All", "Any") else y


@lowers("ArgMax", "ArgMin")
def arg(call: TfjsCall) -> Result:
    """Where the largest or smallest element is."""
    x = numbers(call, 0)[0]
    axis = call.axis(int(call.number(1)), len(x.shape))
    method = call.build.arg_max if call.node.op == "ArgMax" else call.build.arg_min
    return method(x, axis, output_data_type="int32")


@lowers("Cumsum", "Cumprod")
def cumulative(call: TfjsCall) -> Result:
    """Sums or products of all elements so far."""
    x = numbers(call, 0)[0]
    axis = call.axis(int(call.number(1)), len(x.shape))
    method = call.build.cumulative_sum if call.node.op == "Cumsum" else call.build.ext.cumulative_product
    return method(x, axis, exclusive=call.flag("exclusive"), reversed=call.flag("reverse"))


@lowers("TopKV2")
def top_k(call: TfjsCall) -> Result:
    """The largest elements and where they are."""
    x, k = numbers(call, 0)[0], int(call.number(1))
    if not x.shape or not 0 < k <= x.shape[-1]:
        call.fail(f"{k} of {list(x.shape)}")
    return list(call.build.ext.top_k(x, k, axis=-1, largest=True, sorted=True, indices_data_type="int32"))


@lowers("MatrixBandPart")
def band_part(call: TfjsCall) -> Result:
    """Matrices with zeros beside some diagonals."""
    x, below, above = call.operand(0), int(call.number(1)), int(call.number(2))
    rows, columns = x.shape[-2:]
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    kept = ((i - j <= below) | (below < 0)) & ((j - i <= above) | (above < 0))
    return call.build.where(call.constant(kept.astype(np.uint8), "uint8"), x, call.like(0, x))


def _bounds(call: TfjsCall, strict: bool) -> Result:
    """Return where values belong in sorted rows: the number of elements below them."""
    rows, values = numbers(call, 0, 1)
    wide = call.reshape(rows, [*rows.shape[:-1], 1, rows.shape[-1]])
    single = call.reshape(values, [*values.shape, 1])
    below = call.build.lesser(wide, single) if strict else call.build.lesser_or_equal(wide, single)
    return call.build.reduce_sum(call.cast(below, "int32"), axes=[len(wide.shape) - 1])


@lowers("LowerBound")
def lower_bound(call: TfjsCall) -> Result:
    """The first place where values fit into sorted rows."""
    return _bounds(call, True)


@lowers("UpperBound")
def upper_bound(call: TfjsCall) -> Result:
    """The last place where values fit into sorted rows."""
    return _bounds(call, False)


@lowers("Bincount", "DenseBincount")
def bincount(call: TfjsCall) -> Result:
    """How often each number occurs, or the sum of its weights."""
    x, size = call.cast(call.operand(0), "int32"), int(call.number(1))
    if not 0 < size <= 1 << 20 or len(x.shape) > 2:
        call.fail(f"{size} numbers in {list(x.shape)}")
    lanes = call.constant(np.arange(size, dtype=np.int32), "int32")
    hot = call.cast(call.build.equal(call.reshape(x, [*x.shape, 1]), lanes), "float32")
    axis = len(hot.shape) - 2
    if call.flag("binary_output"):
        return call.build.reduce_max(hot, axes=[axis])
    weights = call.tensor(2)
    if weights.size:
        hot = call.build.mul(hot, call.reshape(call.floats(2), [*x.shape, 1]))
    y = call.build.reduce_sum(hot, axes=[axis])
    return y if weights.dtype == FLOAT32 else call.cast(y, "int32")


@lowers("SparseSegmentSum", "SparseSegmentMean")
def sparse_segments(call: TfjsCall) -> Result:
    """Sums or means of rows that belong together."""
    rows = call.build.gather(call.floats(0), call.cast(call.operand(1), "int32"))
    segments = call.ints(2)
    if not segments or min(segments) < 0 or max(segments) > 1 << 20 or len(segments) != rows.shape[0]:
        call.fail(f"segments {segments[:8]}")
    share = np.zeros((max(segments) + 1, len(segments)), np.float32)
    share[segments, np.arange(len(segments))] = 1
    if call.node.op == "SparseSegmentMean":
        share /= np.maximum(share.sum(1, keepdims=True), 1)
    flat = call.reshape(rows, [rows.shape[0], int(np.prod(rows.shape[1:]))])
    return call.reshape(call.build.gemm(call.constant(share, "float32"), flat), [share.shape[0], *rows.shape[1:]])
