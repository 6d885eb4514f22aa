"""Reductions, indices of extremes, running sums and products, and variants of softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from webnn_wgpu import MLOperand

from .. import host
from ..call import NodeCall
from ..tensors import OnnxTensor
from ..types import HELD, is_float
from ._registry import Result, lowers
from .elementwise import unsigned

REDUCTIONS = {
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceMax": "reduce_max",
    "ReduceMean": "reduce_mean",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_product",
    "ReduceSum": "reduce_sum",
    "ReduceSumSquare": "reduce_sum_square",
}


def reduced_axes(call: NodeCall) -> list[int]:
    """Return the axes of a reduction, from an attribute or an input. The default is all axes, or none if so requested."""
    rank = call.tensor(0).rank
    axes = call.axes(call.ints(1, "axes") or [], rank)
    return axes or ([] if call.attribute("noop_with_empty_axes", 0) else list(range(rank)))


def _reduction(name: str) -> Callable[[NodeCall], Result]:
    def lower(call: NodeCall) -> Result:
        x, axes, keep = call.tensor(0), reduced_axes(call), bool(call.attribute("keepdims", 1))
        if not x.size:
            return _nothing_reduced(call, axes)
        operand = call.operand(0)
        if is_float(x.dtype):
            return getattr(call.build, name)(operand, axes=axes, keep_dimensions=keep)
        match name:
            case "reduce_mean":
                total = call.build.reduce_sum(call.cast(operand, _wide(x)), axes=axes, keep_dimensions=keep)
                count = math.prod(x.shape[a] for a in axes)
                return call.cast(call.build.div(total, call.like(count, total)), operand.data_type)
            case "reduce_l2":
                squares = call.build.reduce_sum_square(call.cast(operand, _wide(x)), axes=axes, keep_dimensions=keep)
                return call.cast(_integer_root(call, squares), operand.data_type)
            case "reduce_log_sum" | "reduce_log_sum_exp":
                call.on_host("logarithms of integers")
            case _:
                return getattr(call.build, name)(operand, axes=axes, keep_dimensions=keep)

    return lower


def _wide(tensor: OnnxTensor) -> Literal["int64", "uint64"]:
    return "uint64" if unsigned(tensor) else "int64"


def _integer_root(call: NodeCall, square: MLOperand) -> MLOperand:
    """Return the largest integers with squares of at most these 64-bit integers."""
    build = call.build
    one, two = call.like(1, square), call.like(2, square)
    guess = build.max(call.cast(build.sqrt(call.cast(square, "float32")), square.data_type), one)
    # One step of Newton's method refines 24 bits to more than the 32 bits of a root. Its result can be one too large.
    root = build.div(build.add(guess, build.div(square, guess)), two)
    for _ in range(2):
        above = build.greater(root, build.div(square, build.max(root, one)))
        root = build.sub(root, call.cast(above, square.data_type))
    return root


def _nothing_reduced(call: NodeCall, axes: list[int]) -> Result:
    """Return the result of a reduction of no elements: the operation's neutral element."""
    x = call.tensor(0)
    known = [np.zeros(x.shape, x.dtype), *([call.value(1)] if call.has(1) else [])]
    return OnnxTensor.known(host.evaluate(call.node, known, call.version)[0])


for _name, _method in REDUCTIONS.items():
    lowers(_name, empty=True)(_reduction(_method))


@lowers("ArgMax", "ArgMin")
def arg_extreme(call: NodeCall) -> Result:
    """The index of the largest or the smallest element along an axis."""
    build = call.build.arg_max if call.node.op_type == "ArgMax" else call.build.arg_min
    operand = call.operand(0)
    if not operand.shape:
        return call.filled((), 0, np.dtype(np.int64))
    return build(
        operand,
        call.axis(call.attribute("axis", 0), len(operand.shape)),
        keep_dimensions=bool(call.attribute("keepdims", 1)),
        select_last_index=bool(call.attribute("select_last_index", 0)),
        output_data_type="int64",
    )


@lowers("CumSum", "CumProd")
def cumulative(call: NodeCall) -> Result:
    """Running sums or products along an axis."""
    x = call.operand(0)
    axis = call.axis(call.integer(1), len(x.shape))
    build = call.build.cumulative_sum if call.node.op_type == "CumSum" else call.build.ext.cumulative_product
    return build(x, axis, exclusive=bool(call.attribute("exclusive", 0)), reversed=bool(call.attribute("reverse", 0)))


def softmax_view(call: NodeCall, x: MLOperand, version: int) -> tuple[MLOperand, int]:
    """Return an operand and the axis of its softmax. Before version 13, it is a matrix, split at the axis."""
    if version >= 13:
        return x, call.axis(call.attribute("axis", -1), len(x.shape))
    axis = call.attribute("axis", 1)
    axis = axis + len(x.shape) if axis < 0 else axis
    return call.reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]), 1


@lowers("Softmax", folds=False)
def softmax(call: NodeCall) -> Result:
    """Exponentials, divided by their sum."""
    x, axis = softmax_view(call, call.operand(0), call.version)
    if not x.shape:
        return call.reshape(call.build.softmax(call.reshape(x, [1]), axis=0), [])
    filled = call.key_count()
    if filled is not None:
        # The passes recognize this constant as the number of keys of an attention.
        keys = call.constant(np.arange(x.shape[axis]), "int32")
        x = call.build.where(call.build.lesser(keys, filled), x, call.like(-np.inf, x))
    return call.reshape(call.build.softmax(x, axis=axis), call.tensor(0).shape)


@lowers("LogSoftmax", folds=False)
def log_softmax(call: NodeCall) -> Result:
    """The logarithm of softmax."""
    x, axis = softmax_view(call, call.operand(0), call.version)
    if not x.shape:
        x, axis = call.reshape(x, [1]), 0
    return call.reshape(call.build.ext.log_softmax(x, axis), call.tensor(0).shape)


@lowers("Hardmax", folds=False)
def hardmax(call: NodeCall) -> Result:
    """1 at the first of the largest elements along the axis, 0 elsewhere."""
    x, axis = softmax_view(call, call.operand(0), call.version)
    if not x.shape:
        return call.filled((), 1, call.tensor(0).dtype)
    where = call.build.arg_max(x, axis, keep_dimensions=True, output_data_type="int32")
    sizes = [1] * len(x.shape)
    sizes[axis] = int(x.shape[axis])
    places = call.constant(np.arange(x.shape[axis]).reshape(sizes), "int32")
    found = call.cast(call.build.equal(where, places), HELD[call.tensor(0).dtype])
    return call.reshape(found, call.tensor(0).shape)
