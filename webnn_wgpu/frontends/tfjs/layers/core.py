"""Layers that multiply, look up, reshape and drop."""

from __future__ import annotations

import math
from typing import Any

from webnn_wgpu import MLOperand

from ._call import Flow, LayerCall, layer
from .activations import activated


@layer("Dense", masks=True)
def dense(call: LayerCall) -> MLOperand:
    """A product with a matrix over the last dimension."""
    x = call.ranked(*range(2, 17))
    units = call.integer("units")
    kernel = call.weight("kernel", [x.shape[-1], units])
    rows = call.reshape(x, [math.prod(x.shape[:-1]), x.shape[-1]])
    bias = call.weight("bias", [units]) if call.flag("use_bias", True) else None
    y = call.build.gemm(rows, kernel) if bias is None else call.build.gemm(rows, kernel, c=bias)
    return activated(call, call.reshape(y, [*x.shape[:-1], units]))


@layer("Dropout", masks=True)
def dropout(call: LayerCall) -> MLOperand:
    """Random elements become 0 while a model is trained."""
    shape: Any = call.config.get("noise_shape")
    return call.dropped(call.x, call.number("rate"), shape)


@layer("SpatialDropout1D", masks=True)
def spatial_dropout(call: LayerCall) -> MLOperand:
    """Random channels become 0 while a model is trained."""
    return call.dropped(call.ranked(3), call.number("rate"), [None, 1, None])


@layer("GaussianNoise", masks=True)
def gaussian_noise(call: LayerCall) -> MLOperand:
    """Random numbers are added while a model is trained."""
    if call.training is None:
        return call.x
    deviation = call.number("stddev")
    return call.build.add(call.x, call.build.ext.random_normal(call.training.key(), call.x.shape, deviation=deviation))


@layer("GaussianDropout", masks=True)
def gaussian_dropout(call: LayerCall) -> MLOperand:
    """Elements are multiplied by random numbers around 1 while a model is trained."""
    rate = call.number("rate")
    if call.training is None or not 0 < rate < 1:
        return call.x
    deviation = math.sqrt(rate / (1 - rate))
    noise = call.build.ext.random_normal(call.training.key(), call.x.shape, mean=1.0, deviation=deviation)
    return call.build.mul(call.x, noise)


@layer("AlphaDropout", masks=True)
def alpha_dropout(call: LayerCall) -> MLOperand:
    """Random elements become the least value of selu while a model is trained. Mean and variance stay."""
    rate, b = call.number("rate"), call.build
    if call.training is None or not 0 < rate < 1:
        return call.x
    least = -1.6732632423543772 * 1.0507009873554805
    kept = b.greater_or_equal(b.ext.random_uniform(call.training.key(), call.x.shape), call.constant(rate, "float32"))
    scale = ((1 - rate) * (1 + rate * least**2)) ** -0.5
    x = b.where(kept, call.x, call.constant(least, "float32"))
    return b.add(b.mul(x, call.constant(scale, "float32")), call.constant(-scale * least * rate, "float32"))


@layer("Flatten")
def flatten(call: LayerCall) -> MLOperand:
    """All dimensions but the batch become one, in the order of channels last."""
    x = call.ranked(*range(2, 17))
    x = call.last(x) if call.channels_first() and len(x.shape) > 2 else x
    return call.reshape(x, [x.shape[0], math.prod(x.shape[1:])])


@layer("RepeatVector")
def repeat_vector(call: LayerCall) -> MLOperand:
    """A vector becomes a sequence of copies."""
    n, size = call.ranked(2).shape
    return call.build.expand(call.reshape(call.x, [n, 1, size]), [n, call.integer("n"), size])


@layer("Reshape")
def reshape(call: LayerCall) -> MLOperand:
    """Another shape of the same elements."""
    target: Any = call.config.get("target_shape")
    if not isinstance(target, list) or not all(d is None or (isinstance(d, int) and d >= -1) for d in target):  # pyright: ignore[reportUnknownVariableType]
        call.fail(f"target_shape is {target!r}")
    sizes: list[int] = [-1 if d is None else d for d in target]  # pyright: ignore[reportUnknownVariableType]
    elements, known = math.prod(call.x.shape[1:]), math.prod(d for d in sizes if d != -1)
    if sizes.count(-1) > 1 or (elements != known if -1 not in sizes else not known or elements % known):
        call.fail(f"target_shape {target!r} does not fit {elements} elements")
    return call.reshape(call.x, [call.x.shape[0], *(elements // known if d == -1 else d for d in sizes)])


@layer("Permute")
def permute(call: LayerCall) -> MLOperand:
    """The dimensions in another order."""
    order = call.integers("dims", len(call.x.shape) - 1)
    if sorted(order) != list(range(1, len(call.x.shape))):
        call.fail(f"dims {order}")
    return call.transpose(call.x, [0, *order])


@layer("Masking")
def masking(call: LayerCall) -> list[Flow]:
    """Steps whose elements all have a value do not count."""
    x = call.ranked(*range(2, 17))
    other = call.cast(call.build.not_equal(x, call.like(call.number("mask_value", 0.0), x)), "float32")
    mask = call.build.reduce_max(other, axes=[len(x.shape) - 1])
    kept = call.reshape(mask, [*mask.shape, 1])
    return [Flow(call.build.mul(x, kept), call.cast(mask, "uint8"))]


@layer("Embedding")
def embedding(call: LayerCall) -> list[Flow]:
    """Rows of a matrix by number."""
    x = call.x
    rows, width = call.integer("input_dim"), call.integer("output_dim")
    indices = call.cast(x, "int32")
    y = call.build.gather(call.weight("embeddings", [rows, width]), indices)
    mask = call.cast(call.build.not_equal(x, call.like(0.0, x)), "uint8") if call.flag("mask_zero") else None
    return [Flow(y, mask)]


@layer("InputLayer")
def input_layer(call: LayerCall) -> MLOperand:
    """The input of a model inside a layer."""
    return call.x
