"""Reductions, normalizations, softmax and running sums as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .call import OnnxCall, OnnxValue, writes
from .elementwise import WIDER

REDUCTIONS = {
    "reduceL1": "ReduceL1",
    "reduceL2": "ReduceL2",
    "reduceLogSum": "ReduceLogSum",
    "reduceLogSumExp": "ReduceLogSumExp",
    "reduceMax": "ReduceMax",
    "reduceMean": "ReduceMean",
    "reduceMin": "ReduceMin",
    "reduceProduct": "ReduceProd",
    "reduceSum": "ReduceSum",
    "reduceSumSquare": "ReduceSumSquare",
}
ALONE = {"reduceL1": "Abs", "reduceL2": "Abs", "reduceLogSum": "Log"}
"""Operators of the elements for reductions without axes. Implementations disagree about ONNX's reductions without axes."""


@writes(*REDUCTIONS)
def _reduce(call: OnnxCall) -> OnnxValue:
    operand, axes = call.given[0], call.attrs["axes"]
    if not axes:
        if call.operator in ALONE:
            return call.node(ALONE[call.operator], operand)
        return call.node("Mul", operand, operand) if call.operator == "reduceSumSquare" else operand
    extreme = call.operator in ("reduceMax", "reduceMin")
    wide = {"uint32": "int64"} if extreme else WIDER
    operand = call.cast(operand, wide.get(operand.data_type, operand.data_type))
    reduced = call.node(
        REDUCTIONS[call.operator],
        operand,
        call.ints(axes, "axes"),
        shape=call.shape,
        keepdims=int(call.attrs["keep_dimensions"]),
    )
    return call.cast(reduced, call.data_type)


@writes("argMax", "argMin")
def _arg(call: OnnxCall) -> OnnxValue:
    operand, axes = call.given[0], sorted(call.attrs["axes"])
    if operand.data_type == "uint32":
        operand = call.cast(operand, "int64")
    axis, keep = (axes[0] if axes else 0), int(call.attrs["keep_dimensions"])
    if len(axes) != 1:
        # The position within several dimensions counts them as one.
        rest = [i for i in range(operand.rank) if i not in axes]
        operand = call.transpose(operand, [*rest, *axes])
        count = int(np.prod([operand.shape[len(rest) + i] for i in range(len(axes))], dtype=np.int64))
        operand = call.reshape(operand, (*operand.shape[: len(rest)], count))
        axis, keep = len(rest), 0
    shape = call.shape if keep else tuple(n for i, n in enumerate(operand.shape) if i != axis)
    op_type = "ArgMax" if call.operator == "argMax" else "ArgMin"
    last = int(bool(call.attrs.get("select_last_index")))
    found = call.node(op_type, operand, data_type="int64", shape=shape, axis=axis, keepdims=keep, select_last_index=last)
    return call.cast(call.reshape(found, call.shape), call.data_type)


@writes("softmax")
def _softmax(call: OnnxCall) -> OnnxValue:
    return call.node("Softmax", call.given[0], axis=call.attrs["axis"])


@writes("x.log_softmax")
def _log_softmax(call: OnnxCall) -> OnnxValue:
    return call.node("LogSoftmax", call.given[0], axis=call.attrs["axis"])


@writes("cumulativeSum")
def _cumulative_sum(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    wide = call.cast(operand, WIDER.get(operand.data_type, operand.data_type))
    axis = call.constant(np.int64(call.attrs["axis"]), "axis")
    exclusive, backward = int(call.attrs["exclusive"]), int(call.attrs["reversed"])
    return call.cast(call.node("CumSum", wide, axis, exclusive=exclusive, reverse=backward), call.data_type)


@writes("x.top_k")
def _top_k(call: OnnxCall) -> list[OnnxValue]:
    operand, attrs = call.given[0], call.attrs
    (kind, shape), (indices_kind, _) = call.results
    wide = "int64" if kind == "uint32" else kind
    count = call.ints([attrs["k"]], "k")
    flags: dict[str, Any] = {n: int(attrs[n]) for n in ("axis", "largest", "sorted")}
    values, indices = call.several("TopK", [call.cast(operand, wide), count], [(wide, shape), ("int64", shape)], **flags)
    return [call.cast(values, kind), call.cast(indices, indices_kind)]


def _filled(call: OnnxCall, value: OnnxValue | None, size: int, number: float, what: str) -> OnnxValue:
    return value or call.constant(np.full(size, number), what, call.data_type)


@writes("batchNormalization")
def _batch_normalization(call: OnnxCall) -> OnnxValue:
    operand, mean, variance, scale, bias = call.operands
    assert operand is not None
    assert mean is not None
    assert variance is not None
    axis, epsilon = call.attrs["axis"], float(call.attrs["epsilon"])
    size = operand.shape[axis]
    if axis == 1:
        scale, bias = _filled(call, scale, size, 1, "scale"), _filled(call, bias, size, 0, "bias")
        return call.node("BatchNormalization", operand, scale, bias, mean, variance, epsilon=epsilon)
    shape = (size, *(1 for _ in operand.shape[axis + 1 :]))
    centered = call.node("Sub", operand, call.reshape(mean, shape))
    raised = call.node("Add", variance, call.scalar(epsilon, variance, "epsilon"))
    factor = call.node("Reciprocal", call.node("Sqrt", raised))
    factor = factor if scale is None else call.node("Mul", factor, scale)
    scaled = call.node("Mul", centered, call.reshape(factor, shape))
    return scaled if bias is None else call.node("Add", scaled, call.reshape(bias, shape))


@writes("instanceNormalization")
def _instance_normalization(call: OnnxCall) -> OnnxValue:
    operand, scale, bias = call.operands
    assert operand is not None
    last = call.attrs["layout"] == "nhwc"
    operand = call.transpose(operand, (0, 3, 1, 2)) if last else operand
    scale, bias = (_filled(call, v, operand.shape[1], n, w) for v, n, w in ((scale, 1, "scale"), (bias, 0, "bias")))
    found = call.node("InstanceNormalization", operand, scale, bias, epsilon=float(call.attrs["epsilon"]))
    return call.transpose(found, (0, 2, 3, 1)) if last else found


@writes("layerNormalization")
def _layer_normalization(call: OnnxCall) -> OnnxValue:
    operand, scale, bias = call.operands
    assert operand is not None
    axes: Sequence[int] = call.attrs["axes"]
    if not axes:
        # Each element is its own mean.
        return call.expand(bias or call.scalar(0, operand, "zero"), operand.shape)
    last = list(range(operand.rank - len(axes), operand.rank))
    order = [*(i for i in range(operand.rank) if i not in axes), *sorted(axes)]
    own = [list(axes).index(axis) for axis in sorted(axes)]
    moved = call.transpose(operand, order)
    scale = call.transpose(scale, own) if scale else None
    bias = call.transpose(bias, own) if bias else None
    sizes = moved.shape[last[0] :]
    scale = scale or call.constant(np.ones(sizes), "scale", call.data_type)
    found = call.node("LayerNormalization", moved, scale, bias, axis=last[0], epsilon=float(call.attrs["epsilon"]))
    return call.transpose(found, [order.index(i) for i in range(operand.rank)])
