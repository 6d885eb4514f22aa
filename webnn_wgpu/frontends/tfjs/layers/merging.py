"""Layers that merge several inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from webnn_wgpu import MLOperand

from ..contents import entries
from ._call import Flow, LayerCall, layer


def _operands(call: LayerCall) -> list[MLOperand]:
    """Return the inputs, those of fewer dimensions with sizes of 1 behind the batch."""
    operands = [flow.operand for flow in call.inputs]
    if len(operands) < 2:
        call.fail(f"{len(operands)} inputs, of which there must be at least 2")
    rank = max(len(o.shape) for o in operands)
    return [call.reshape(o, [o.shape[0], *[1] * (rank - len(o.shape)), *o.shape[1:]]) for o in operands]


def _mask(call: LayerCall) -> MLOperand | None:
    """Return where the steps of all inputs count."""
    masks = [flow.mask for flow in call.inputs]
    found = [mask for mask in masks if mask is not None]
    return call.fold(call.build.logical_and, found) if found and len(found) == len(masks) else None


def _merged(call: LayerCall, function: Callable[[MLOperand, MLOperand], MLOperand]) -> list[Flow]:
    return [Flow(call.fold(function, _operands(call)), _mask(call))]


@layer("Add")
def add(call: LayerCall) -> list[Flow]:
    """The sum of the inputs."""
    return _merged(call, call.build.add)


@layer("Multiply")
def multiply(call: LayerCall) -> list[Flow]:
    """The product of the inputs."""
    return _merged(call, call.build.mul)


@layer("Maximum")
def maximum(call: LayerCall) -> list[Flow]:
    """The largest input of each element."""
    return _merged(call, call.build.max)


@layer("Minimum")
def minimum(call: LayerCall) -> list[Flow]:
    """The smallest input of each element."""
    return _merged(call, call.build.min)


@layer("Average")
def average(call: LayerCall) -> list[Flow]:
    """The mean of the inputs."""
    total = _merged(call, call.build.add)[0]
    share = call.constant(1 / len(call.inputs), "float32")
    return [Flow(call.build.mul(total.operand, share), total.mask)]


@layer("Concatenate")
def concatenate(call: LayerCall) -> list[Flow]:
    """The inputs one behind the other."""
    operands = [flow.operand for flow in call.inputs]
    axes = call.axes_of(call.config.get("axis", -1), len(call.x.shape))
    if len(axes) != 1:
        call.fail(f"axes {axes}, of which there must be one")
    return [Flow(call.build.concat(operands, axes[0]), _mask(call))]


@layer("Dot")
def dot(call: LayerCall) -> MLOperand:
    """Products of two inputs, summed over an axis of each."""
    if len(call.inputs) != 2:
        call.fail(f"{len(call.inputs)} inputs, of which there must be 2")
    operands = [flow.operand for flow in call.inputs]
    if any(len(o.shape) not in (2, 3) for o in operands):
        call.fail(
            f"inputs of shapes {', '.join(str(list(o.shape)) for o in operands)}, of which 2 and 3 dimensions are allowed"
        )
    value: Any = call.config.get("axes")
    pair: Sequence[Any] = entries(value) or [value, value]
    if len(pair) != 2:
        call.fail(f"axes {value!r}")
    axes = [call.axes_of(axis, len(o.shape))[0] for axis, o in zip(pair, operands, strict=True)]
    if 0 in axes:
        call.fail("axes of the batch")
    if call.flag("normalize"):
        operands = [normalized(call, o, axis) for o, axis in zip(operands, axes, strict=True)]
    x, y = operands
    # The summed axis becomes the last of the first factor and the second of the second one.
    x = x if axes[0] == len(x.shape) - 1 else call.transpose(x, [0, 2, 1])
    y = y if axes[1] == 1 else call.transpose(y, [0, 2, 1])
    left = call.reshape(x, [x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]])
    right = call.reshape(y, [y.shape[0], y.shape[1], math.prod(y.shape[2:])])
    product = call.build.matmul(left, right)
    return call.reshape(
        product, [x.shape[0], *x.shape[1:-1], *y.shape[2:]] if len(x.shape) + len(y.shape) > 4 else [x.shape[0], 1]
    )


def normalized(call: LayerCall, x: MLOperand, axis: int) -> MLOperand:
    """Return vectors of length 1."""
    square = call.build.reduce_sum_square(x, axes=[axis], keep_dimensions=True)
    return call.build.div(x, call.build.sqrt(call.build.max(square, call.constant(1e-7, "float32"))))
