"""Random numbers: those of a key that follows from the node's seed, the same in every run."""

from __future__ import annotations

import numpy as np

from webnn_wgpu import MLOperand

from ..call import TfjsCall
from ._registry import Result, lowers


def _key(call: TfjsCall) -> MLOperand:
    seed = call.integer("seed") or sum(ord(c) * 31**i for i, c in enumerate(call.node.name[:8]))
    return call.constant(np.array([seed & 0xFFFFFFFF, call.integer("seed2") & 0xFFFFFFFF], np.uint32), "uint32")


@lowers("RandomUniform", "RandomUniformInt", folds=False)
def uniform(call: TfjsCall) -> Result:
    """Numbers of equal probability."""
    if call.node.op == "RandomUniform":
        return call.build.ext.random_uniform(_key(call), call.sizes(0))
    low, high = float(call.number(1)), float(call.number(2))
    return call.cast(call.build.floor(call.build.ext.random_uniform(_key(call), call.sizes(0), low=low, high=high)), "int32")


@lowers("RandomStandardNormal", folds=False)
def normal(call: TfjsCall) -> Result:
    """Numbers around 0."""
    return call.build.ext.random_normal(_key(call), call.sizes(0))


@lowers("TruncatedNormal", folds=False)
def truncated(call: TfjsCall) -> Result:
    """Numbers around 0, none further from it than 2, by the inverse of their distribution."""
    # erf at 2 / sqrt(2) is the probability between -2 and 2.
    share = 0.9544997
    u = call.build.ext.random_uniform(_key(call), call.sizes(0), low=-share, high=share)
    return _inverse_erf(call, u)


def _inverse_erf(call: TfjsCall, x: MLOperand) -> MLOperand:
    """Return sqrt(2) * erfinv(x). Source: M. Giles, Approximating the erfinv function, 2012."""
    b = call.build

    def number(value: float) -> MLOperand:
        return call.constant(value, "float32")

    w = b.neg(b.log(b.mul(b.sub(number(1), x), b.add(number(1), x))))
    w = b.sub(w, number(2.5))
    p = number(2.81022636e-08)
    for c in (
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ):
        p = b.add(number(c), b.mul(p, w))
    return b.mul(b.mul(p, x), number(2**0.5))


@lowers("Multinomial", folds=False)
def multinomial(call: TfjsCall) -> Result:
    """Numbers of categories, drawn by the logarithms of their probabilities."""
    logits, count, b = call.floats(0), int(call.number(1)), call.build
    if len(logits.shape) != 2 or not 0 < count <= 1 << 20:
        call.fail(f"{count} draws of {list(logits.shape)}")
    n, classes = logits.shape
    # The largest of the logits plus Gumbel noise is a draw.
    u = b.ext.random_uniform(_key(call), [n, count, classes], low=1e-7, high=1.0)
    noise = b.neg(b.log(b.neg(b.log(b.clamp(u, min_value=1e-7, max_value=1 - 1e-7)))))
    return b.arg_max(b.add(call.reshape(logits, [n, 1, classes]), noise), 2, output_data_type="int32")
