"""Pools over pictures with channels last."""

from __future__ import annotations

import math
from typing import Any

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from ._sums import step_limits
from ._windows import window_padding


def pool_options(call: TfliteCall) -> dict[str, Any]:
    """Return the options of WebNN's pools for a node's."""
    taps = int(call.option("FilterHeight")), int(call.option("FilterWidth"))
    strides = int(call.option("StrideH")), int(call.option("StrideW"))
    shape = call.shape(0)
    return {
        "window_dimensions": list(taps),
        "strides": list(strides),
        "padding": window_padding(call, (shape[1], shape[2]), taps, strides),
        "layout": "nhwc",
    }


def away_from_zero(call: TfliteCall, x: MLOperand, smallest: float) -> MLOperand:
    """Return multiples of a number rounded to integers, halves away from zero.

    Args:
        call: the node.
        x: multiples of `smallest`, which float32 may hold inexactly.
        smallest: the distance of the multiples. A quarter of it is added so that inexact halves count as halves.
    """
    b = call.build
    size = b.floor(b.add(b.abs(x), call.constant(0.5 + smallest / 4, "float32")))
    return b.mul(b.sign(x), size)


def activated_steps(call: TfliteCall, y: MLOperand) -> MLOperand:
    """Return integers of the output's scale within the range of the fused activation."""
    if call.activation == "none":
        return y
    low, high = step_limits(call)
    return call.build.clamp(y, min_value=low, max_value=high)


@lowers(AVERAGE_POOL_2D=3, ranks={0: (4, 4)}, note="quantized: means of the integers, halves away from zero")
def average_pool(call: TfliteCall) -> Result:
    """The means of the elements within each window."""
    options = pool_options(call)
    tensor = call.tensor(0)
    if not (tensor.is_quantized and call.same(0)):
        return call.activated(call.build.average_pool2d(call.real(0), **options))
    count = math.prod(options["window_dimensions"])
    means: MLOperand = call.build.average_pool2d(call.cast(call.operand(0), "float32"), **options)
    record = call.output()
    assert record.dtype is not None
    y = call.cast(away_from_zero(call, means, 1 / max(count, 4)), call.held(record.dtype))
    return call.bare(activated_steps(call, y))


@lowers(MAX_POOL_2D=3, ranks={0: (4, 4)}, note="quantized: of the integers")
def max_pool(call: TfliteCall) -> Result:
    """The largest element within each window."""
    y = call.build.max_pool2d(call.moved(0), **pool_options(call))
    return call.bare(activated_steps(call, y)) if call.tensor(0).is_quantized else call.activated(y)


@lowers(L2_POOL_2D=1, ranks={0: (4, 4)})
def l2_pool(call: TfliteCall) -> Result:
    """The root of the mean of squares within each window."""
    x = call.real(0)
    return call.activated(call.build.sqrt(call.build.average_pool2d(call.build.mul(x, x), **pool_options(call))))
