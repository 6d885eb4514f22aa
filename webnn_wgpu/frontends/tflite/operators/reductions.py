"""Reductions along dimensions."""

from __future__ import annotations

import math

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers


def _axes(call: TfliteCall) -> list[int]:
    return list(dict.fromkeys(call.axes(call.ints(1), call.tensor(0).rank)))


def _finished(call: TfliteCall, y: MLOperand, x: MLOperand) -> MLOperand:
    """Return a result that is no input."""
    return call.build.identity(y) if y is x else y


@lowers(MEAN=3, SUM=2, REDUCE_PROD=2, note="quantized: in floats, rounded once")
def sums(call: TfliteCall) -> Result:
    """Means, sums and products. The mean of integers is truncated."""
    name, axes = call.node.record.name, _axes(call)
    keep = bool(call.option("KeepDims", False))
    tensor, build = call.tensor(0), call.build
    x = call.real(0)
    if not axes:
        return _finished(call, x, x)
    if name == "REDUCE_PROD":
        return build.reduce_product(x, axes=axes, keep_dimensions=keep)
    if name == "SUM":
        return build.reduce_sum(x, axes=axes, keep_dimensions=keep)
    if x.data_type in ("float32", "float16") and not tensor.is_quantized:
        return build.reduce_mean(x, axes=axes, keep_dimensions=keep)
    count = math.prod(tensor.shape[a] for a in axes)
    if tensor.is_quantized:
        # Sums of the integers are exact, so that the mean is rounded once.
        quantization = tensor.quantization
        assert quantization is not None
        steps = build.sub(call.cast(call.operand(0), "float32"), call.constant(quantization.zero_point, "float32"))
        total = build.reduce_sum(steps, axes=axes, keep_dimensions=keep)
        return build.mul(total, call.constant(quantization.scale / count, "float32"))
    total = build.reduce_sum(x, axes=axes, keep_dimensions=keep)
    return build.div(total, call.like(count, total))


@lowers(REDUCE_MAX=3, REDUCE_MIN=3, note="quantized: of the integers")
def extremes(call: TfliteCall) -> Result:
    """The largest or smallest elements."""
    axes, x = _axes(call), call.moved(0)
    if not axes:
        return call.bare(_finished(call, x, x))
    method = call.build.reduce_max if call.node.record.name == "REDUCE_MAX" else call.build.reduce_min
    return call.bare(method(x, axes=axes, keep_dimensions=bool(call.option("KeepDims", False))))


@lowers(REDUCE_ANY=1, REDUCE_ALL=1)
def truths(call: TfliteCall) -> Result:
    """Whether any or all of the truth values hold."""
    axes, x = _axes(call), call.operand(0)
    if not axes:
        return _finished(call, x, x)
    method = call.build.reduce_max if call.node.record.name == "REDUCE_ANY" else call.build.reduce_min
    return method(x, axes=axes, keep_dimensions=bool(call.option("KeepDims", False)))


@lowers(ARG_MAX=3, ARG_MIN=3)
def positions(call: TfliteCall) -> Result:
    """The position of the first largest or smallest element along a dimension."""
    axis = call.axis(call.integer(1), call.tensor(0).rank)
    method = call.build.arg_max if call.node.record.name == "ARG_MAX" else call.build.arg_min
    wanted = "int64" if call.output().type_name == "int64" else "int32"
    return method(call.operand(0), axis, output_data_type=wanted)


@lowers(CUMSUM=1)
def cumulative_sum(call: TfliteCall) -> Result:
    """Running sums along a dimension."""
    axis = call.axis(call.integer(1), call.tensor(0).rank)
    return call.build.cumulative_sum(
        call.real(0), axis, exclusive=bool(call.option("Exclusive", False)), reversed=bool(call.option("Reverse", False))
    )
