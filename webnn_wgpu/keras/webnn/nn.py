"""`keras.ops`'s functions of neural networks."""

from __future__ import annotations

import math as host_math
from typing import Any

import numpy as np
from keras.src import backend
from keras.src.backend.common.backend_utils import (
    check_conv_transpose_input_channels,
    compute_conv_transpose_padding_args_for_jax,
)
from keras.src.backend.common.dtypes import result_type

from . import core, host
from .dtypes import canonical, is_float
from .elementwise import chosen, equal, floating, log1p, logical_and, number, operands, wide
from .movement import (
    axis_of,
    expand_dims,
    moveaxis,
    pad,
    repeat,
    reshape,
    split,
    squeeze,
    swapaxes,
    take,
    transpose,
)
from .products import matmul
from .reductions import cumsum, mean
from .reductions import max as largest
from .reductions import sum as total
from .tensor import Tensor, call, cast, of_array

# Activations ----------------------------------------------------------------------------------------------------------


def _single(name: str, method: str, **options: Any) -> Any:
    def function(x: Any) -> Tensor:
        return call(method, floating(x), **options)

    function.__name__, function.__doc__ = name, f"The activation `{name}`."
    return function


def relu(x: Any) -> Tensor:
    """The activation `relu`."""
    found = core.convert_to_tensor(x)
    return call("max", found, number(0, found)) if not is_float(found.dtype) else call("relu", found)


sigmoid = _single("sigmoid", "sigmoid")
tanh = _single("tanh", "tanh")
softsign = _single("softsign", "softsign")


def _clamped(x: Tensor, low: float, high: float) -> Tensor:
    return call("clamp", x, min_value=low, max_value=high)


def relu6(x: Any) -> Tensor:
    """The activation `relu6`."""
    return _clamped(core.convert_to_tensor(x), 0, 6)


def sparse_sigmoid(x: Any) -> Tensor:
    """The activation `sparse_sigmoid`."""
    return _clamped((floating(x) + 1.0) * 0.5, 0, 1)


def tanh_shrink(x: Any) -> Tensor:
    """The activation `tanh_shrink`."""
    found = floating(x)
    return found - call("tanh", found)


def softplus(x: Any) -> Tensor:
    """The activation `softplus`."""
    found = floating(x)
    within = wide(found)
    return cast(call("relu", within) + log1p(call("exp", call("neg", call("abs", within)))), found.dtype)


def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """The activation `soft_shrink`."""
    found = floating(x)
    zero = number(0, found)
    return chosen(found > threshold, found - threshold, chosen(found < -threshold, found + threshold, zero))


def sparse_plus(x: Any) -> Tensor:
    """The activation `sparse_plus`."""
    found = floating(x)
    middle = (found + 1.0) * (found + 1.0) * 0.25
    return chosen(found <= -1.0, number(0, found), chosen(found < 1.0, middle, found))


def silu(x: Any) -> Tensor:
    """The activation `silu`."""
    found = floating(x)
    return found * call("sigmoid", found)


def squareplus(x: Any, b: float = 4) -> Tensor:
    """The activation `squareplus`."""
    found = floating(x)
    return (found + call("sqrt", found * found + b)) * 0.5


def log_sigmoid(x: Any) -> Tensor:
    """The activation `log_sigmoid`."""
    return call("neg", softplus(call("neg", floating(x))))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> Tensor:
    """The activation `leaky_relu`."""
    return call("leaky_relu", floating(x), alpha=float(negative_slope))


def hard_sigmoid(x: Any) -> Tensor:
    """The activation `hard_sigmoid`."""
    return call("hard_sigmoid", floating(x), alpha=1 / 6, beta=0.5)


def hard_silu(x: Any) -> Tensor:
    """The activation `hard_silu`."""
    found = floating(x)
    return found * hard_sigmoid(found)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """The activation `elu`."""
    return call("elu", floating(x), alpha=float(alpha))


def selu(x: Any) -> Tensor:
    """The activation `selu`."""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """The activation `gelu`, by tanh or exact."""
    found = floating(x)
    if not approximate:
        return call("gelu", found)
    within = wide(found)
    angle = (within + within * within * within * 0.044715) * host_math.sqrt(2 / host_math.pi)
    return cast(within * 0.5 * (call("tanh", angle) + 1.0), found.dtype)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """The activation `celu`."""
    found = floating(x)
    return call("relu", found) + call("elu", call("min", found, number(0, found)) / alpha, alpha=1.0) * alpha


def glu(x: Any, axis: int = -1) -> Tensor:
    """The activation `glu`: one half of a dimension, gated by the other."""
    found = floating(x)
    if found.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={found.shape} with axis={axis}")
    a, b = split(found, 2, axis)
    return a * call("sigmoid", b)


def hard_tanh(x: Any) -> Tensor:
    """The activation `hard_tanh`."""
    return _clamped(floating(x), -1, 1)


def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """The activation `hard_shrink`."""
    found = floating(x)
    return chosen(call("abs", found) > threshold, found, number(0, found))


def threshold(x: Any, threshold: float, default_value: float) -> Tensor:
    """The elements above a number, and another value in place of the others."""
    found = floating(x)
    return chosen(found > threshold, found, number(default_value, found))


def _softmax(name: str, method: str) -> Any:
    def function(x: Any, axis: Any = -1) -> Tensor:
        found = floating(x)
        if axis is None:
            return reshape(function(reshape(found, (-1,)), 0), found.shape)
        if isinstance(axis, (list, tuple)):
            axes = [axis_of(each, found.ndim) for each in axis]
            order = [*(n for n in range(found.ndim) if n not in axes), *axes]
            moved_x = transpose(found, order)
            flat = reshape(moved_x, [*moved_x.shape[: -len(axes)], -1])
            return transpose(reshape(function(flat, -1), moved_x.shape), [int(n) for n in np.argsort(order)])
        if not found.ndim:
            return reshape(function(reshape(found, (1,)), 0), ())
        return call(method, found, axis=axis_of(axis, found.ndim))

    function.__name__, function.__doc__ = name, f"`{name}` along a dimension."
    return function


softmax = _softmax("softmax", "softmax")
log_softmax = _softmax("log_softmax", "ext.log_softmax")


def sparsemax(x: Any, axis: int = -1) -> Tensor:
    """The nearest point of the simplex."""
    found = floating(x)
    axis = axis_of(axis, found.ndim)
    from .movement import ordered

    size = found.shape[axis]
    down = ordered(found, size, axis, largest=True)[0]
    sums = cumsum(down, axis)
    places = of_array(np.arange(1, size + 1).reshape([-1 if n == axis else 1 for n in range(found.ndim)]), found.dtype)
    support = places * down + 1.0 > sums
    count = total(cast(support, "int32"), axis, keepdims=True)
    last = (
        largest(chosen(support, sums, number(-np.inf, sums)), axis, keepdims=True)
        if size == 1
        else take_last(sums, count, axis)
    )
    return call("relu", found - (last - 1.0) / cast(count, found.dtype))


def take_last(sums: Tensor, count: Tensor, axis: int) -> Tensor:
    """Return the sum of the elements that count."""
    from .movement import take_along_axis

    return take_along_axis(sums, count - 1, axis)


# Convolutions and pooling -----------------------------------------------------------------------------------------------


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
        if size + builtin_sum(ends) < (window - 1) * gap + 1:
            raise ValueError(
                "The convolution operation resulted in an empty output. This can happen if the input is too small for the "
                "given kernel size, strides, dilation rate, and padding mode. "
                "Please check the input shape and convolution parameters."
            )
    return _convolution(x, w, steps, pads, gaps, data_format, channels // w.shape[-2])


def builtin_sum(ends: tuple[int, int]) -> int:
    """Return the sum of two paddings."""
    return ends[0] + ends[1]


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


# Classes and losses -----------------------------------------------------------------------------------------------------


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """A one at the place of each class, in a further dimension."""
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with webnn backend")
    found = core.convert_to_tensor(x, "int32")
    rank = found.ndim + 1
    place = axis_of(axis, rank)
    classes = of_array(np.arange(num_classes).reshape([-1 if n == place else 1 for n in range(rank)]), "int32")
    return core.cast(equal(expand_dims(found, place), classes), dtype or backend.floatx())


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """Ones at the places of all classes."""
    found = core.convert_to_tensor(x)
    return largest(one_hot(found, num_classes, axis, dtype, sparse), 1 if found.ndim > 1 else 0)


def _log_shares(output: Tensor, axis: int) -> Tensor:
    """Return the logarithm of probabilities that may not add up to one."""
    shares = output / total(output, axis, keepdims=True)
    small = backend.epsilon()
    return call("log", call("clamp", shares, min_value=small, max_value=1.0 - small))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of distributions."""
    wanted, found = core.convert_to_tensor(target), floating(output)
    if wanted.shape != found.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    if not wanted.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    logarithm = log_softmax(found, axis) if from_logits else _log_shares(found, axis)
    return -total(cast(wanted, found.dtype) * logarithm, axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of classes."""
    wanted, found = core.convert_to_tensor(target, "int32"), floating(output)
    if wanted.ndim == found.ndim and wanted.shape[-1] == 1:
        wanted = squeeze(wanted, -1)
    if not found.ndim:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={found.shape}")
    if wanted.shape != found.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={wanted.shape}, output.shape={found.shape}"
        )
    logarithm = log_softmax(found, axis) if from_logits else _log_shares(found, axis)
    return -total(one_hot(wanted, found.shape[axis], axis, found.dtype) * logarithm, axis)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of truth values."""
    wanted, found = core.convert_to_tensor(target), floating(output)
    if wanted.shape != found.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    wanted = cast(wanted, found.dtype)
    if from_logits:
        return -(wanted * log_sigmoid(found)) - (1.0 - wanted) * log_sigmoid(-found)
    small = backend.epsilon()
    found = call("clamp", found, min_value=small, max_value=1.0 - small)
    return -(wanted * call("log", found) + (1.0 - wanted) * call("log", 1.0 - found))


# Statistics ---------------------------------------------------------------------------------------------------------------


def moments(x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """The mean and the variance, computed as float32."""
    if synchronized:
        raise NotImplementedError("Argument synchronized=True is not supported with webnn.")
    found = core.convert_to_tensor(x)
    within = wide(found)
    middle = mean(within, axes, keepdims=True)
    distance = within - middle
    results = [middle, mean(distance * distance, axes, keepdims=True)]
    if not keepdims:
        results = [squeeze(each, axes) for each in results]
    if found.dtype in ("float16", "bfloat16"):
        limit = float(np.finfo(np.float16).max)
        results = [call("clamp", each, min_value=-limit, max_value=limit) for each in results]
    return cast(results[0], found.dtype), cast(results[1], found.dtype)


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 1e-3
) -> Tensor:
    """A normalization by given statistics."""
    found = core.convert_to_tensor(x)
    axis = axis_of(axis, found.ndim)
    shape = [found.shape[axis] if n == axis else 1 for n in range(found.ndim)]
    dtype = canonical(result_type(found.dtype, *[core.convert_to_tensor(each).dtype for each in (mean, variance)]))

    def along(each: Any) -> Tensor:
        return reshape(cast(core.convert_to_tensor(each), "float32"), shape)

    factor = call("reciprocal", call("sqrt", along(variance) + epsilon))
    factor = factor if scale is None else factor * along(scale)
    result = (cast(found, "float32") - along(mean)) * factor
    return cast(result if offset is None else result + along(offset), dtype)


def psnr(x1: Any, x2: Any, max_val: float) -> Tensor:
    """The ratio of signal and noise."""
    a, b = core.convert_to_tensor(x1), core.convert_to_tensor(x2)
    if a.shape != b.shape:
        raise ValueError(f"Input shapes {a.shape} and {b.shape} must match for PSNR calculation. ")
    distance = a - b
    top = wide(floating(max_val))
    error = mean(distance * distance)
    return (call("log", top) * 2.0 - call("log", error)) * (10 / host_math.log(10))


# Attention ------------------------------------------------------------------------------------------------------------------


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """Attention with heads in the third dimension. The planner fuses its operators, with or without `flash_attention`."""
    shapes = [core.convert_to_tensor(each).shape for each in (query, key, value)]
    if any(len(shape) != 4 for shape in shapes):
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. "
            f"Received: query.shape={shapes[0]}, key.shape={shapes[1]}, value.shape={shapes[2]}."
        )
    q, k, v = operands(query, key, value)
    heads = q.shape[2]
    k, v = (each if each.shape[2] == heads else repeat(each, heads // each.shape[2], 2) for each in (k, v))
    factor = 1.0 / host_math.sqrt(q.shape[-1]) if scale is None else scale
    q, k, v = (swapaxes(wide(each), 1, 2) for each in (q, k, v))
    scores = matmul(q, swapaxes(k, 2, 3)) * factor
    if bias is not None:
        scores = scores + core.convert_to_tensor(bias, "float32")
    if attn_logits_soft_cap is not None:
        scores = call("tanh", scores / attn_logits_soft_cap) * attn_logits_soft_cap
    seen = None if mask is None else core.convert_to_tensor(mask, "bool")
    if is_causal:
        below = of_array(np.tri(*scores.shape[-2:], dtype=bool), "bool")
        seen = below if seen is None else logical_and(seen, below)
    if seen is not None:
        scores = chosen(seen, scores, of_array(-0.7 * float(np.finfo(np.float32).max), "float32"))
    found = matmul(softmax(scores, -1), v)
    return cast(swapaxes(found, 1, 2), operands(query, key, value)[0].dtype)


# Rearrangements ---------------------------------------------------------------------------------------------------------


def depth_to_space(x: Any, block_size: int, data_format: str | None = "channels_last") -> Tensor:
    """Channels as blocks of pixels."""
    found = core.convert_to_tensor(x)
    first = backend.standardize_data_format(data_format) == "channels_first"
    found = moveaxis(found, 1, -1) if first else found
    batch, rows, columns, channels = found.shape
    found = reshape(found, (batch, rows, columns, block_size, block_size, channels // block_size**2))
    found = reshape(
        transpose(found, (0, 1, 3, 2, 4, 5)), (batch, rows * block_size, columns * block_size, channels // block_size**2)
    )
    return moveaxis(found, -1, 1) if first else found


def space_to_depth(x: Any, block_size: int, data_format: str | None = "channels_last") -> Tensor:
    """Blocks of pixels as channels."""
    found = core.convert_to_tensor(x)
    first = backend.standardize_data_format(data_format) == "channels_first"
    found = moveaxis(found, 1, -1) if first else found
    batch, rows, columns, channels = found.shape
    found = reshape(found, (batch, rows // block_size, block_size, columns // block_size, block_size, channels))
    found = reshape(
        transpose(found, (0, 1, 3, 2, 4, 5)), (batch, rows // block_size, columns // block_size, channels * block_size**2)
    )
    return moveaxis(found, -1, 1) if first else found


globals().update(host.functions("nn"))
