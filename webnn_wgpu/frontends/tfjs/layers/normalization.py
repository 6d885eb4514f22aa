"""Layers that normalize, rescale and encode."""

from __future__ import annotations

import numpy as np

from webnn_wgpu import MLOperand

from ._call import LayerCall, layer

MOST_CATEGORIES = 1 << 24
"""The maximum size of a vector that encodes categories."""


@layer("BatchNormalization", masks=True)
def batch_normalization(call: LayerCall) -> MLOperand:
    """Each channel with the mean and variance of the batch in training, else with the moving ones."""
    x, b = call.x, call.build
    axes = call.axes_of(call.config.get("axis", -1), len(x.shape))
    if len(axes) != 1:
        call.fail(f"axes {axes}, of which there must be one")
    axis, epsilon = axes[0], call.number("epsilon", 1e-3)
    size = [x.shape[axis]]
    scale = call.weight("gamma", size) if call.flag("scale", True) else None
    bias = call.weight("beta", size) if call.flag("center", True) else None
    mean, variance = call.weight("moving_mean", size), call.weight("moving_variance", size)
    if call.training is None:
        return b.batch_normalization(x, mean, variance, scale=scale, bias=bias, axis=axis, epsilon=epsilon)
    others = [d for d in range(len(x.shape)) if d != axis]
    wide = [x.shape[axis] if d == axis else 1 for d in range(len(x.shape))]
    batch_mean = b.reduce_mean(x, axes=others, keep_dimensions=True)
    apart = b.sub(x, batch_mean)
    batch_variance = b.reduce_mean(b.mul(apart, apart), axes=others, keep_dimensions=True)
    share = call.constant(1 - call.number("momentum", 0.99), "float32")
    for name, old, new in (("moving_mean", mean, batch_mean), ("moving_variance", variance, batch_variance)):
        distance = b.sub(old, call.reshape(new, size))
        call.training.update(f"{call.path}/{name}", b.sub(old, b.mul(distance, share)))
    y = b.div(apart, b.sqrt(b.add(batch_variance, call.constant(epsilon, "float32"))))
    y = y if scale is None else b.mul(y, call.reshape(scale, wide))
    return y if bias is None else b.add(y, call.reshape(bias, wide))


@layer("LayerNormalization", masks=True)
def layer_normalization(call: LayerCall) -> MLOperand:
    """Each element of the batch with its own mean and variance."""
    x = call.x
    axes = call.axes_of(call.config.get("axis", -1), len(x.shape))
    sizes = [x.shape[axis] for axis in axes]
    scale = call.weight("gamma", sizes) if call.flag("scale", True) else None
    bias = call.weight("beta", sizes) if call.flag("center", True) else None
    return call.build.layer_normalization(x, scale=scale, bias=bias, axes=axes, epsilon=call.number("epsilon", 1e-3))


@layer("Rescaling")
def rescaling(call: LayerCall) -> MLOperand:
    """Elements times a number plus a number."""
    x = call.cast(call.x, "float32")
    scaled = call.build.mul(x, call.constant(call.number("scale"), "float32"))
    return call.build.add(scaled, call.constant(call.number("offset", 0.0), "float32"))


@layer("CategoryEncoding")
def category_encoding(call: LayerCall) -> MLOperand:
    """Numbers of categories as vectors."""
    x, b = call.cast(call.x, "int32"), call.build
    count = call.integer("num_tokens")
    if count > MOST_CATEGORIES:
        call.fail(f"more than {MOST_CATEGORIES} categories")
    mode = call.choice("output_mode", "multi_hot", "one_hot", "count", "multiHot", "oneHot", "int")
    if mode == "int":
        return x
    if mode in ("one_hot", "oneHot"):
        x = x if x.shape and x.shape[-1] == 1 else call.reshape(x, [*x.shape, 1])
        numbers = b.reshape(x, [*x.shape[:-1], 1])
    else:
        numbers = call.reshape(x, [*x.shape, 1]) if x.shape else call.reshape(x, [1, 1])
    if len(numbers.shape) > 3:
        call.fail(f"an input of shape {list(call.x.shape)}")
    lanes = call.stored(np.arange(count, dtype=np.int32))
    hot = call.cast(b.equal(numbers, lanes), "float32")
    if mode in ("one_hot", "oneHot"):
        return hot
    axis = len(hot.shape) - 2
    return b.reduce_sum(hot, axes=[axis]) if mode == "count" else b.reduce_max(hot, axes=[axis])
