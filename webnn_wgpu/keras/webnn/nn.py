"""`keras.ops`'s functions of neural networks: statistics, attention and rearrangements, and those of further modules."""

from __future__ import annotations

import math as host_math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import backend
from keras.src.backend.common.dtypes import result_type

from . import core, host
from .activations import *
from .activations import softmax
from .convolutions import *
from .dtypes import canonical
from .elementwise import chosen, floating, logical_and, operands, wide
from .losses import *
from .movement import axis_of, moveaxis, repeat, reshape, squeeze, swapaxes, transpose
from .products import matmul
from .reductions import mean
from .tensor import Tensor, call, cast, of_array

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

    def exchanged(found: Tensor) -> Tensor:
        batch, rows, columns, channels = found.shape
        rest = channels // block_size**2
        blocks = reshape(found, (batch, rows, columns, block_size, block_size, rest))
        return reshape(transpose(blocks, (0, 1, 3, 2, 4, 5)), (batch, rows * block_size, columns * block_size, rest))

    return _with_channels_last(x, data_format, exchanged)


def space_to_depth(x: Any, block_size: int, data_format: str | None = "channels_last") -> Tensor:
    """Blocks of pixels as channels."""

    def exchanged(found: Tensor) -> Tensor:
        batch, rows, columns, channels = found.shape
        height, width = rows // block_size, columns // block_size
        blocks = reshape(found, (batch, height, block_size, width, block_size, channels))
        return reshape(transpose(blocks, (0, 1, 3, 2, 4, 5)), (batch, height, width, channels * block_size**2))

    return _with_channels_last(x, data_format, exchanged)


def _with_channels_last(x: Any, data_format: str | None, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the result of a function of images with their channels last, in the format of the images."""
    found = core.convert_to_tensor(x)
    if backend.standardize_data_format(data_format) == "channels_first":
        return moveaxis(function(moveaxis(found, 1, -1)), -1, 1)
    return function(found)


globals().update(host.functions("nn"))
