"""Activation operators, one row each; all but prelu also exist as 2024 `MLActivation`s.

Where the specification's formula gives NaN only because of infinity times zero or infinity minus infinity, the limit is
returned: gelu(-inf) = hardSwish(-inf) = -0, softsign(+-inf) = +-1, leakyRelu by sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.data_types import DATA_TYPES, cast_number
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.expression import Formula, formula
from ..kernels.spec import UniformType
from ._attrs import Attr
from ._def import Call, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._rows import binary, lower_elementwise, to_type, unary
from .elementwise import SIGNED
from .interfaces.bounds import EPSILON, EXACT, Bounds, Computed
from .interfaces.cost import PER_RESULT
from .interfaces.elementwise import ElementWise, in_pairs
from .interfaces.family import Family
from .interfaces.layout import BROADCAST

_erfc: Any = np.vectorize(math.erfc, otypes=[np.float64])


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x >= 0, x, alpha * np.expm1(x))


def _gelu(x: Array) -> Array:
    # 1 + erf(x / sqrt(2)) without the cancellation that leaves it no digits for negative x.
    tail: Array = _erfc(-x / math.sqrt(2))
    return np.where(np.isneginf(x), -0.0, 0.5 * x * tail)


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.maximum(0, np.minimum(1, alpha * x + beta))


def _hard_swish(x: Array) -> Array:
    return np.where(np.isneginf(x), -0.0, x * np.clip(x + 3, 0, 6) / 6)


def _leaky_relu(x: Array, alpha: float) -> Array:
    return np.where(x >= 0, x, alpha * x)


def _linear(x: Array, alpha: float, beta: float) -> Array:
    return alpha * x + beta


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x >= 0, x, slope * x)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _sigmoid(x: Array) -> Array:
    e: Array = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, np.where(np.isnan(x), x, e)) / (1 + e)


def _softplus(x: Array, steepness: float) -> Array:
    t: Array = steepness * x
    return (np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))) / steepness


def _softsign(x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def _infer_clamp(call: Call) -> tuple[TensorType, ...]:
    x = call.input()
    for name in ("min_value", "max_value"):
        value = call.attrs[name]
        # NaN as a bound means that there is none.
        if isinstance(value, float) and math.isnan(value):
            value = None
        call.attrs[name] = None if value is None else cast_number(value, x.data_type)
    low, high = call.attrs["min_value"], call.attrs["max_value"]
    if low is not None and high is not None and low > high:
        raise call.fail(
            "min_value must be <= max_value, compared as the input's data type", got=f"min_value={low}, max_value={high}"
        )
    return (x,)


def _clamp_bounds(attrs: Attrs, data_type: str) -> tuple[float | int, float | int]:
    low, high = attrs["min_value"], attrs["max_value"]
    info = DATA_TYPES[data_type]
    if info.kind == "float":
        return (-np.inf if low is None else low, np.inf if high is None else high)
    limits = np.iinfo(data_type)
    return (int(limits.min) if low is None else low, int(limits.max) if high is None else high)


def _clamp_formula(inputs: Sequence[str], out: str, attrs: Attrs) -> Formula:
    low, high = _clamp_bounds(attrs, inputs[0])
    kind = DATA_TYPES[inputs[0]].kind
    if kind == "float":
        return formula("clamp_f32(x, low, high)", uniforms=(("low", "f32", low), ("high", "f32", high)))
    if DATA_TYPES[inputs[0]].size_bytes < 8:
        type_: UniformType = "i32" if kind == "int" else "u32"
        return formula("min(max(x, low), high)", uniforms=(("low", type_, low), ("high", type_, high)))
    value = "i64" if kind == "int" else "u64"

    def halves(name: str, number: int) -> tuple[tuple[str, UniformType, int], ...]:
        return ((f"{name}_0", "u32", number & 0xFFFFFFFF), (f"{name}_1", "u32", (number >> 32) & 0xFFFFFFFF))

    # A u32 becomes an i64 by way of u64: drivers differ in whether the direct way extends the sign.
    code = "min(max(x, T(u64(low_0) | (u64(low_1) << 32u))), T(u64(high_0) | (u64(high_1) << 32u)))"
    return formula(code, uniforms=(*halves("low", int(low)), *halves("high", int(high))), type_=value)


def _clamp_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    low, high = _clamp_bounds(attrs, out[0].data_type)
    return [to_type(np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)), out[0])]


def _alpha(default: float) -> Attr:
    return Attr("alpha", "float", default)


def _linear_bounds(found: Computed) -> list[Array]:
    size = np.abs(found.operand().astype(np.float64) * found.node.attrs["alpha"]) + abs(found.node.attrs["beta"])
    return [np.nan_to_num(4 * EPSILON * size, posinf=0)]


_LINEAR = Bounds(tolerance=2, allowed=_linear_bounds)
"""Where the product and the addend cancel, the tolerance is for their sizes."""

OPS = (
    OpDef(
        "clamp",
        (Operand("input"),),
        _infer_clamp,
        _clamp_reference,
        lower_elementwise,
        attrs=(Attr("min_value", "number", None), Attr("max_value", "number", None)),
        templates=(ELEMENTWISE,),
        spec="#api-mlgraphbuilder-clamp",
        positional=("min_value", "max_value"),
        elementwise=ElementWise(_clamp_formula, in_pairs("min_T(max_T(x, T(low_0, low_1)), T(high_0, high_1))")),
        family=Family.ELEMENT_WISE,
        without=("epilogue", "movement", "precision"),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=EXACT,
    ),
    unary(
        "elu",
        "select(alpha * expm1_f32(x), x, x >= 0.0)",
        _elu,
        attrs=(_alpha(1.0),),
        spec="#api-mlgraphbuilder-elu",
        positional=("alpha",),
        tolerance=3,
    ),
    unary("gelu", "gelu_f32(x)", _gelu, spec="#api-mlgraphbuilder-gelu-method", tolerance=8),
    unary(
        "hardSigmoid",
        "max_f32(0.0, min_f32(1.0, alpha * x + beta))",
        _hard_sigmoid,
        attrs=(_alpha(0.2), Attr("beta", "float", 0.5)),
        spec="#api-mlgraphbuilder-hard-sigmoid",
        positional=("alpha", "beta"),
        bounds=_LINEAR,
    ),
    unary(
        "hardSwish",
        "hard_swish_f32(x)",
        _hard_swish,
        spec="#api-mlgraphbuilder-hard-swish",
        # The options of the method, which adds a hardSigmoid where they are given.
        positional=("alpha", "beta"),
        tolerance=3,
    ),
    unary(
        "leakyRelu",
        "select(alpha * x, x, x >= 0.0)",
        _leaky_relu,
        attrs=(_alpha(0.01),),
        spec="#api-mlgraphbuilder-leakyrelu",
        positional=("alpha",),
        tolerance=0,
    ),
    unary(
        "linear",
        "(alpha * x + beta)",
        _linear,
        attrs=(_alpha(1.0), Attr("beta", "float", 0.0)),
        spec="#api-mlgraphbuilder-linear",
        bounds=_LINEAR,
    ),
    binary(
        "prelu",
        "select(b * a, a, a >= 0.0)",
        _prelu,
        types=SIGNED,
        integer="select(b * a, a, a >= T(0))",
        operands=("input", "slope"),
        spec="#api-mlgraphbuilder-prelu",
        tolerance=0,
        pairs="select(a, mul_pair(b, a), is_negative_T(a))",
    ),
    unary(
        "relu",
        "max_f32(x, 0.0)",
        _relu,
        types=SIGNED,
        integer="max(x, T(0))",
        spec="#api-mlgraphbuilder-relu-method",
        pairs="max_T(x, T(0u, 0u))",
    ),
    unary("sigmoid", "sigmoid_f32(x)", _sigmoid, spec="#api-mlgraphbuilder-sigmoid-method", tolerance=3),
    unary(
        "softplus",
        "div_f32(softplus_f32(steepness * x), steepness)",
        _softplus,
        attrs=(Attr("steepness", "float", 1.0),),
        spec="#api-mlgraphbuilder-softplus-method",
        tolerance=3,
    ),
    unary(
        "softsign",
        "softsign_f32(x)",
        _softsign,
        spec="#api-mlgraphbuilder-softsign-method",
        tolerance=2,
    ),
    unary("tanh", "tanh_f32(x)", np.tanh, spec="#api-mlgraphbuilder-tanh-method", tolerance=2),
)
