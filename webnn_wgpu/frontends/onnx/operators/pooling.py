"""Poolings over windows of any number of dimensions and over whole images, and the inverse of a maximum pooling.

WebNN's poolings have two dimensions. Maxima, means over the elements within the input, and roots of sums of powers can be
computed over two dimensions first, and then over the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import IMAGES, Result, lowers
from ._windows import WindowAxis, extended, strides_of, tap, windows_of

Pool = Callable[..., MLOperand]

NOWHERE = 2**31 - 1
"""The index of an element that is not the greatest."""


def kernel_shape(call: NodeCall) -> list[int]:
    """Return the taps of a pooling's windows along each spatial dimension."""
    return call.integers("kernel_shape") or call.fail("kernel_shape is missing")


def pooling_windows(call: NodeCall, sizes: Sequence[int]) -> tuple[list[WindowAxis], list[int]]:
    """Return the windows of a pooling, padded behind for the last window, and their number along each dimension."""
    windows = windows_of(call, sizes, kernel_shape(call))
    counts: list[int] = []
    for i, (size, window) in enumerate(zip(sizes, windows, strict=True)):
        count = window.count(size)
        if call.attribute("ceil_mode", 0) and call.attribute("auto_pad", "NOTSET") == "NOTSET":
            count = -(-(size + window.begin + window.end - window.span) // window.stride) + 1
            # A window that starts behind the input is left out.
            count -= (count - 1) * window.stride >= size + window.begin
        if count < 1:
            call.fail(f"a window of {window.span} does not fit into {size} elements and their padding")
        windows[i] = replace(window, end=max(0, (count - 1) * window.stride + window.span - size - window.begin))
        counts.append(count)
    return windows, counts


def pooled(call: NodeCall, pool: Pool, x: MLOperand, windows: Sequence[WindowAxis]) -> MLOperand:
    """Return [N, C, sizes...] pooled over all spatial dimensions: the last two together, the others one by one."""

    def over(shape: Sequence[int], high: WindowAxis, wide: WindowAxis) -> list[int]:
        nonlocal x
        x = pool(
            call.reshape(x, shape),
            window_dimensions=[high.taps, wide.taps],
            padding=[high.begin, high.end, wide.begin, wide.end],
            strides=[high.stride, wide.stride],
            dilations=[high.dilation, wide.dilation],
        )
        return [int(d) for d in x.shape[2:]]

    n, c, *sizes = (int(d) for d in x.shape)
    whole = WindowAxis(taps=1, stride=1, dilation=1, begin=0, end=0)
    if len(sizes) == 1:
        sizes = over([n, c, 1, *sizes], whole, windows[0])[1:]
    else:
        ahead = sizes[:-2]
        sizes = [*ahead, *over([n, c * math.prod(ahead), *sizes[-2:]], *windows[-2:])]
    for i in reversed(range(len(sizes) - 2)):
        shape = [1, n * c * math.prod(sizes[:i]), sizes[i], math.prod(sizes[i + 1 :])]
        sizes[i] = over(shape, windows[i], whole)[0]
    return call.reshape(x, [n, c, *sizes])


def in_float32(call: NodeCall, x: MLOperand) -> MLOperand:
    """Return floats as float32, so that a computation in several steps is rounded once."""
    return call.cast(x, "float32")


@lowers("MaxPool", moves=True, folds=False, ranks={0: IMAGES})
def max_pool(call: NodeCall) -> Result:
    """Greatest element of each window, and its index."""
    x = call.operand(0)
    sizes = [int(d) for d in x.shape[2:]]
    windows, counts = pooling_windows(call, sizes)
    y = pooled(call, call.build.max_pool2d, x, windows)
    return [y, places(call, x, y, windows, counts)] if call.wants(1) else y


def places(call: NodeCall, x: MLOperand, y: MLOperand, windows: Sequence[WindowAxis], counts: Sequence[int]) -> MLOperand:
    """Return the indices of the greatest elements in the whole tensor: the first ones in row-major order."""
    n, c, *sizes = (int(d) for d in x.shape)
    padded = x
    for i, window in enumerate(windows):
        padded = extended(call, padded, 2 + i, window.begin, window.end)
    nowhere = call.constant(NOWHERE, "int32")
    found: MLOperand | None = None
    for taps in np.ndindex(*(v.taps for v in windows)):
        met = padded
        flat, inside = np.zeros([1] * len(sizes), np.int64), np.ones([1] * len(sizes), bool)
        for i, (window, count) in enumerate(zip(windows, counts, strict=True)):
            met = tap(call, met, 2 + i, window, taps[i], count)
            at = np.arange(count) * window.stride + taps[i] * window.dilation - window.begin
            at = at.reshape([-1 if j == i else 1 for j in range(len(sizes))])
            flat, inside = flat * sizes[i] + at, inside & (at >= 0) & (at < sizes[i])
        own = call.constant(np.where(inside, flat, NOWHERE)[np.newaxis, np.newaxis], "int32")
        greatest = call.build.equal(met, y)
        if met.data_type in ("float32", "float16"):
            greatest = call.build.logical_or(greatest, call.build.is_nan(met))
        here = call.build.where(greatest, own, nowhere)
        found = here if found is None else call.build.min(found, here)
    assert found is not None
    if call.attribute("storage_order", 0):
        columns = np.arange(math.prod(sizes)).reshape(sizes[::-1]).T
        found = call.build.gather(call.constant(columns.reshape(-1), "int32"), found)
    base = np.arange(n * c).reshape(n, c, *[1] * len(sizes)) * math.prod(sizes)
    return call.build.add(found, call.constant(base, "int32"))


@lowers("AveragePool", folds=False, ranks={0: IMAGES})
def average_pool(call: NodeCall) -> Result:
    """Mean of each window, over the elements within the input, or with its padding."""
    return averaged(call, call.operand(0))


def averaged(call: NodeCall, x: MLOperand) -> MLOperand:
    """Return the means of the windows of [N, C, sizes...] that a node's attributes define."""
    sizes = [int(d) for d in x.shape[2:]]
    given = windows_of(call, sizes, kernel_shape(call))
    windows, _ = pooling_windows(call, sizes)
    x = in_float32(call, x) if len(sizes) > 2 else x
    if call.attribute("count_include_pad", 0):
        # Elements of the padding count, but not elements beyond it.
        for i, (own, window) in enumerate(zip(given, windows, strict=True)):
            behind = min(own.end, window.end)
            x = extended(call, x, 2 + i, own.begin, behind)
            windows[i] = replace(window, begin=0, end=window.end - behind)
    return pooled(call, call.build.average_pool2d, x, windows)


def power(call: NodeCall) -> float:
    """Return the exponent of a norm."""
    p = call.attribute("p", 2.0)
    return p if p > 0 else call.fail(f"p {p} is not positive")


@lowers("LpPool", ranks={0: IMAGES})
def lp_pool(call: NodeCall) -> Result:
    """Root of the sum of powers of each window."""
    x, p = in_float32(call, call.operand(0)), power(call)
    windows, _ = pooling_windows(call, [int(d) for d in x.shape[2:]])
    if p == 2:
        return pooled(call, call.build.l2_pool2d, x, windows)
    # The root of the sum of squares of |x|^(p / 2), to the power of 2 / p.
    halves = call.build.pow(call.build.abs(x), call.constant(p / 2, "float32"))
    return call.build.pow(pooled(call, call.build.l2_pool2d, halves, windows), call.constant(2 / p, "float32"))


def image_axes(call: NodeCall) -> dict[str, Any]:
    """Return the options of a reduction over a whole image."""
    return {"axes": list(range(2, call.tensor(0).rank)), "keep_dimensions": True}


@lowers("GlobalAveragePool")
def global_average_pool(call: NodeCall) -> Result:
    """Mean of each image's channels."""
    return call.build.reduce_mean(call.operand(0), **image_axes(call))


@lowers("GlobalMaxPool", moves=True)
def global_max_pool(call: NodeCall) -> Result:
    """Greatest element of each image's channels."""
    return call.build.reduce_max(call.operand(0), **image_axes(call))


@lowers("GlobalLpPool")
def global_lp_pool(call: NodeCall) -> Result:
    """Root of the sum of powers of each image's channels."""
    x, p = in_float32(call, call.operand(0)), power(call)
    if p in (1, 2):
        reduce = call.build.reduce_l1 if p == 1 else call.build.reduce_l2
        return reduce(x, **image_axes(call))
    powers = call.build.pow(call.build.abs(x), call.constant(p, "float32"))
    return call.build.pow(call.build.reduce_sum(powers, **image_axes(call)), call.constant(1 / p, "float32"))


@lowers("MaxUnpool", moves=True, ranks={0: IMAGES})
def max_unpool(call: NodeCall) -> Result:
    """Elements at the indices that a pooling returned, 0 elsewhere."""
    x = call.tensor(0)
    kernel = kernel_shape(call)
    count = len(kernel)
    strides, _, pads = strides_of(call, count)
    if x.rank != count + 2:
        call.fail(f"a kernel of {count} dimensions for an input of rank {x.rank}")
    sizes = [(x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[i + count] + kernel[i] for i in range(count)]
    shape = [*x.shape[:2], *sizes]
    operand = call.operand(0)
    empty = call.build.expand(call.like(0, operand), [math.prod(shape)])
    places = call.reshape(call.operand(1), [x.size])
    y = call.reshape(call.build.scatter_elements(empty, places, call.reshape(operand, [x.size]), axis=0), shape)
    whole = call.ints(2) or shape
    if len(whole) != len(shape):
        call.fail(f"an output shape of {whole} for an input of rank {x.rank}")
    for i, size in enumerate(whole):
        y = extended(call, y, i, 0, size - shape[i])
    return y
