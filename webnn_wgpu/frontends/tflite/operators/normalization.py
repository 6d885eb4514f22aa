"""Softmax and normalization."""

from __future__ import annotations

from ..call import TfliteCall
from ._registry import Result, lowers


@lowers(SOFTMAX=4, note="quantized: in floats, rounded once")
def softmax(call: TfliteCall) -> Result:
    """Softmax of beta * x along the last dimension."""
    beta = float(call.option("Beta", 1.0))
    x = call.floats(0)
    if beta != 1:
        x = call.build.mul(x, call.constant(beta, "float32"))
    return call.build.softmax(x, len(x.shape) - 1)


@lowers(LOG_SOFTMAX=2, note="quantized: in floats, rounded once")
def log_softmax(call: TfliteCall) -> Result:
    """The logarithm of softmax along the last dimension."""
    x = call.floats(0)
    return call.build.ext.log_softmax(x, len(x.shape) - 1)


@lowers(L2_NORMALIZATION=2, note="quantized: in floats, rounded once")
def l2_normalization(call: TfliteCall) -> Result:
    """X divided by its norm along the last dimension, which is at least 1e-6."""
    b, x = call.build, call.floats(0)
    norm = b.reduce_l2(x, axes=[len(x.shape) - 1], keep_dimensions=True)
    return call.activated(b.div(x, b.clamp(norm, min_value=1e-6)))


@lowers(LOCAL_RESPONSE_NORMALIZATION=1, ranks={0: (4, 4)})
def local_response_normalization(call: TfliteCall) -> Result:
    """X divided by a power of the sum of squares of neighboring channels."""
    radius, bias = int(call.option("Radius")), float(call.option("Bias", 0.0))
    alpha, beta = float(call.option("Alpha", 0.0)), float(call.option("Beta", 0.0))
    n, h, w, c = call.shape(0)
    radius = min(max(radius, 0), c)
    b, x = call.build, call.floats(0)
    window = 2 * radius + 1
    squares = b.pad(call.reshape(b.mul(x, x), [1, 1, n * h * w, c]), [0, 0, 0, radius], [0, 0, 0, radius])
    means = call.reshape(b.average_pool2d(squares, window_dimensions=[1, window]), [n, h, w, c])
    total = b.add(b.mul(means, call.constant(alpha * window, "float32")), call.constant(bias, "float32"))
    return b.div(x, b.pow(total, call.constant(beta, "float32")))
