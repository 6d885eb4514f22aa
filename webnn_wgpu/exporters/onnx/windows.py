"""Convolutions, pools, resampling and products as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .call import OnnxCall, OnnxValue, writes

TO_CHANNELS_FIRST, TO_CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def _pads(padding: Sequence[int]) -> list[int]:
    """Return WebNN's [top, bottom, left, right] in ONNX's order."""
    top, bottom, left, right = padding
    return [top, left, bottom, right]


@writes("matmul")
def _matmul(call: OnnxCall) -> OnnxValue:
    return call.node("MatMul", *call.given, shape=call.shape)


@writes("gemm")
def _gemm(call: OnnxCall) -> OnnxValue:
    attrs = call.attrs
    return call.node(
        "Gemm",
        *call.operands,
        shape=call.shape,
        alpha=float(attrs["alpha"]),
        beta=float(attrs["beta"]),
        transA=int(attrs["a_transpose"]),
        transB=int(attrs["b_transpose"]),
    )


@writes("conv2d", "convTranspose2d")
def _convolution(call: OnnxCall) -> OnnxValue:
    operand, weights, bias = call.operands
    assert operand is not None
    assert weights is not None
    attrs = call.attrs
    transposed = call.operator == "convTranspose2d"
    last = attrs["input_layout"] == "nhwc"
    operand = call.transpose(operand, TO_CHANNELS_FIRST) if last else operand
    order = "iohw" if transposed else "oihw"
    weights = call.transpose(weights, [attrs["filter_layout"].index(letter) for letter in order])
    shape = tuple(call.shape[i] for i in TO_CHANNELS_FIRST) if last else call.shape
    found = call.node(
        "ConvTranspose" if transposed else "Conv",
        operand,
        weights,
        bias,
        shape=shape,
        kernel_shape=list(weights.shape[2:]),
        pads=_pads(attrs["padding"]),
        strides=list(attrs["strides"]),
        dilations=list(attrs["dilations"]),
        group=attrs["groups"],
        output_padding=list(attrs["output_padding"]) if transposed else None,
    )
    return call.transpose(found, TO_CHANNELS_LAST) if last else found


POOLS = {"averagePool2d": "AveragePool", "maxPool2d": "MaxPool", "l2Pool2d": "LpPool"}
EXACT_POOLS = {"int32": "float64", "uint32": "float64"}
"""Types without a kernel in onnxruntime, and a type that has one and holds all their values."""


COMPOSED_POOLS = ("int64", "uint64")
"""Types that ONNX's MaxPool does not have."""


def _largest(call: OnnxCall, operand: OnnxValue, shape: tuple[int, ...], padding: Sequence[int]) -> OnnxValue:
    """Return a max pool as the maximum of slices, one for each position in the window."""
    attrs = call.attrs
    sides, strides, dilations = (tuple(attrs[n]) for n in ("window_dimensions", "strides", "dilations"))
    top, bottom, left, right = padding
    if any(padding):
        lowest = call.scalar(np.iinfo(operand.data_type).min, operand, "lowest")
        padded = (*operand.shape[:2], operand.shape[2] + top + bottom, operand.shape[3] + left + right)
        amounts = call.ints([0, 0, top, left, 0, 0, bottom, right], "pads")
        operand = call.node("Pad", operand, amounts, lowest, shape=padded, mode="constant")
    axes, steps = call.ints((2, 3), "axes"), call.ints(strides, "steps")
    parts: list[OnnxValue] = []
    for position in np.ndindex(*sides):
        starts = [n * d for n, d in zip(position, dilations, strict=True)]
        ends = [start + (n - 1) * step + 1 for start, n, step in zip(starts, shape[2:], strides, strict=True)]
        parts.append(
            call.node("Slice", operand, call.ints(starts, "starts"), call.ints(ends, "ends"), axes, steps, shape=shape)
        )
    return call.node("Max", *parts, shape=shape)


@writes(*POOLS)
def _pool(call: OnnxCall) -> OnnxValue:
    operand, attrs = call.given[0], call.attrs
    last = attrs["layout"] == "nhwc"
    operand = call.transpose(operand, TO_CHANNELS_FIRST) if last else operand
    shape = tuple(call.shape[i] for i in TO_CHANNELS_FIRST) if last else call.shape
    padding, dilations = list(attrs["padding"]), list(attrs["dilations"])
    # No `ceil_mode`, whose windows beyond the end implementations count differently: more padding gives the size.
    for i in range(2):
        reach = (shape[2 + i] - 1) * attrs["strides"][i] + (attrs["window_dimensions"][i] - 1) * dilations[i] + 1
        padding[2 * i + 1] = max(padding[2 * i + 1], reach - operand.shape[2 + i] - padding[2 * i])
    if operand.data_type in COMPOSED_POOLS:
        found = _largest(call, operand, shape, padding)
        return call.transpose(found, TO_CHANNELS_LAST) if last else found
    if call.operator == "averagePool2d" and dilations != [1, 1]:
        call.need(19, "dilations of average pools")
    kind = EXACT_POOLS.get(operand.data_type, operand.data_type)
    extra: dict[str, Any] = {"averagePool2d": {"count_include_pad": 0}, "l2Pool2d": {"p": 2}}.get(call.operator, {})
    pooled = call.node(
        POOLS[call.operator],
        call.cast(operand, kind),
        shape=shape,
        kernel_shape=list(attrs["window_dimensions"]),
        pads=_pads(padding),
        strides=list(attrs["strides"]),
        dilations=None if dilations == [1, 1] else dilations,
        **extra,
    )
    found = call.cast(pooled, call.data_type)
    return call.transpose(found, TO_CHANNELS_LAST) if last else found


@writes("resample2d")
def _resample(call: OnnxCall) -> OnnxValue:
    operand, axes = call.given[0], list(call.attrs["axes"])
    linear = call.attrs["mode"] == "linear"
    # onnxruntime interpolates along the last two dimensions alone.
    order = [*(i for i in range(4) if i not in axes), *sorted(axes)] if linear else list(range(4))
    whole = linear and not operand.is_float
    moved = call.transpose(call.cast(operand, "float32") if whole else operand, order)
    shape = tuple(call.shape[i] for i in order)
    resized = call.node(
        "Resize",
        moved,
        None,
        None,
        call.ints(shape, "sizes"),
        shape=shape,
        mode="linear" if linear else "nearest",
        coordinate_transformation_mode="half_pixel",
        nearest_mode=None if linear else "round_prefer_floor",
    )
    # onnxruntime truncates interpolated integers.
    resized = call.cast(call.node("Round", resized), operand.data_type) if whole else resized
    return call.transpose(resized, [order.index(i) for i in range(4)])


@writes("x.grid_sample")
def _grid_sample(call: OnnxCall) -> OnnxValue:
    call.need(20, "GridSample of this form")
    operand, grid = call.given
    attrs = call.attrs
    flags: dict[str, Any] = {
        "mode": attrs["mode"],
        "padding_mode": attrs["padding_mode"],
        "align_corners": int(attrs["align_corners"]),
    }
    return call.node("GridSample", operand, grid, shape=call.shape, **flags)
