"""Functions of one tensor, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import Array
from ..call import RANGES, TfliteCall
from ..contents import Quantization
from ._registry import Result, lowers
from ._sums import counted, counts_steps, in_steps, rounded_steps, twice_rounded

_erf = np.vectorize(math.erf, otypes=[np.float64])
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def gelu_tanh(call: TfliteCall, x: MLOperand) -> MLOperand:
    """Return the approximation of GELU by tanh."""
    b = call.build
    cube = b.mul(b.mul(x, x), x)
    inner = b.mul(b.add(x, b.mul(cube, call.like(0.044715, x))), call.like(SQRT_2_OVER_PI, x))
    return b.mul(b.mul(x, call.like(0.5, x)), b.add(b.tanh(inner), call.like(1, x)))


@dataclass(frozen=True)
class ElementFunction:
    """A function of one element.

    Attributes:
        version: the newest version of the operator.
        build: builds it for numbers.
        compute: computes it in float64, for the tables of tensors of 8 bits.
    """

    version: int
    build: Callable[[TfliteCall, MLOperand], MLOperand]
    compute: Callable[[Array], Array]


def _limited(low: float, high: float) -> Callable[[TfliteCall, MLOperand], MLOperand]:
    return lambda c, x: c.build.clamp(x, min_value=low, max_value=high)


FUNCTIONS: dict[str, ElementFunction] = {
    "ABS": ElementFunction(5, lambda c, x: c.build.abs(x), np.abs),
    "CEIL": ElementFunction(1, lambda c, x: c.build.ceil(x), np.ceil),
    "COS": ElementFunction(2, lambda c, x: c.build.cos(x), np.cos),
    "EXP": ElementFunction(2, lambda c, x: c.build.exp(x), np.exp),
    "FLOOR": ElementFunction(1, lambda c, x: c.build.floor(x), np.floor),
    "LOG": ElementFunction(2, lambda c, x: c.build.log(x), np.log),
    "LOGISTIC": ElementFunction(3, lambda c, x: c.build.sigmoid(x), lambda x: 1 / (1 + np.exp(-x))),
    "NEG": ElementFunction(1, lambda c, x: c.build.neg(x), np.negative),
    "RELU": ElementFunction(3, lambda c, x: c.build.relu(x), lambda x: np.maximum(x, 0)),
    "RELU6": ElementFunction(3, _limited(0, 6), lambda x: np.clip(x, 0, 6)),
    "RELU_0_TO_1": ElementFunction(1, _limited(0, 1), lambda x: np.clip(x, 0, 1)),
    "RELU_N1_TO_1": ElementFunction(1, _limited(-1, 1), lambda x: np.clip(x, -1, 1)),
    "ROUND": ElementFunction(1, lambda c, x: c.build.round_even(x), np.rint),
    "RSQRT": ElementFunction(3, lambda c, x: c.build.reciprocal(c.build.sqrt(x)), lambda x: 1 / np.sqrt(x)),
    "SIGN": ElementFunction(2, lambda c, x: c.build.sign(x), np.sign),
    "SIN": ElementFunction(2, lambda c, x: c.build.sin(x), np.sin),
    "SQRT": ElementFunction(2, lambda c, x: c.build.sqrt(x), np.sqrt),
    "SQUARE": ElementFunction(1, lambda c, x: c.build.mul(x, x), np.square),
    "TANH": ElementFunction(3, lambda c, x: c.build.tanh(x), np.tanh),
    "HARD_SWISH": ElementFunction(1, lambda c, x: c.build.hard_swish(x), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "ELU": ElementFunction(1, lambda c, x: c.build.elu(x), lambda x: np.where(x < 0, np.expm1(x), x)),
}
"""The operators that are a function of one element without options."""


@lowers({name: function.version for name, function in FUNCTIONS.items()}, note="8 bits: a table of 256 results")
def element_function(call: TfliteCall) -> Result:
    """A function of each element. Of tensors of 8 bits it is a table."""
    function = FUNCTIONS[call.node.record.name]
    table = call.table(function.compute)
    return table if table is not None else function.build(call, call.real(0))


@lowers(GELU=3, note="8 bits: a table of 256 results")
def gelu(call: TfliteCall) -> Result:
    """GELU, exact or approximated by tanh."""
    approximate = bool(call.option("Approximate", False))

    def compute(x: Array) -> Array:
        inner = np.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x**3)) if approximate else _erf(x / math.sqrt(2))
        return 0.5 * x * (1 + inner)

    table = call.table(compute)
    if table is not None:
        return table
    x = call.real(0)
    return gelu_tanh(call, x) if approximate else call.build.gelu(x)


@lowers(LEAKY_RELU=2, note="8 bits: a table of 256 results, those of XNNPACK")
def leaky_relu(call: TfliteCall) -> Result:
    """X where x is positive, else alpha * x."""
    alpha = float(call.option("Alpha", 0.0))

    def counts(steps: Array, x: Quantization, y: Quantization) -> Array:
        # XNNPACK's slopes are multiples of 1/256, and halves are rounded up.
        ratio = np.float32(x.scale) / np.float32(y.scale)
        slopes = np.rint(256 * np.float64(np.where(steps < 0, ratio * np.float32(alpha), ratio)))
        return np.floor(steps * slopes / 256 + 0.5)

    table = call.step_table(counts)
    return table if table is not None else call.build.leaky_relu(call.real(0), alpha=alpha)


@lowers(PRELU=1, note="8 bits, alpha constant: a table of 256 results for each alpha, those of LiteRT")
def prelu(call: TfliteCall) -> Result:
    """X where x is positive, else alpha * x. Alpha broadcasts from the right."""
    if not counts_steps(call, 0, 1):
        return call.build.prelu(call.real(0), call.real(1))
    alpha = call.tensor(1)
    if alpha.array is not None:
        return _prelu_tables(call, alpha.array)
    b, x = call.build, counted(call, 0)
    above = b.mul(x, call.like(in_steps(call, 0), x))
    below = b.mul(b.mul(x, counted(call, 1)), call.like(in_steps(call, 0, 1), x))
    return call.bare(rounded_steps(call, b.where(b.lesser(x, call.like(0, x)), below, above)))


def _prelu_tables(call: TfliteCall, alphas: Array) -> MLOperand:
    """Return PRELU of a tensor of 8 bits, read from a table of 256 results for each of the constant's values."""
    source, slope, record = call.tensor(0), call.tensor(1).quantization, call.output()
    assert source.quantization is not None
    assert slope is not None
    assert record.quantization is not None
    assert record.dtype is not None
    low, high = RANGES[source.dtype.name]
    steps = np.arange(low, high + 1, dtype=np.int64) - source.quantization.zero_point
    values, rows = np.unique(alphas, return_inverse=True)
    products = steps * (values.astype(np.int64)[:, None] - slope.zero_point)
    above = twice_rounded(steps, in_steps(call, 0))
    counts = np.where(steps < 0, twice_rounded(products, in_steps(call, 0, 1)), above)
    entries = np.clip(counts + record.quantization.zero_point, *RANGES[record.dtype.name])
    starts = call.constant(256 * rows.reshape(alphas.shape) - low, "int32")
    places = call.build.add(call.cast(call.operand(0), "int32"), starts)
    return call.build.gather(call.constant(entries.ravel(), record.dtype.name), places)


@lowers(CAST=9, doubles=True)
def cast(call: TfliteCall) -> Result:
    """The elements in another type. Floats are truncated toward 0."""
    source, target = call.tensor(0), call.output().dtype
    assert target is not None
    x = call.operand(0)
    if source.dtype.kind == "c":
        if target.kind == "c":
            return call.build.identity(x)
        x = call.reshape(call.build.slice(x, [0] * len(x.shape), [*source.shape, 1]), source.shape)
    if target.kind == "c":
        real = call.reshape(call.cast(x, "float32"), [*source.shape, 1])
        return call.build.pad(real, [0] * len(real.shape), [0] * source.rank + [1])
    if target == np.dtype(bool):
        return call.build.not_equal(x, call.like(0, x))
    if target.name in ("int16", "uint16"):
        whole = call.cast(x, "int32")
        y = call.build.ext.wrap_integer(whole, bits=16, signed=target.name == "int16")
    elif target.name in ("int8", "uint8") and x.data_type in ("float32", "float16"):
        whole = call.cast(x, "int32")
        wrapped = call.build.ext.wrap_integer(whole, bits=8, signed=target.name == "int8")
        y = call.cast(wrapped, call.held(target))
    else:
        return call.bare(call.cast(x, call.held(target)))
    return call.bare(y)
