"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from webnn_wgpu.eager import Tensor, ops

from ._convert import TensorLike, as_floats, with_batch
from ._windows import Pad, Sizes, joined, layout_of, paddings, sizes_of, spatial
from .arrays import pad as padded
from .arrays import reshape, strided_slice, transpose

_LOWEST = -3.4e38


def conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    pad: Pad,
    data_format: str = "NHWC",
    dilations: Sizes = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return convolutions of images.

    Args:
        x: images.
        filter: the filter: height, width, channels of the input, channels of the result.
        strides: the steps of the window.
        pad: "same", "valid", a number, or pairs for all dimensions.
        data_format: "NHWC" or "NCHW".
        dilations: the distances of the elements of the filter.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    images, weights = as_floats(x), as_floats(filter)
    return _conv2d(images, weights, strides, pad, data_format, dilations, 1)


def _conv2d(
    images: Tensor, weights: Tensor, strides: Sizes, pad: Pad, data_format: str, dilations: Sizes, groups: int
) -> Tensor:
    steps, spread = sizes_of(strides), sizes_of(dilations)

    def convolved(given: Tensor) -> Tensor:
        pads = paddings(pad, spatial(given.shape, data_format), weights.shape[:2], steps, spread, data_format)
        return ops.conv2d(
            given,
            weights,
            padding=joined(pads),
            strides=steps,
            dilations=spread,
            groups=groups,
            input_layout=layout_of(data_format),
            filter_layout="hwio",
        )

    return with_batch(images, convolved, "conv2d")


def conv1d(
    x: TensorLike,
    filter: TensorLike,
    stride: int,
    pad: str | int,
    data_format: str = "NWC",
    dilation: int = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return convolutions of sequences.

    Args:
        x: sequences.
        filter: the filter: width, channels of the input, channels of the result.
        stride: the step of the window.
        pad: "same", "valid" or a number.
        data_format: "NWC".
        dilation: the distance of the elements of the filter.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    weights = as_floats(filter)
    padding: Pad = [[0, 0], [0, 0], [pad, pad], [0, 0]] if isinstance(pad, int) else pad

    def convolved(rows: Tensor) -> Tensor:
        images, window = ops.unsqueeze(rows, [1]), ops.unsqueeze(weights, [0])
        return ops.squeeze(_conv2d(images, window, [1, stride], padding, "NHWC", [1, dilation], 1), [1])

    return with_batch(as_floats(x), convolved, "conv1d", rank=3)


def depthwise_conv2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    pad: Pad,
    data_format: str = "NHWC",
    dilations: Sizes = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return convolutions of each channel with filters of its own.

    Args:
        x: images.
        filter: the filters: height, width, channels, filters of each channel.
        strides: the steps of the window.
        pad: "same", "valid", a number, or pairs for all dimensions.
        data_format: "NHWC" or "NCHW".
        dilations: the distances of the elements of the filter.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    images, weights = as_floats(x), as_floats(filter)
    height, width, channels, each = weights.shape
    return _conv2d(
        images, reshape(weights, [height, width, 1, channels * each]), strides, pad, data_format, dilations, channels
    )


def separable_conv2d(
    x: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Sizes,
    pad: Pad,
    dilation: Sizes = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return convolutions of each channel, and sums of their results by pixel.

    Args:
        x: images.
        depthwise_filter: the filters of each channel, as for `depthwise_conv2d`.
        pointwise_filter: the shares of the sums: a filter of height and width 1.
        strides: the steps of the window.
        pad: "same", "valid", a number, or pairs for all dimensions.
        dilation: the distances of the elements of the filter.
        data_format: "NHWC" or "NCHW".
    """
    found = depthwise_conv2d(x, depthwise_filter, strides, pad, data_format, dilation)
    return conv2d(found, pointwise_filter, 1, "valid", data_format)


def conv2d_transpose(
    x: TensorLike,
    filter: TensorLike,
    output_shape: Sequence[int],
    strides: Sizes,
    pad: Pad,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the gradient of a convolution with respect to its images.

    Args:
        x: images.
        filter: the filter: height, width, channels of the result, channels of `x`.
        output_shape: the dimensions of the result.
        strides: the steps of the window.
        pad: "same", "valid", a number, or pairs for all dimensions.
        dim_rounding_mode: has no effect: sizes are rounded down.
    """
    images, weights = as_floats(x), as_floats(filter)
    steps = sizes_of(strides)
    pads = paddings(pad, output_shape[1:3], weights.shape[:2], steps, [1, 1])
    return ops.conv_transpose2d(
        images,
        weights,
        padding=joined(pads),
        strides=steps,
        output_sizes=list(output_shape[1:3]),
        input_layout="nhwc",
        filter_layout="hwoi",
    )


def conv3d(
    x: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    pad: str,
    data_format: str = "NDHWC",
    dilations: Sizes = 1,
) -> Tensor:
    """Return convolutions of volumes, as sums of convolutions of images.

    Args:
        x: volumes.
        filter: the filter: depth, height, width, channels of the input, channels of the result.
        strides: the steps of the window.
        pad: "same" or "valid".
        data_format: "NDHWC" or "NCDHW".
        dilations: the distances of the elements of the filter.
    """
    volumes, weights = as_floats(x), as_floats(filter)
    if data_format == "NCDHW":
        found = conv3d(transpose(volumes, [0, 2, 3, 4, 1]), weights, strides, pad, "NDHWC", dilations)
        return transpose(found, [0, 4, 1, 2, 3])
    steps, spread = sizes_of(strides, 3), sizes_of(dilations, 3)
    pads = paddings(pad, volumes.shape[1:4], weights.shape[:3], steps, spread)
    volumes = padded(volumes, [(0, 0), pads[0], (0, 0), (0, 0), (0, 0)])
    batch, depth, *image = volumes.shape
    window = weights.shape[0]
    count = (depth - (window - 1) * spread[0] - 1) // steps[0] + 1
    total: Tensor | None = None
    for number in range(window):
        first = number * spread[0]
        layers = strided_slice(volumes, [0, first], [batch, first + (count - 1) * steps[0] + 1], [1, steps[0]])
        part = ops.conv2d(
            reshape(layers, [batch * count, *image]),
            weights[number],
            padding=joined(pads[1:]),
            strides=steps[1:],
            dilations=spread[1:],
            input_layout="nhwc",
            filter_layout="hwio",
        )
        total = part if total is None else total + part
    assert total is not None
    return reshape(total, [batch, count, *total.shape[1:]])


def dilation2d(
    x: TensorLike,
    filter: TensorLike,
    strides: Sizes,
    pad: str,
    dilations: Sizes = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the largest sums of pixels and elements of a filter, window by window.

    Args:
        x: images.
        filter: the filter: height, width, channels.
        strides: the steps of the window.
        pad: "same" or "valid".
        dilations: the distances of the elements of the filter.
        data_format: "NHWC".
    """
    images, weights = as_floats(x), as_floats(filter)
    steps, spread = sizes_of(strides), sizes_of(dilations)
    pads = paddings(pad, images.shape[1:3], weights.shape[:2], steps, spread, data_format)
    whole = padded(images, [(0, 0), *pads, (0, 0)], _LOWEST)
    found: Tensor | None = None
    for (row, column), part in window_parts(whole, weights.shape[:2], steps, spread):
        each = part + weights[row, column]
        found = each if found is None else ops.max(found, each)
    assert found is not None
    return found


def window_parts(
    images: Tensor, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[tuple[int, int], Tensor]]:
    """Return for each place of a window the pixels that lie there, one for each step of the window."""
    batch, height, width, channels = images.shape
    reach = [(length - 1) * dilation + 1 for length, dilation in zip(window, dilations, strict=True)]
    rows, columns = ((size - length) // step + 1 for size, length, step in zip((height, width), reach, strides, strict=True))
    found: list[tuple[tuple[int, int], Tensor]] = []
    for row in range(window[0]):
        for column in range(window[1]):
            top, left = row * dilations[0], column * dilations[1]
            ends = [batch, top + (rows - 1) * strides[0] + 1, left + (columns - 1) * strides[1] + 1, channels]
            part = strided_slice(images, [0, top, left, 0], ends, [1, *strides, 1])
            found.append(((row, column), part))
    return found
