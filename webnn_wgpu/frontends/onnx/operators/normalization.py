"""Normalizations. Computations in several steps use float32 and round once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..rounding import rounded
from ..tensors import OnnxTensor
from ..types import FLOAT32, HELD, DType
from ._registry import IMAGES, MICROSOFT, SOME, Result, lowers


def wide(call: NodeCall, index: int) -> MLOperand:
    """Return an input as float32."""
    return call.cast(call.operand(index), "float32")


def per_channel(call: NodeCall, operand: MLOperand, rank: int) -> MLOperand:
    """Return a vector of channels in a shape that broadcasts to [N, C, sizes...]."""
    return call.reshape(operand, [1, math.prod(operand.shape), *[1] * (rank - 2)]) if rank > 1 else operand


def moments(call: NodeCall, x: MLOperand, axes: Sequence[int]) -> tuple[MLOperand, MLOperand, MLOperand]:
    """Return the mean, the deviation from it, and the variance, over axes that remain with a size of 1."""
    mean = call.build.reduce_mean(x, axes=list(axes), keep_dimensions=True)
    apart = call.build.sub(x, mean)
    return mean, apart, call.build.reduce_mean(call.build.mul(apart, apart), axes=list(axes), keep_dimensions=True)


def scaled(call: NodeCall, y: MLOperand, scale: MLOperand | None, bias: MLOperand | None) -> MLOperand:
    """Return y * scale + bias, without the operands that are None."""
    y = y if scale is None else call.build.mul(y, call.cast(scale, y.data_type))
    return y if bias is None else call.build.add(y, call.cast(bias, y.data_type))


def number(call: NodeCall, value: float) -> MLOperand:
    """Return a scalar of float32."""
    return call.constant(value, "float32")


def keeps(x: MLOperand, epsilon: float) -> MLOperand | None:
    """Return an operand, or None if its type does not hold epsilon, which WebNN's operators cast to it."""
    return x if x.data_type == "float32" or abs(float(np.float16(epsilon)) - epsilon) <= epsilon / 512 else None


def typed(operand: MLOperand, dtype: DType, call: NodeCall) -> OnnxTensor:
    """Return a result of a data type that does not follow from the inputs."""
    held = call.cast(operand, HELD[dtype])
    return OnnxTensor(shape=tuple(operand.shape), dtype=dtype, operand=rounded(call, held, dtype))


# over images ----------------------------------------------------------------------------------------------------------


@lowers("BatchNormalization", ranks={0: SOME})
def batch_normalization(call: NodeCall) -> Result:
    """Channels normalized with the input statistics. Training normalizes with the channels' own and updates the input ones."""
    x, epsilon = call.operand(0), call.attribute("epsilon", 1e-5)
    rank = len(x.shape)
    training = call.attribute("training_mode", 0) if call.version >= 14 else any(map(call.wants, range(1, 5)))
    if training:
        return trained(call, wide(call, 0), epsilon)
    if call.version < 9 and not call.attribute("spatial", 1):
        scale, bias, mean, variance = (call.reshape(wide(call, i), [1, *x.shape[1:]]) for i in range(1, 5))
        deviation = call.build.sqrt(call.build.add(variance, number(call, epsilon)))
        return scaled(call, call.build.div(call.build.sub(wide(call, 0), mean), deviation), scale, bias)
    types = {call.operand(i).data_type for i in range(5)}
    computed = types.pop() if len(types) == 1 and keeps(x, epsilon) else "float32"
    x, scale, bias, mean, variance = (call.cast(call.operand(i), computed) for i in range(5))
    if rank == 1:
        # The operand becomes one channel, and an image for each element.
        y = call.build.batch_normalization(
            call.reshape(x, [x.shape[0], 1]), mean, variance, scale=scale, bias=bias, epsilon=epsilon
        )
        return call.reshape(y, x.shape)
    return call.build.batch_normalization(x, mean, variance, scale=scale, bias=bias, epsilon=epsilon)


def trained(call: NodeCall, x: MLOperand, epsilon: float) -> Result:
    """Return the results of training: normalized images, updated statistics, and the statistics of the images."""
    rank = len(x.shape)
    if rank < 2:
        call.fail(f"training of an input of rank {rank}")
    mean, apart, variance = moments(call, x, [0, *range(2, rank)])
    channels = [x.shape[1]]
    y = call.build.div(apart, call.build.sqrt(call.build.add(variance, number(call, epsilon))))
    y = scaled(call, y, per_channel(call, wide(call, 1), rank), per_channel(call, wide(call, 2), rank))
    momentum = call.attribute("momentum", 0.9)
    results: list[MLOperand | OnnxTensor] = [y]
    own = [call.reshape(mean, channels), call.reshape(variance, channels)]
    for i, statistic in zip((3, 4), own, strict=True):
        kept = call.build.mul(wide(call, i), number(call, momentum))
        moved = call.build.add(kept, call.build.mul(statistic, number(call, 1 - momentum)))
        results.append(typed(moved, call.tensor(i).dtype, call))
    return [*results, *(typed(o, call.tensor(3).dtype, call) for o in own)]


def normalized_images(call: NodeCall, x: MLOperand, groups: int, scale: MLOperand | None, bias: MLOperand | None) -> MLOperand:
    """Return the channels of each image normalized in groups. Scale and bias have one element for each group."""
    n, epsilon = int(x.shape[0]), call.attribute("epsilon", 1e-5)
    if groups < 1:
        call.fail(f"{groups} groups")
    x = keeps(x, epsilon) or call.cast(x, "float32")
    scale, bias = (None if o is None else call.cast(o, x.data_type) for o in (scale, bias))
    flat = call.reshape(x, [n, groups, 1, math.prod(int(d) for d in x.shape) // (n * groups)])
    y = call.build.instance_normalization(flat, scale=scale, bias=bias, epsilon=epsilon)
    return call.reshape(y, x.shape)


@lowers("InstanceNormalization", ranks={0: range(2, 65)})
def instance_normalization(call: NodeCall) -> Result:
    """Each image's channels normalized."""
    x = call.operand(0)
    return normalized_images(call, x, int(x.shape[1]), call.operand(1), call.operand(2))


@lowers("GroupNormalization", ranks={0: range(2, 65)})
def group_normalization(call: NodeCall) -> Result:
    """Groups of each image's channels, normalized.

    Scale and bias have one element for each group, and since version 21 for each channel.
    """
    x, groups = call.operand(0), call.required("num_groups")
    if call.version < 21:
        return normalized_images(call, x, groups, call.operand(1), call.operand(2))
    rank = len(x.shape)
    y = normalized_images(call, wide(call, 0), groups, None, None)
    return scaled(call, y, per_channel(call, call.operand(1), rank), per_channel(call, call.operand(2), rank))


@lowers("GroupNorm", domain=MICROSOFT, ranks={0: IMAGES})
def group_norm(call: NodeCall) -> Result:
    """Groups of each image's channels, normalized, and Swish. The channels may be the last dimension."""
    x = wide(call, 0)
    rank = len(x.shape)
    if call.attribute("channels_last", 1):
        x = call.transpose(x, [0, rank - 1, *range(1, rank - 1)])
    y = normalized_images(call, x, call.required("groups"), None, None)
    y = scaled(call, y, per_channel(call, call.operand(1), rank), per_channel(call, call.operand(2), rank))
    y = call.build.mul(y, call.build.sigmoid(y)) if call.attribute("activation", 0) else y
    return call.transpose(y, [0, *range(2, rank), 1]) if call.attribute("channels_last", 1) else y


@lowers("LRN", ranks={0: range(2, 65)})
def lrn(call: NodeCall) -> Result:
    """Each element divided by a power of the mean square of its neighboring channels."""
    x, size = wide(call, 0), call.required("size")
    n, c = (int(d) for d in x.shape[:2])
    rest = math.prod(int(d) for d in x.shape[2:])
    squares = call.reshape(call.build.mul(x, x), [n, 1, c, rest])
    before = (size - 1) // 2
    # Zeros outside the channels count: every mean is over `size` elements.
    squares = call.build.pad(squares, [0, 0, before, 0], [0, 0, size - 1 - before, 0])
    mean = call.reshape(call.build.average_pool2d(squares, window_dimensions=[size, 1]), x.shape)
    base = call.build.linear(mean, alpha=call.attribute("alpha", 1e-4), beta=call.attribute("bias", 1.0))
    return call.build.div(x, call.build.pow(base, number(call, call.attribute("beta", 0.75))))


# over axes ------------------------------------------------------------------------------------------------------------


def layer_normalized(
    call: NodeCall, x: MLOperand, axis: int, epsilon: float, scale: MLOperand | None, bias: MLOperand | None
) -> MLOperand:
    """Return elements normalized from an axis on, with scale and bias, which are broadcast."""
    x = keeps(x, epsilon) or call.cast(x, "float32")
    axes = list(range(axis, len(x.shape)))
    if all(o is None or list(o.shape) == list(x.shape[axis:]) for o in (scale, bias)):
        scale, bias = (None if o is None else call.cast(o, x.data_type) for o in (scale, bias))
        return call.build.layer_normalization(x, scale=scale, bias=bias, axes=axes, epsilon=epsilon)
    y = call.build.layer_normalization(call.cast(x, "float32"), axes=axes, epsilon=epsilon)
    return scaled(call, y, scale, bias)


def statistics(call: NodeCall, x: MLOperand, axis: int, epsilon: float) -> tuple[MLOperand, MLOperand]:
    """Return mean and inverse of the standard deviation, from an axis on, as float32."""
    mean, _, variance = moments(call, call.cast(x, "float32"), range(axis, len(x.shape)))
    deviation = call.build.sqrt(call.build.add(variance, number(call, epsilon)))
    return mean, call.build.reciprocal(deviation)


@lowers("LayerNormalization")
def layer_normalization(call: NodeCall) -> Result:
    """Elements normalized from an axis on. The statistics have the data type `stash_type`."""
    x, epsilon = call.operand(0), call.attribute("epsilon", 1e-5)
    axis = call.axis(call.attribute("axis", -1), len(x.shape))
    y = layer_normalized(call, x, axis, epsilon, call.operand(1), call.optional(2))
    if not call.wants(1) and not call.wants(2):
        return y
    mean, inverse = statistics(call, x, axis, epsilon)
    stash = FLOAT32 if call.attribute("stash_type", 1) == 1 else call.tensor(0).dtype
    return [y, typed(mean, stash, call), typed(inverse, stash, call)]


def rms_normalized(call: NodeCall, x: MLOperand, axis: int, epsilon: float, scale: MLOperand) -> MLOperand:
    """Return elements divided by the root of their mean square from an axis on, scaled."""
    x = keeps(x, epsilon) or call.cast(x, "float32")
    axes = list(range(axis, len(x.shape)))
    if list(scale.shape) == list(x.shape[axis:]):
        return call.build.ext.rms_normalization(x, scale=call.cast(scale, x.data_type), axes=axes, epsilon=epsilon)
    y = call.build.ext.rms_normalization(call.cast(x, "float32"), axes=axes, epsilon=epsilon)
    return scaled(call, y, scale, None)


def inverse_root(call: NodeCall, x: MLOperand, axis: int, epsilon: float) -> OnnxTensor:
    """Return the inverse of the root of the mean square from an axis on."""
    x = call.cast(x, "float32")
    squares = call.build.reduce_mean(call.build.mul(x, x), axes=list(range(axis, len(x.shape))), keep_dimensions=True)
    return typed(call.build.reciprocal(call.build.sqrt(call.build.add(squares, number(call, epsilon)))), FLOAT32, call)


@lowers("RMSNormalization")
def rms_normalization(call: NodeCall) -> Result:
    """Elements divided by the root of their mean square, from an axis on."""
    axis = call.axis(call.attribute("axis", -1), call.tensor(0).rank)
    return rms_normalized(call, call.operand(0), axis, call.attribute("epsilon", 1e-5), call.operand(1))


@lowers("SimplifiedLayerNormalization")
@lowers("SimplifiedLayerNormalization", domain=MICROSOFT)
def simplified_layer_normalization(call: NodeCall) -> Result:
    """Elements divided by the root of their mean square, from an axis on, and the inverse of that root."""
    x, epsilon = call.operand(0), call.attribute("epsilon", 1e-5)
    axis = call.axis(call.attribute("axis", -1), len(x.shape))
    y = typed(rms_normalized(call, x, axis, epsilon, call.operand(1)), call.tensor(1).dtype, call)
    return [y, inverse_root(call, x, axis, epsilon)] if call.wants(1) else y


def skipped(call: NodeCall, bias: int) -> MLOperand:
    """Return the sum of an input, the skip connection and a bias."""
    total = call.build.add(call.operand(0), call.operand(1))
    return call.build.add(total, call.operand(bias)) if call.has(bias) else total


@lowers("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(call: NodeCall) -> Result:
    """The sum of two inputs and a bias, normalized over the last axis, then the statistics and the sum."""
    total, epsilon = skipped(call, 4), call.attribute("epsilon", 1e-12)
    axis = len(total.shape) - 1
    y = layer_normalized(call, total, axis, epsilon, call.operand(2), call.optional(3))
    mean = inverse = None
    if call.wants(1) or call.wants(2):
        mean, inverse = (typed(o, FLOAT32, call) for o in statistics(call, total, axis, epsilon))
    return [y, mean, inverse, total]


@lowers("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(call: NodeCall) -> Result:
    """The sum of two inputs and a bias, divided by the root of its mean square.

    The inverse of the root and the sum are further results.
    """
    total, epsilon = skipped(call, 3), call.attribute("epsilon", 1e-12)
    axis = len(total.shape) - 1
    y = rms_normalized(call, total, axis, epsilon, call.operand(2))
    return [y, None, inverse_root(call, total, axis, epsilon) if call.wants(2) else None, total]


@lowers("LpNormalization", folds=False)
def lp_normalization(call: NodeCall) -> Result:
    """Elements divided by their norm along an axis, 0 where the norm is 0."""
    x, p = wide(call, 0), call.attribute("p", 2)
    reduce = {1: call.build.reduce_l1, 2: call.build.reduce_l2}.get(p) or call.fail(f"p {p} is neither 1 nor 2")
    norm = reduce(x, axes=[call.axis(call.attribute("axis", -1), len(x.shape))], keep_dimensions=True)
    zero = number(call, 0)
    return call.build.where(call.build.equal(norm, zero), zero, call.build.div(x, norm))


@lowers("MeanVarianceNormalization")
def mean_variance_normalization(call: NodeCall) -> Result:
    """Elements normalized over axes."""
    x = wide(call, 0)
    _, apart, variance = moments(call, x, call.axes(call.attribute("axes") or [0, 2, 3], len(x.shape)))
    return call.build.div(apart, call.build.add(call.build.sqrt(variance), number(call, np.float32(1e-9).item())))
