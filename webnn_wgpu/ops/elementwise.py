"""Element-wise operators: unary and binary arithmetic, comparisons and logic. One row each.

Integer arithmetic wraps. Integer division truncates toward zero and returns 0 for a zero divisor. Maximum and minimum return
NaN if either operand is NaN. Comparisons return exactly 0 or 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.names import method_name
from ..ir.graph import Array
from ._def import OpDef
from ._row_documentation import Text
from ._rows import binary, unary
from .gradients import elementwise as elementwise_gradients
from .interfaces.bounds import Bounds
from .interfaces.documentation import COMPARISONS, Method
from .interfaces.precision import DISCRETE

SIGNED = ("float32", "float16", "int64", "int32", "int8")
LOGICAL = "#api-mlgraphbuilder-logical"

_ANGLES = "In radians. NaN for infinities. Large arguments are reduced modulo 2 pi."


def erf(x: Array) -> Array:
    """Return the error function of an array, in float64."""
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    safe: Array = np.where(b == 0, np.ones_like(b), b)
    quotient: Array = a // safe
    if a.dtype.kind == "i":  # Floor division rounds down, but the operator truncates.
        quotient = np.where((a % safe != 0) & ((a < 0) != (safe < 0)), quotient + 1, quotient)
    return np.where(b == 0, np.zeros_like(a), quotient)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    result: Array = np.ones_like(a * b)
    base: Array = a * result
    exponent: Array = b * result
    for bit in range(8 * a.dtype.itemsize):
        result = np.where((exponent >> bit) & 1, result * base, result)
        base = base * base
    if a.dtype.kind == "u":
        return result
    sign: Array = np.where(exponent & 1, -1, 1)
    inverse: Array = np.where(a == 1, 1, np.where(a == -1, sign, 0))
    return np.where(exponent < 0, inverse, result)


def _reciprocal(x: Array) -> Array:
    return 1.0 / x


def _sign(x: Array) -> Array:
    # Not np.sign: NaN gives 0.
    return (x > 0) * 1.0 - (x < 0) * 1.0


def _compare_floats_safely(
    name: str, code: str, function: Any, when_nan: str, summary: str, *, pairs: str, commutative: bool = False
) -> OpDef:
    # Drivers may assume that no NaN occurs and turn one comparison into another: NaN is told by its bits.
    return binary(
        name,
        f"select(select(0u, 1u, a {code} b), {when_nan}, is_nan_f32(a) | is_nan_f32(b))",
        function,
        Text(summary=summary, numerics=f"{when_nan[0]} if either operand is NaN.", group=COMPARISONS),
        integer=f"select(0u, 1u, a {code} b)",
        pairs=pairs,
        output="uint8",
        spec=LOGICAL,
        commutative=commutative,
    )


def _logic(name: str, code: str, function: Any, summary: str) -> OpDef:
    example = f">>> b.{method_name(name)}(b.equal(x, y), b.greater(x, y)).shape\n(2, 3)"
    return binary(
        name,
        "",
        function,
        Text(summary=summary, group=COMPARISONS, example=example),
        types=("uint8",),
        integer=f"select(0u, 1u, {code})",
        output="uint8",
        spec=LOGICAL,
        commutative=True,
    )


UNARY = (
    unary(
        "abs",
        "abs(x)",
        np.abs,
        Text(
            summary="Absolute value of each element.",
            numerics="The least integer has no positive counterpart and stays as it is.",
        ),
        types=SIGNED,
        integer="abs(x)",
        pairs="abs_T(x)",
        gradient=elementwise_gradients.ABS,
    ),
    unary("ceil", "ceil(x)", np.ceil, Text(summary="Round each element up to an integer."), precision=DISCRETE),
    unary(
        "cos",
        "cos_f32(x)",
        np.cos,
        Text(summary="Cosine of each element.", numerics=_ANGLES),
        tolerance=3,
        gradient=elementwise_gradients.COS,
    ),
    unary(
        "erf",
        "erf_f32(x)",
        erf,
        Text(summary="Gauss error function of each element.", numerics="1 and -1 at the infinities."),
        tolerance=3,
        gradient=elementwise_gradients.ERF,
    ),
    unary(
        "exp",
        "exp_f32(x)",
        np.exp,
        Text(
            summary="`e` to the power of each element.",
            numerics="Results above the range of the data type are infinity, those below it 0.",
        ),
        tolerance=2,
        gradient=elementwise_gradients.EXP,
    ),
    unary("floor", "floor(x)", np.floor, Text(summary="Round each element down to an integer."), precision=DISCRETE),
    unary(
        "log",
        "log_f32(x)",
        np.log,
        Text(summary="Natural logarithm of each element.", numerics="-infinity for 0, NaN for negative elements."),
        tolerance=1,
        gradient=elementwise_gradients.LOG,
    ),
    unary(
        "neg",
        "-(x)",
        np.negative,
        Text(
            summary="Each element with the opposite sign.",
            numerics="The least integer has no positive counterpart and stays as it is.",
        ),
        types=SIGNED,
        pairs="neg_pair(x)",
        gradient=elementwise_gradients.NEG,
    ),
    unary(
        "reciprocal",
        "reciprocal_f32(x)",
        _reciprocal,
        Text(summary="1 divided by each element.", numerics="For 0 the result is infinity with the sign of the zero."),
        tolerance=2,
        gradient=elementwise_gradients.RECIPROCAL,
    ),
    unary(
        "roundEven",
        "round_even_f32(x)",
        np.rint,
        Text(
            summary="Round each element to the nearest integer, a half to the even one.",
            numerics="2.5 becomes 2 and 3.5 becomes 4.",
        ),
        precision=DISCRETE,
    ),
    unary(
        "sign",
        "sign_f32(x)",
        _sign,
        Text(summary="The sign of each element: 1, 0 or -1.", numerics="0 for NaN."),
        types=SIGNED,
        integer="sign(x)",
        pairs="sign_T(x)",
    ),
    unary(
        "sin",
        "sin_f32(x)",
        np.sin,
        Text(summary="Sine of each element.", numerics=_ANGLES),
        tolerance=3,
        gradient=elementwise_gradients.SIN,
    ),
    unary(
        "sqrt",
        "sqrt_f32(x)",
        np.sqrt,
        Text(summary="Square root of each element.", numerics="NaN for negative elements, except that -0 stays -0."),
        tolerance=1,
        gradient=elementwise_gradients.SQRT,
    ),
    unary(
        "tan",
        "tan_f32(x)",
        np.tan,
        Text(summary="Tangent of each element.", numerics=_ANGLES),
        tolerance=4,
        gradient=elementwise_gradients.TAN,
    ),
)

ADD = binary(
    "add",
    "(a + b)",
    np.add,
    Text(summary="`a + b`, element by element.", numerics="Integers wrap around."),
    commutative=True,
    pairs="add_pair(a, b)",
    gradient=elementwise_gradients.ADD,
)
SUB = binary(
    "sub",
    "(a - b)",
    np.subtract,
    Text(summary="`a - b`, element by element.", numerics="Integers wrap around."),
    pairs="sub_pair(a, b)",
    gradient=elementwise_gradients.SUB,
)
MUL = binary(
    "mul",
    "(a * b)",
    np.multiply,
    Text(summary="`a * b`, element by element.", numerics="Integers wrap around."),
    bounds=Bounds(tolerance=0, contracted=True),
    commutative=True,
    pairs="mul_pair(a, b)",
    gradient=elementwise_gradients.MUL,
)
DIV = binary(
    "div",
    "div_f32(a, b)",
    _divide,
    Text(
        summary="`a / b`, element by element.",
        numerics="Integers are divided toward zero, and dividing them by 0 gives 0. Floats follow IEEE 754.",
    ),
    integer="div_T(a, b)",
    tolerance=2,
    pairs="div_T(a, b)",
    gradient=elementwise_gradients.DIV,
)

BINARY = (
    ADD,
    SUB,
    MUL,
    DIV,
    binary(
        "max",
        "max_f32(a, b)",
        np.maximum,
        Text(summary="The greater of a and b, element by element.", numerics="NaN if either operand is NaN."),
        integer="max(a, b)",
        commutative=True,
        pairs="max_T(a, b)",
        gradient=elementwise_gradients.MAX,
    ),
    binary(
        "min",
        "min_f32(a, b)",
        np.minimum,
        Text(summary="The lesser of a and b, element by element.", numerics="NaN if either operand is NaN."),
        integer="min(a, b)",
        commutative=True,
        pairs="min_T(a, b)",
        gradient=elementwise_gradients.MIN,
    ),
    binary(
        "pow",
        "pow_f32(a, b)",
        _power,
        Text(
            summary="`a` to the power of `b`, element by element.",
            numerics="A negative float to a power that is not an integer is NaN. Any float to the power of 0 is 1, NaN "
            "included. Integers wrap around. A negative power of an integer is 0, except for 1 and -1.",
        ),
        integer="pow_T(a, b)",
        tolerance=3,
        pairs="pow_T(a, b)",
        gradient=elementwise_gradients.POW,
    ),
)

LOGIC = (
    _compare_floats_safely(
        "equal", "==", np.equal, "0u", "1 where a equals b, else 0.", commutative=True, pairs="select(0u, 1u, equal_pair(a, b))"
    ),
    _compare_floats_safely(
        "notEqual",
        "!=",
        np.not_equal,
        "1u",
        "1 where a differs from b, else 0.",
        commutative=True,
        pairs="select(1u, 0u, equal_pair(a, b))",
    ),
    _compare_floats_safely("greater", ">", np.greater, "0u", "1 where a > b, else 0.", pairs="select(0u, 1u, less_T(b, a))"),
    _compare_floats_safely(
        "greaterOrEqual", ">=", np.greater_equal, "0u", "1 where a >= b, else 0.", pairs="select(1u, 0u, less_T(a, b))"
    ),
    _compare_floats_safely("lesser", "<", np.less, "0u", "1 where a < b, else 0.", pairs="select(0u, 1u, less_T(a, b))"),
    _compare_floats_safely(
        "lesserOrEqual", "<=", np.less_equal, "0u", "1 where a <= b, else 0.", pairs="select(1u, 0u, less_T(b, a))"
    ),
    _logic("logicalAnd", "(a != 0u) & (b != 0u)", np.logical_and, "1 where both a and b are not 0, else 0."),
    _logic("logicalOr", "(a != 0u) | (b != 0u)", np.logical_or, "1 where a or b is not 0, else 0."),
    _logic("logicalXor", "(a != 0u) != (b != 0u)", np.logical_xor, "1 where exactly one of a and b is not 0, else 0."),
    unary(
        "logicalNot",
        "",
        np.logical_not,
        Text(
            summary="1 where a is 0, else 0.",
            group=COMPARISONS,
            details='The 2024 text calls it `not`, which Python reserves: `not_`, or `getattr(builder, "not")`.',
            example="""
                >>> b.logical_not(b.equal(x, y)).shape
                (2, 3)
                >>> getattr(b, "not")(b.equal(x, y)).shape
                (2, 3)
            """,
            method=Method(also=("not_",)),
        ),
        types=("uint8",),
        integer="select(0u, 1u, x == 0u)",
        output="uint8",
        operand="a",
        spec=LOGICAL,
    ),
    unary(
        "isNaN",
        "select(0u, 1u, is_nan_f32(x))",
        np.isnan,
        Text(summary="1 where a is NaN, else 0.", group=COMPARISONS),
        output="uint8",
        operand="a",
        spec=LOGICAL,
    ),
    unary(
        "isInfinite",
        "select(0u, 1u, is_inf_f32(x))",
        np.isinf,
        Text(summary="1 where a is infinite, else 0.", group=COMPARISONS),
        output="uint8",
        operand="a",
        spec=LOGICAL,
    ),
)

OPS = (*UNARY, *BINARY, *LOGIC)
