"""`keras.ops`'s convolutions and pools."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import backend
from keras.src.backend.common.backend_utils import (
    check_conv_transpose_input_channels,
    compute_conv_transpose_padding_args_for_jax,
)

from . import core
from .elementwise import floating
from .movement import expand_dims, moveaxis, pad, reshape, squeeze, take
from .products import matmul
from .reductions import max as largest
from .tensor import Tensor, call, cast, of_array


def _each(option: Any, rank: int) -> tuple[int, ...]:
    return (int(option),) * rank if isinstance(option, (int, np.integer)) else tuple(int(each) for each in option)


def _same(size: int, window: int, stride: int, dilation: int) -> tuple[int, int]:
    """Return the padding before and after that gives one result for each stride."""
    reach = (window - 1) * dilation + 1
    missing = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return missing // 2, missing - missing // 2


def _paddings(padding: str, sizes: tuple[int, ...], windows: Any, strides: Any, dilations: Any) -> list[tuple[int, int]]:
    if padding.lower() not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    if padding.lower() == "valid":
        return [(0, 0)] * len(sizes)
    return [_same(*each) for each in zip(sizes, windows, strides, dilations, strict=True)]


def _as_2d(x: Tensor, data_format: str) -> Tensor:
    """Return a batch of lines as images of one row."""
    return expand_dims(x, 1 if data_format == "channels_last" else 2)


def _layout(data_format: str) -> str:
    return "nhwc" if data_format == "channels_last" else "nchw"


def conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A convolution of one, two or three dimensions."""
    data_format = backend.standardize_data_format(data_format)
    w = core.convert_to_tensor(kernel)
    x = core.convert_to_tensor(inputs, w.dtype)
    rank = x.ndim - 2
    channels = x.shape[-1 if data_format == "channels_last" else 1]
    if channels % w.shape[-2]:
        raise ValueError(
            "The number of input channels must be evenly divisible by kernel's in_channels. "
            f"Received input channels {channels} and kernel in_channels {w.shape[-2]}. "
        )
    steps, gaps = _each(strides, rank), _each(dilation_rate, rank)
    sizes = x.shape[1:-1] if data_format == "channels_last" else x.shape[2:]
    pads = _paddings(padding, sizes, w.shape[:-2], steps, gaps)
    for size, window, gap, ends in zip(sizes, w.shape[:-2], gaps, pads, strict=True):
        if size + sum(ends) < (window - 1) * gap + 1:
            raise ValueError(
                "The convolution operation resulted in an empty output. This can happen if the input is too small for the "
                "given kernel size, strides, dilation rate, and padding mode. "
                "Please check the input shape and convolution parameters."
            )
    return _convolution(x, w, steps, pads, gaps, data_format, channels // w.shape[-2])


def _convolution(x: Tensor, w: Tensor, steps: Any, pads: Any, gaps: Any, data_format: str, groups: int) -> Tensor:
    rank = x.ndim - 2
    if rank == 1:
        found = _convolution(
            _as_2d(x, data_format), expand_dims(w, 0), (1, *steps), [(0, 0), *pads], (1, *gaps), data_format, groups
        )
        return squeeze(found, 1 if data_format == "channels_last" else 2)
    if rank == 3:
        return _volume(x, w, steps, pads, gaps, data_format, groups)
    options = {
        "strides": list(steps),
        "padding": [end for ends in pads for end in ends],
        "dilations": list(gaps),
        "groups": groups,
        "input_layout": _layout(data_format),
        "filter_layout": "hwio",
    }
    return _wide_call("conv2d", x, w, **options)


def _wide_call(method: str, *tensors: Tensor, **options: Any) -> Tensor:
    """Record an operator of floats. Keras's narrow types that WebNN lacks are computed as float32."""
    dtype = tensors[0].dtype
    if dtype in ("float32", "float16"):
        return call(method, *tensors, **options)
    return cast(call(method, *(cast(x, "float32") for x in tensors), **options), dtype)


def _volume(x: Tensor, w: Tensor, steps: Any, pads: Any, gaps: Any, data_format: str, groups: int) -> Tensor:
    """Convolve volumes: the sum of convolutions of their planes, one for each plane of the filter."""
    first = data_format == "channels_first"
    x = moveaxis(x, 1, -1) if first else x
    x = pad(x, [(0, 0), pads[0], (0, 0), (0, 0), (0, 0)])
    depth = (x.shape[1] - (w.shape[0] - 1) * gaps[0] - 1) // steps[0] + 1
    found: Tensor | None = None
    for plane in range(w.shape[0]):
        start = plane * gaps[0]
        part = x[:, start : start + (depth - 1) * steps[0] + 1 : steps[0]]
        flat = reshape(part, (-1, *part.shape[2:]))
        term = _convolution(flat, w[plane], steps[1:], pads[1:], gaps[1:], "channels_last", groups)
        found = term if found is None else found + term
    assert found is not None
    volume = reshape(found, (x.shape[0], depth, *found.shape[1:]))
    return moveaxis(volume, -1, 1) if first else volume


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A convolution of each channel by itself."""
    w = core.convert_to_tensor(kernel)
    shape = (*w.shape[:-2], 1, w.shape[-2] * w.shape[-1])
    return conv(inputs, reshape(w, shape), strides, padding, data_format, dilation_rate)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A convolution of each channel, and one of all channels at each place."""
    found = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(found, pointwise_kernel, 1, "valid", data_format, 1)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Any = 1,
    padding: str = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
) -> Tensor:
    """A transposed convolution of one, two or three dimensions."""
    data_format = backend.standardize_data_format(data_format)
    w = core.convert_to_tensor(kernel)
    x = core.convert_to_tensor(inputs, w.dtype)
    check_conv_transpose_input_channels(x, w, data_format)
    rank = x.ndim - 2
    pads = compute_conv_transpose_padding_args_for_jax(
        input_shape=x.shape,
        kernel_shape=w.shape,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation_rate=dilation_rate,
    )
    steps, gaps = _each(strides, rank), _each(dilation_rate, rank)
    # The paddings are those of the spread input; WebNN's are what is cut off its full result.
    cuts = [tuple((window - 1) * gap - end for end in ends) for window, gap, ends in zip(w.shape[:-2], gaps, pads, strict=True)]
    first = data_format == "channels_first"
    x = moveaxis(x, 1, -1) if first else x
    found = _spread(x, w, steps, gaps)
    for axis, (before, after) in enumerate(cuts, 1):
        widths = [(0, 0)] * found.ndim
        widths[axis] = (max(-before, 0), max(-after, 0))
        found = pad(found, widths)
        found = found[(slice(None),) * axis + (slice(max(before, 0), found.shape[axis] - max(after, 0)),)]
    return moveaxis(found, -1, 1) if first else found


def _spread(x: Tensor, w: Tensor, steps: Any, gaps: Any) -> Tensor:
    """Return the full transposed convolution, with channels last."""
    rank = x.ndim - 2
    if rank == 1:
        return squeeze(_spread(expand_dims(x, 1), expand_dims(w, 0), (1, *steps), (1, *gaps)), 1)
    if rank == 2:
        layouts = {"input_layout": "nhwc", "filter_layout": "hwoi"}
        return _wide_call("conv_transpose2d", x, w, strides=list(steps), dilations=list(gaps), **layouts)
    depth, length = x.shape[1], (x.shape[1] - 1) * steps[0] + (w.shape[0] - 1) * gaps[0] + 1
    flat = reshape(x, (-1, *x.shape[2:]))
    found: Tensor | None = None
    for plane in range(w.shape[0]):
        term = _spread(flat, w[plane], steps[1:], gaps[1:])
        rest = term.shape[1:]
        term = reshape(term, (x.shape[0], depth, 1, *rest))
        term = pad(term, [(0, 0), (0, 0), (0, steps[0] - 1), *[(0, 0)] * 3])
        term = reshape(term, (x.shape[0], depth * steps[0], *rest))[:, : (depth - 1) * steps[0] + 1]
        start = plane * gaps[0]
        term = pad(term, [(0, 0), (start, length - start - term.shape[1]), *[(0, 0)] * 3])
        found = term if found is None else found + term
    assert found is not None
    return found


def _pooled(method: str, x: Tensor, windows: Any, steps: Any, padding: str, data_format: str) -> Tensor:
    rank = x.ndim - 2
    if rank == 1:
        found = _pooled(method, _as_2d(x, data_format), (1, *windows), (1, *steps), padding, data_format)
        return squeeze(found, 1 if data_format == "channels_last" else 2)
    if rank == 3:
        first = data_format == "channels_first"
        x = moveaxis(x, 1, -1) if first else x
        flat = _pooled(method, reshape(x, (-1, *x.shape[2:])), windows[1:], steps[1:], padding, "channels_last")
        rows, columns, channels = flat.shape[1:]
        flat = reshape(flat, (x.shape[0], x.shape[1], rows * columns, channels))
        flat = _pooled(method, flat, (windows[0], 1), (steps[0], 1), padding, "channels_last")
        found = reshape(flat, (x.shape[0], flat.shape[1], rows, columns, channels))
        return moveaxis(found, -1, 1) if first else found
    sizes = x.shape[1:-1] if data_format == "channels_last" else x.shape[2:]
    pads = _paddings(padding, sizes, windows, steps, (1,) * rank)
    options = {
        "window_dimensions": list(windows),
        "strides": list(steps),
        "padding": [end for ends in pads for end in ends],
        "layout": _layout(data_format),
    }
    return _wide_call(method, x, **options)


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Tensor:
    """The largest element of each window."""
    x = core.convert_to_tensor(inputs)
    windows = _each(pool_size, x.ndim - 2)
    steps = windows if strides is None else _each(strides, x.ndim - 2)
    return _pooled("max_pool2d", x, windows, steps, padding, backend.standardize_data_format(data_format))


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: str | None = None
) -> Tensor:
    """The mean of each window."""
    x = floating(inputs)
    windows = _each(pool_size, x.ndim - 2)
    steps = windows if strides is None else _each(strides, x.ndim - 2)
    return _pooled("average_pool2d", x, windows, steps, padding, backend.standardize_data_format(data_format))


def _adaptive(inputs: Any, output_size: Any, data_format: str | None, pool: Any) -> Tensor:
    data_format = backend.standardize_data_format(data_format)
    x = core.convert_to_tensor(inputs)
    wanted = _each(output_size, x.ndim - 2)
    for axis, size in enumerate(wanted, 1 if data_format == "channels_last" else 2):
        given = x.shape[axis]
        windows = [(n * given // size, -(-(n + 1) * given // size)) for n in range(size)]
        x = moveaxis(pool(moveaxis(x, axis, -1), windows), -1, axis)
    return x


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
    """Means of windows whose number is given: a product with a matrix of shares for each dimension."""

    def pool(x: Tensor, windows: list[tuple[int, int]]) -> Tensor:
        shares = np.zeros((x.shape[-1], len(windows)), np.float32)
        for column, (start, stop) in enumerate(windows):
            shares[start:stop, column] = 1 / (stop - start)
        return matmul(x, of_array(shares, x.dtype))

    return _adaptive(floating(inputs), output_size, data_format, pool)


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
    """Largest elements of windows whose number is given."""

    def pool(x: Tensor, windows: list[tuple[int, int]]) -> Tensor:
        longest = max(stop - start for start, stop in windows)
        places = [[min(start + n, stop - 1) for n in range(longest)] for start, stop in windows]
        return largest(take(x, np.int32(places), -1), -1)

    return _adaptive(inputs, output_size, data_format, pool)
