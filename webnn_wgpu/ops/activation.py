"""Activation operators, one row each. All but prelu also exist as 2024 `MLActivation`s.

If the specification's formula gives NaN only because of infinity times zero or infinity minus infinity, the operators return
the limit: gelu(-inf) = hardSwish(-inf) = -0, softsign(+-inf) = +-1, leakyRelu by sign.
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
from ._def import OpCall, OpDef, Operand
from ._elementwise import ELEMENTWISE
from ._row_documentation import Text, unary_documentation
from ._rows import binary, lower_elementwise, to_type, unary
from .elementwise import SIGNED
from .gradients import activations as activations_gradients
from .interfaces.bounds import EPSILON, EXACT, SMALLEST, Bounds, ReferenceResults
from .interfaces.cost import PER_RESULT
from .interfaces.documentation import PIECEWISE, SMOOTH, Method, Parameter
from .interfaces.elementwise import ElementWise, in_pairs
from .interfaces.family import Family
from .interfaces.layout import BROADCAST

_erfc: Any = np.vectorize(math.erfc, otypes=[np.float64])


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x >= 0, x, alpha * np.expm1(x))


def _gelu(x: Array) -> Array:
    # This formula avoids 1 + erf(x / sqrt(2)), which has no digits for negative x, because its terms cancel.
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
    limit = np.maximum(x, 0) if steepness > 0 else np.minimum(x, 0)
    result: Array = limit + np.log1p(np.exp(-np.abs(steepness * x))) / steepness
    return result


def _softsign(x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def _infer_clamp(call: OpCall) -> tuple[TensorType, ...]:
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


def _linear_bounds(found: ReferenceResults) -> list[Array]:
    size = np.abs(found.operand().astype(np.float64) * found.node.attrs["alpha"]) + abs(found.node.attrs["beta"])
    return [np.nan_to_num(4 * EPSILON * size, posinf=0)]


_LINEAR = Bounds(tolerance=2, allowed=_linear_bounds)
"""Where the product and the addend cancel, the tolerance is for their sizes."""

_ACTIVATION = Method(activation=True)


def _slope_parts(x: Array) -> tuple[Any, Any]:
    """Return the two terms of the derivative of gelu: the normal distribution, and x times its density."""
    wide_x = np.clip(x.astype(np.float64), -40, 40)  # infinity times 0 is NaN
    return 0.5 * _erfc(-wide_x / math.sqrt(2)), wide_x * np.exp(-0.5 * wide_x * wide_x) / math.sqrt(2 * math.pi)


def _slope_reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    return [to_type(sum(_slope_parts(x)), out[0])]


def _slope_bounds(found: ReferenceResults) -> list[Array]:
    # The terms cancel around -0.75, and the tolerance is for their sizes.
    cumulated, rest = _slope_parts(found.operand())
    return [np.nan_to_num(12 * EPSILON * (cumulated + np.abs(rest))) + 2 * SMALLEST]


GELU_SLOPE = OpDef(
    name="geluSlope",
    operands=(Operand(name="input", data_types=("float32",)),),
    infer=lambda call: (call.input(),),
    reference=_slope_reference,
    lower=lower_elementwise,
    templates=(ELEMENTWISE,),
    elementwise=ElementWise(lambda operands, out, attrs: formula("gelu_slope(x)")),
    family=Family.ELEMENT_WISE,
    without=("epilogue", "movement", "precision", "gradient"),
    layout=BROADCAST,
    cost=PER_RESULT,
    bounds=Bounds(tolerance=12, allowed=_slope_bounds, any_size=True),
    internal=True,
)
"""The derivative of gelu, which only passes make."""

OPS = (
    GELU_SLOPE,
    OpDef(
        name="clamp",
        operands=(Operand(name="input"),),
        infer=_infer_clamp,
        reference=_clamp_reference,
        lower=lower_elementwise,
        attrs=(Attr("min_value", "number", None), Attr("max_value", "number", None)),
        templates=(ELEMENTWISE,),
        spec="#api-mlgraphbuilder-clamp",
        elementwise=ElementWise(_clamp_formula, in_pairs("min_T(max_T(x, T(low_0, low_1)), T(high_0, high_1))")),
        family=Family.ELEMENT_WISE,
        without=("epilogue", "movement", "precision"),
        layout=BROADCAST,
        cost=PER_RESULT,
        bounds=EXACT,
        documentation=unary_documentation(
            "clamp",
            Text(
                summary="Limit each element to a range.",
                numerics="NaN elements stay NaN. A bound that is NaN has no effect. Bounds are cast to the data type of the "
                "input: rounded and saturated.",
                group=PIECEWISE,
                arguments={
                    "min_value": "Least result. By default there is no lower bound.",
                    "max_value": "Greatest result. By default there is no upper bound.",
                },
                raises="min_value is above max_value",
                example=">>> b.clamp(x, min_value=0, max_value=6).shape\n(2, 3)",
                method=Method(activation=True, pywebnn=("min_value", "max_value")),
            ),
        ),
        gradient=activations_gradients.CLAMP,
    ),
    unary(
        "elu",
        "select(alpha * expm1_f32(x), x, x >= 0.0)",
        _elu,
        Text(
            summary="`alpha * (exp(x) - 1)` for x below 0, else x.",
            group=SMOOTH,
            arguments={"alpha": "Finite."},
            raises="An option is not finite",
            example=">>> b.elu(x, alpha=0.5).shape\n(2, 3)",
            method=Method(activation=True, pywebnn=("alpha",)),
        ),
        attrs=(_alpha(1.0),),
        spec="#api-mlgraphbuilder-elu",
        tolerance=3,
        gradient=activations_gradients.ELU,
    ),
    unary(
        "gelu",
        "gelu_f32(x)",
        _gelu,
        Text(
            summary="0.5 * x * (1 + erf(x / sqrt(2))).",
            numerics="The error function itself is computed, not the approximation by tanh. The result is -0 for -infinity.",
            group=SMOOTH,
            method=_ACTIVATION,
        ),
        spec="#api-mlgraphbuilder-gelu-method",
        tolerance=8,
        gradient=activations_gradients.GELU,
    ),
    unary(
        "hardSigmoid",
        "max_f32(0.0, min_f32(1.0, alpha * x + beta))",
        _hard_sigmoid,
        Text(
            summary="max(0, min(1, alpha * x + beta)).",
            group=PIECEWISE,
            arguments={"alpha": "Finite.", "beta": "Finite."},
            raises="An option is not finite",
            example=">>> b.hard_sigmoid(x, alpha=0.1).shape\n(2, 3)",
            method=Method(activation=True, pywebnn=("alpha", "beta")),
        ),
        attrs=(_alpha(0.2), Attr("beta", "float", 0.5)),
        spec="#api-mlgraphbuilder-hard-sigmoid",
        bounds=_LINEAR,
        gradient=activations_gradients.HARD_SIGMOID,
    ),
    unary(
        "hardSwish",
        "hard_swish_f32(x)",
        _hard_swish,
        Text(
            summary="`x * max(0, min(6, x + 3)) / 6`.",
            numerics="-0 for -infinity.",
            group=PIECEWISE,
            arguments={
                "alpha": (
                    "Finite. This option is not in the specification. If alpha or beta differs from its default, the method "
                    "computes x * hard_sigmoid(x, alpha, beta)."
                ),
                "beta": "Finite.",
            },
            raises="An option is not finite",
            method=Method(
                activation=True,
                parameters=(Parameter("alpha", "float", "1 / 6"), Parameter("beta", "float", "0.5")),
                dictionary="MLHardSigmoidOptions",
                pywebnn=("alpha", "beta"),
                through="_hard_swish",
            ),
        ),
        spec="#api-mlgraphbuilder-hard-swish",
        # The options of the method, which adds a hardSigmoid where they are given.
        tolerance=3,
        gradient=activations_gradients.HARD_SWISH,
    ),
    unary(
        "leakyRelu",
        "select(alpha * x, x, x >= 0.0)",
        _leaky_relu,
        Text(
            summary="`alpha * x` for x below 0, else x.",
            group=PIECEWISE,
            arguments={"alpha": "Finite."},
            raises="An option is not finite",
            example=">>> b.leaky_relu(x, alpha=0.1).shape\n(2, 3)",
            method=Method(activation=True, pywebnn=("alpha",)),
        ),
        attrs=(_alpha(0.01),),
        spec="#api-mlgraphbuilder-leakyrelu",
        tolerance=0,
        gradient=activations_gradients.LEAKY_RELU,
    ),
    unary(
        "linear",
        "(alpha * x + beta)",
        _linear,
        Text(
            summary="`alpha * x + beta`.",
            group=PIECEWISE,
            arguments={"alpha": "Finite.", "beta": "Finite."},
            raises="An option is not finite",
            example=">>> b.linear(x, alpha=2, beta=1).shape\n(2, 3)",
            method=_ACTIVATION,
        ),
        attrs=(_alpha(1.0), Attr("beta", "float", 0.0)),
        spec="#api-mlgraphbuilder-linear",
        bounds=_LINEAR,
        gradient=activations_gradients.LINEAR,
    ),
    binary(
        "prelu",
        "select(b * a, a, a >= 0.0)",
        _prelu,
        Text(summary="`slope * x` for x below 0, else x.", group=PIECEWISE),
        types=SIGNED,
        integer="select(b * a, a, a >= T(0))",
        operands=("input", "slope"),
        spec="#api-mlgraphbuilder-prelu",
        tolerance=0,
        pairs="select(a, mul_pair(b, a), is_negative_T(a))",
        gradient=activations_gradients.PRELU,
    ),
    unary(
        "relu",
        "max_f32(x, 0.0)",
        _relu,
        Text(
            summary="max(0, x).",
            numerics="NaN stays NaN.",
            group=PIECEWISE,
            example="""
                >>> b.relu(x).shape
                (2, 3)
                >>> b.relu()
                MLActivation(relu)
            """,
            method=_ACTIVATION,
        ),
        types=SIGNED,
        integer="max(x, T(0))",
        spec="#api-mlgraphbuilder-relu-method",
        pairs="max_T(x, T(0u, 0u))",
        gradient=activations_gradients.RELU,
    ),
    unary(
        "sigmoid",
        "sigmoid_f32(x)",
        _sigmoid,
        Text(
            summary="1 / (1 + exp(-x)).",
            numerics="The result reaches 0 and 1 without overflow.",
            group=SMOOTH,
            method=_ACTIVATION,
        ),
        spec="#api-mlgraphbuilder-sigmoid-method",
        tolerance=3,
        gradient=activations_gradients.SIGMOID,
    ),
    unary(
        "softplus",
        "softplus_f32(x, steepness)",
        _softplus,
        Text(
            summary="ln(1 + exp(steepness * x)) / steepness.",
            numerics="Large elements do not overflow.",
            group=SMOOTH,
            arguments={"steepness": "A finite number. It is an option of the 2024 text."},
            raises="An option is not finite",
            example=">>> b.softplus(x, steepness=2).shape\n(2, 3)",
            method=_ACTIVATION,
        ),
        attrs=(Attr("steepness", "float", 1.0),),
        spec="#api-mlgraphbuilder-softplus-method",
        tolerance=3,
        gradient=activations_gradients.SOFTPLUS,
    ),
    unary(
        "softsign",
        "softsign_f32(x)",
        _softsign,
        Text(summary="`x / (1 + |x|)`.", numerics="1 and -1 at the infinities.", group=SMOOTH, method=_ACTIVATION),
        spec="#api-mlgraphbuilder-softsign-method",
        tolerance=2,
        gradient=activations_gradients.SOFTSIGN,
    ),
    unary(
        "tanh",
        "tanh_f32(x)",
        np.tanh,
        Text(summary="Hyperbolic tangent of each element.", group=SMOOTH, method=_ACTIVATION),
        spec="#api-mlgraphbuilder-tanh-method",
        tolerance=2,
        gradient=activations_gradients.TANH,
    ),
)
