"""Reductions, normalizations, products, windows and resampling as operations of MIL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .call import CoreCall, Var, cast, held, mb, writes

REDUCTIONS = {
    "reduceL1": "reduce_l1_norm",
    "reduceL2": "reduce_l2_norm",
    "reduceLogSum": "reduce_log_sum",
    "reduceLogSumExp": "reduce_log_sum_exp",
    "reduceMax": "reduce_max",
    "reduceMean": "reduce_mean",
    "reduceMin": "reduce_min",
    "reduceProduct": "reduce_prod",
    "reduceSum": "reduce_sum",
    "reduceSumSquare": "reduce_sum_square",
}
TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


@writes(*REDUCTIONS)
def _reduce(call: CoreCall) -> Var:
    axes, x = list(call.attrs["axes"]), call.x
    if axes:
        keep = call.attrs["keep_dimensions"]
        if call.operator == "reduceL1" and not call.is_float:
            return mb.reduce_sum(x=mb.maximum(x=x, y=mb.mul(x=x, y=np.int32(-1))), axes=axes, keep_dims=keep)
        return getattr(mb, REDUCTIONS[call.operator])(x=x, axes=axes, keep_dims=keep)
    if call.operator in ("reduceL1", "reduceL2"):
        return mb.abs(x=x) if call.is_float else mb.maximum(x=x, y=mb.mul(x=x, y=np.int32(-1)))
    if call.operator == "reduceLogSum":
        return mb.log(x=x, epsilon=call.number(0))
    return mb.mul(x=x, y=x) if call.operator == "reduceSumSquare" else mb.identity(x=x)


@writes("argMax", "argMin")
def _arg(call: CoreCall) -> Var:
    (axis,) = call.attrs["axes"]
    find = mb.reduce_argmax if call.operator == "argMax" else mb.reduce_argmin
    return find(x=call.x, axis=axis, keep_dims=call.attrs["keep_dimensions"])


@writes("softmax")
def _softmax(call: CoreCall) -> Var:
    return mb.softmax(x=call.x, axis=call.attrs["axis"])


@writes("cumulativeSum")
def _cumulative_sum(call: CoreCall) -> Var:
    attrs = call.attrs
    return mb.cumsum(x=call.x, axis=attrs["axis"], exclusive=attrs["exclusive"], reverse=attrs["reversed"])


def _normalized(call: CoreCall, x: Var, axes: Sequence[int]) -> Var:
    """Return a value with mean 0 and variance 1 along dimensions."""
    centered = mb.sub(x=x, y=mb.reduce_mean(x=x, axes=list(axes), keep_dims=True))
    variance = mb.reduce_mean(x=mb.mul(x=centered, y=centered), axes=list(axes), keep_dims=True)
    return mb.real_div(x=centered, y=mb.sqrt(x=mb.add(x=variance, y=call.number(call.attrs["epsilon"]))))


def _spread(value: Var, axes: Sequence[int], rank: int) -> Var:
    """Return a factor of some dimensions, in their order, so that it broadcasts to all."""
    order = [list(axes).index(axis) for axis in sorted(axes)]
    moved = value if order == sorted(order) else mb.transpose(x=value, perm=order)
    sizes = iter(tuple(moved.shape))
    return mb.reshape(x=moved, shape=[next(sizes) if i in axes else 1 for i in range(rank)])


def _scaled(call: CoreCall, x: Var, scale: Var | None, bias: Var | None, axes: Sequence[int]) -> Var:
    rank = len(tuple(x.shape))
    if scale is not None:
        x = mb.mul(x=x, y=_spread(scale, axes, rank))
    return x if bias is None else mb.add(x=x, y=_spread(bias, axes, rank))


@writes("layerNormalization")
def _layer_normalization(call: CoreCall) -> Var:
    x, scale, bias = call.operands
    axes = list(call.attrs["axes"])
    if not axes:
        zeros = mb.mul(x=x, y=call.number(0))
        return zeros if bias is None else mb.add(x=zeros, y=bias)
    return _scaled(call, _normalized(call, x, axes), scale, bias, axes)


@writes("instanceNormalization")
def _instance_normalization(call: CoreCall) -> Var:
    x, scale, bias = call.operands
    last = call.attrs["layout"] == "nhwc"
    return _scaled(call, _normalized(call, x, (1, 2) if last else (2, 3)), scale, bias, (3 if last else 1,))


@writes("batchNormalization")
def _batch_normalization(call: CoreCall) -> Var:
    x, mean, variance, scale, bias = call.operands
    axis, rank = call.attrs["axis"], len(tuple(x.shape))
    centered = mb.sub(x=x, y=_spread(mean, (axis,), rank))
    deviation = mb.sqrt(x=mb.add(x=_spread(variance, (axis,), rank), y=call.number(call.attrs["epsilon"])))
    return _scaled(call, mb.real_div(x=centered, y=deviation), scale, bias, (axis,))


@writes("matmul")
def _matmul(call: CoreCall) -> Var:
    return mb.matmul(x=call.operands[0], y=call.operands[1])


@writes("gemm")
def _gemm(call: CoreCall) -> Var:
    a, b, c = call.operands
    attrs = call.attrs
    found = mb.matmul(x=a, y=b, transpose_x=attrs["a_transpose"], transpose_y=attrs["b_transpose"])
    if attrs["alpha"] != 1:
        found = mb.mul(x=found, y=call.number(attrs["alpha"]))
    if c is None:
        return found
    return mb.add(x=found, y=c if attrs["beta"] == 1 else mb.mul(x=c, y=call.number(attrs["beta"])))


@writes("conv2d", "convTranspose2d")
def _convolution(call: CoreCall) -> Var:
    x, weights, bias = call.operands
    attrs, transposed = call.attrs, call.operator == "convTranspose2d"
    last = attrs["input_layout"] == "nhwc"
    x = mb.transpose(x=x, perm=TO_FIRST) if last else x
    order = [attrs["filter_layout"].index(letter) for letter in ("iohw" if transposed else "oihw")]
    weights = weights if order == [0, 1, 2, 3] else mb.transpose(x=weights, perm=order)
    common = {
        "x": x,
        "weight": weights,
        "strides": list(attrs["strides"]),
        "pad_type": "custom",
        "pad": list(attrs["padding"]),
        "dilations": list(attrs["dilations"]),
        "groups": attrs["groups"],
    }
    if bias is not None and call.arrays[2] is not None:
        common["bias"] = bias
    if transposed:
        shape = call.shape if not last else tuple(call.shape[i] for i in TO_FIRST)
        found = mb.conv_transpose(**common, output_shape=list(shape))
    else:
        found = mb.conv(**common)
    if bias is not None and call.arrays[2] is None:
        found = mb.add(x=found, y=mb.reshape(x=bias, shape=[1, -1, 1, 1]))
    return mb.transpose(x=found, perm=TO_LAST) if last else found


@writes("averagePool2d", "maxPool2d", "l2Pool2d")
def _pool(call: CoreCall) -> Var:
    attrs = call.attrs
    if tuple(attrs["dilations"]) != (1, 1):
        raise call.refuse("there are no dilations of pools")
    last = attrs["layout"] == "nhwc"
    x = mb.transpose(x=call.x, perm=TO_FIRST) if last else call.x
    shape = tuple(call.shape[i] for i in TO_FIRST) if last else call.shape
    kind = held(call.data_type)
    x = cast(x, "fp32") if kind == "int32" else x
    padding = list(attrs["padding"])
    for i in range(2):
        reach = (shape[2 + i] - 1) * attrs["strides"][i] + attrs["window_dimensions"][i]
        padding[2 * i + 1] = max(padding[2 * i + 1], reach - x.shape[2 + i] - padding[2 * i])
    common = {"x": x, "kernel_sizes": list(attrs["window_dimensions"]), "strides": list(attrs["strides"])}
    common |= {"pad_type": "custom", "pad": padding}
    if call.operator == "averagePool2d":
        found = mb.avg_pool(**common, exclude_padding_from_average=True)
    else:
        found = (mb.max_pool if call.operator == "maxPool2d" else mb.l2_pool)(**common)
    found = cast(found, kind)
    return mb.transpose(x=found, perm=TO_LAST) if last else found


@writes("resample2d")
def _resample(call: CoreCall) -> Var:
    """Gather along each dimension, with the weights of WebNN's formula."""
    x, linear = call.x, call.attrs["mode"] == "linear"
    whole = held(call.data_type) == "int32"
    x = cast(x, "fp32") if whole and linear else x
    axes: list[int] = list(call.attrs["axes"])
    for axis in axes:
        size: int = tuple(x.shape)[axis]
        wanted = call.shape[axis]
        if size == wanted:
            continue
        places: Any = (np.arange(wanted) + 0.5) * size / wanted - 0.5
        if not linear:
            nearest = np.ceil(places - 0.5).clip(0, size - 1).astype(np.int32)
            x = mb.gather(x=x, indices=nearest, axis=axis)
            continue
        places = places.clip(0, size - 1)
        low = np.floor(places).astype(np.int32)
        part: Any = (places - low).astype(np.float32)
        shape = [wanted if i == axis else 1 for i in range(4)]
        kind = call.number(0, x).dtype
        lower = mb.mul(x=mb.gather(x=x, indices=low, axis=axis), y=(1 - part).reshape(shape).astype(kind))
        upper = mb.gather(x=x, indices=np.minimum(low + 1, size - 1).astype(np.int32), axis=axis)
        x = mb.add(x=lower, y=mb.mul(x=upper, y=part.reshape(shape).astype(kind)))
    if whole and linear:
        x = cast(mb.round(x=x), "int32")
    return mb.identity(x=x) if x is call.x else x
