"""Layers that convolve, and layers that crop, pad and resize pictures."""

from __future__ import annotations

from typing import Any, Literal, cast

from webnn_wgpu import MLOperand

from ..contents import entries
from ..resizing import resized
from ..windows import convolution, depthwise, transposed
from ._call import LayerCall, layer
from .activations import activated


def same_or_valid(call: LayerCall) -> Literal["same", "valid"]:
    """Return the rule of padding."""
    return cast("Literal['same', 'valid']", call.choice("padding", "valid", "same"))


def with_bias(call: LayerCall, y: MLOperand, channels: int) -> MLOperand:
    """Return a result with the bias, if there is one, and the activation."""
    if call.flag("use_bias", True):
        y = call.build.add(y, call.weight("bias", [channels]))
    return activated(call, y)


def _channels_last(call: LayerCall, spatial: int) -> MLOperand:
    x = call.ranked(spatial + 2)
    return call.last(x) if call.channels_first() else x


def _restored(call: LayerCall, y: MLOperand) -> MLOperand:
    return call.first(y) if call.channels_first() else y


@layer("Conv1D", "Conv2D", "Conv3D")
def conv(call: LayerCall) -> MLOperand:
    """A convolution over one to three dimensions."""
    spatial = int(call.kind[4])
    x = _channels_last(call, spatial)
    filters, taps = call.integer("filters"), call.integers("kernel_size", spatial)
    groups = call.integer("groups", 1)
    kernel = call.weight("kernel", [*taps, x.shape[-1] // groups, filters])
    strides, dilations = call.integers("strides", spatial, 1), call.integers("dilation_rate", spatial, 1)
    if call.config.get("padding") == "causal":
        if spatial != 1:
            call.fail("padding is causal")
        padding: Any = [((taps[0] - 1) * dilations[0], 0)]
    else:
        padding = same_or_valid(call)
    y = convolution(call, x, kernel, strides, dilations, padding, groups)
    return _restored(call, with_bias(call, y, filters))


@layer("Conv2DTranspose", "Conv3DTranspose")
def conv_transpose(call: LayerCall) -> MLOperand:
    """A transposed convolution over two or three dimensions."""
    spatial = int(call.kind[4])
    x = _channels_last(call, spatial)
    filters, taps = call.integer("filters"), call.integers("kernel_size", spatial)
    strides = call.integers("strides", spatial, 1)
    if set(call.integers("dilation_rate", spatial, 1)) != {1}:
        call.fail("a dilation")
    kernel = call.weight("kernel", [*taps, filters, x.shape[-1]])
    same = same_or_valid(call) == "same"
    sizes = [
        size * stride + (0 if same else max(tap - stride, 0))
        for size, stride, tap in zip(x.shape[1:-1], strides, taps, strict=True)
    ]
    y = transposed(call, x, kernel, strides, sizes, same)
    return _restored(call, with_bias(call, y, filters))


@layer("DepthwiseConv2D")
def depthwise_conv(call: LayerCall) -> MLOperand:
    """A convolution of each channel with filters of its own."""
    x = _channels_last(call, 2)
    taps, multiplier = call.integers("kernel_size", 2), call.integer("depth_multiplier", 1)
    kernel = call.weight("depthwise_kernel", [*taps, x.shape[-1], multiplier])
    strides, dilations = call.integers("strides", 2, 1), call.integers("dilation_rate", 2, 1)
    y = depthwise(call, x, kernel, strides, dilations, same_or_valid(call))
    return _restored(call, with_bias(call, y, y.shape[-1]))


@layer("SeparableConv2D", "SeparableConv1D")
def separable_conv(call: LayerCall) -> MLOperand:
    """A convolution of each channel, and a product over the channels."""
    spatial = int(call.kind[13])
    x = _channels_last(call, spatial)
    taps, filters = call.integers("kernel_size", spatial), call.integer("filters")
    kernel = call.weight("depthwise_kernel")
    # TensorFlow.js does not write the multiplier of these layers.
    multiplier = call.integer("depth_multiplier", kernel.shape[-1] if kernel.shape else 1)
    kernel = call.weight("depthwise_kernel", [*taps, x.shape[-1], multiplier])
    point = call.weight("pointwise_kernel", [*[1] * spatial, x.shape[-1] * multiplier, filters])
    strides, dilations = call.integers("strides", spatial, 1), call.integers("dilation_rate", spatial, 1)
    y = depthwise(call, x, kernel, strides, dilations, same_or_valid(call))
    y = convolution(call, y, point, [1] * spatial, [1] * spatial, "valid")
    return _restored(call, with_bias(call, y, filters))


def _pairs(call: LayerCall, name: str, count: int, default: int) -> list[tuple[int, int]]:
    """Return elements before and behind each of some dimensions."""
    value: Any = call.config.get(name)
    value = default if value is None else value
    values = entries(value) or [value] * count
    pairs: list[list[Any]] = [entries(v) or [v, v] for v in values]
    if len(pairs) != count or any(len(p) != 2 or not all(isinstance(n, int) and 0 <= n < 1 << 24 for n in p) for p in pairs):
        call.fail(f"{name} is {value!r}")
    return [(before, after) for before, after in pairs]


@layer("ZeroPadding2D")
def zero_padding(call: LayerCall) -> MLOperand:
    """Zeros around pictures."""
    x = _channels_last(call, 2)
    rows, columns = _pairs(call, "padding", 2, 1)
    return _restored(call, call.build.pad(x, [0, rows[0], columns[0], 0], [0, rows[1], columns[1], 0]))


@layer("Cropping2D")
def cropping(call: LayerCall) -> MLOperand:
    """Pictures without their border."""
    x = _channels_last(call, 2)
    rows, columns = _pairs(call, "cropping", 2, 0)
    n, h, w, c = x.shape
    sizes = [n, h - sum(rows), w - sum(columns), c]
    if min(sizes) < 1:
        call.fail(f"cropping {[rows, columns]} leaves nothing of {[h, w]}")
    return _restored(call, call.build.slice(x, [0, rows[0], columns[0], 0], sizes))


@layer("UpSampling2D")
def up_sampling(call: LayerCall) -> MLOperand:
    """Larger pictures."""
    x = _channels_last(call, 2)
    factors = call.integers("size", 2, 2)
    linear = call.choice("interpolation", "nearest", "bilinear") == "bilinear"
    sizes = [size * factor for size, factor in zip(x.shape[1:3], factors, strict=True)]
    return _restored(call, resized(call, x, sizes, linear=linear))


@layer("Resizing")
def resizing(call: LayerCall) -> MLOperand:
    """Pictures of a fixed size."""
    x = call.ranked(3, 4)
    linear = call.choice("interpolation", "bilinear", "nearest") == "bilinear"
    aligned = not call.flag("crop_to_aspect_ratio")
    pictures = call.reshape(x, [1, *x.shape]) if len(x.shape) == 3 else x
    y = resized(call, pictures, [call.integer("height"), call.integer("width")], linear=linear, align_corners=aligned)
    return call.reshape(y, y.shape[1:]) if len(x.shape) == 3 else y


@layer("CenterCrop")
def center_crop(call: LayerCall) -> MLOperand:
    """The center of pictures, which are enlarged if they are too small."""
    x = call.ranked(3, 4)
    pictures = call.reshape(x, [1, *x.shape]) if len(x.shape) == 3 else x
    n, h, w, c = pictures.shape
    height, width = call.integer("height"), call.integer("width")
    top = (h - height) // 2
    left = max((w - width) // 2, 1) if w > width else (w - width) // 2
    if top < 0 or left < 0:
        y = resized(call, pictures, [height, width], linear=True)
    elif left + width > w:
        call.fail(f"a width of {width} beside {left} columns of {w}")
    else:
        y = call.build.slice(pictures, [0, top, left, 0], [n, height, width, c])
    return call.reshape(y, y.shape[1:]) if len(x.shape) == 3 else y
