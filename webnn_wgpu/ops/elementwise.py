"""Element-wise operators: unary and binary arithmetic, comparisons and logic. One row each.

Numbers to know: integer arithmetic wraps; integer division truncates toward zero and gives 0 for a zero divisor; maximum and
minimum give NaN where either operand is NaN; comparisons give exactly 0 or 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.graph import Array
from ._def import OpDef
from ._rows import binary, unary
from .interfaces.bounds import Bounds
from .interfaces.precision import DISCRETE

SIGNED = ("float32", "float16", "int64", "int32", "int8")
LOGICAL = "#api-mlgraphbuilder-logical"


def erf(x: Array) -> Array:
    """Return the error function of an array, in float64."""
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    safe: Array = np.where(b == 0, np.ones_like(b), b)
    quotient: Array = a // safe
    if a.dtype.kind == "i":  # floor division rounds down; the operator truncates
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
    name: str, code: str, function: Any, when_nan: str, *, pairs: str, commutative: bool = False
) -> OpDef:
    # Drivers may assume that no NaN occurs and turn one comparison into another: NaN is told by its bits.
    return binary(
        name,
        f"select(select(0u, 1u, a {code} b), {when_nan}, is_nan_f32(a) | is_nan_f32(b))",
        function,
        integer=f"select(0u, 1u, a {code} b)",
        pairs=pairs,
        output="uint8",
        spec=LOGICAL,
        commutative=commutative,
    )


def _logic(name: str, code: str, function: Any) -> OpDef:
    return binary(
        name,
        "",
        function,
        types=("uint8",),
        integer=f"select(0u, 1u, {code})",
        output="uint8",
        spec=LOGICAL,
        commutative=True,
    )


UNARY = (
    unary("abs", "abs(x)", np.abs, types=SIGNED, integer="abs(x)", pairs="abs_T(x)"),
    unary("ceil", "ceil(x)", np.ceil, precision=DISCRETE),
    unary("cos", "cos_f32(x)", np.cos, tolerance=3),
    unary("erf", "erf_f32(x)", erf, tolerance=3),
    unary("exp", "exp_f32(x)", np.exp, tolerance=2),
    unary("floor", "floor(x)", np.floor, precision=DISCRETE),
    unary("log", "log_f32(x)", np.log, tolerance=1),
    unary("neg", "-(x)", np.negative, types=SIGNED, pairs="neg_pair(x)"),
    unary("reciprocal", "reciprocal_f32(x)", _reciprocal, tolerance=2),
    unary("roundEven", "round_even_f32(x)", np.rint, precision=DISCRETE),
    unary("sign", "sign_f32(x)", _sign, types=SIGNED, integer="sign(x)", pairs="sign_T(x)"),
    unary("sin", "sin_f32(x)", np.sin, tolerance=3),
    unary("sqrt", "sqrt_f32(x)", np.sqrt, tolerance=1),
    unary("tan", "tan_f32(x)", np.tan, tolerance=4),
)

ADD = binary("add", "(a + b)", np.add, commutative=True, pairs="add_pair(a, b)")
SUB = binary("sub", "(a - b)", np.subtract, pairs="sub_pair(a, b)")
MUL = binary(
    "mul", "(a * b)", np.multiply, bounds=Bounds(tolerance=0, contracted=True), commutative=True, pairs="mul_pair(a, b)"
)
DIV = binary("div", "div_f32(a, b)", _divide, integer="div_T(a, b)", tolerance=2, pairs="div_T(a, b)")

BINARY = (
    ADD,
    SUB,
    MUL,
    DIV,
    binary("max", "max_f32(a, b)", np.maximum, integer="max(a, b)", commutative=True, pairs="max_T(a, b)"),
    binary("min", "min_f32(a, b)", np.minimum, integer="min(a, b)", commutative=True, pairs="min_T(a, b)"),
    binary("pow", "pow_f32(a, b)", _power, integer="pow_T(a, b)", tolerance=3, pairs="pow_T(a, b)"),
)

LOGIC = (
    _compare_floats_safely("equal", "==", np.equal, "0u", commutative=True, pairs="select(0u, 1u, equal_pair(a, b))"),
    _compare_floats_safely("notEqual", "!=", np.not_equal, "1u", commutative=True, pairs="select(1u, 0u, equal_pair(a, b))"),
    _compare_floats_safely("greater", ">", np.greater, "0u", pairs="select(0u, 1u, less_T(b, a))"),
    _compare_floats_safely("greaterOrEqual", ">=", np.greater_equal, "0u", pairs="select(1u, 0u, less_T(a, b))"),
    _compare_floats_safely("lesser", "<", np.less, "0u", pairs="select(0u, 1u, less_T(a, b))"),
    _compare_floats_safely("lesserOrEqual", "<=", np.less_equal, "0u", pairs="select(1u, 0u, less_T(b, a))"),
    _logic("logicalAnd", "(a != 0u) & (b != 0u)", np.logical_and),
    _logic("logicalOr", "(a != 0u) | (b != 0u)", np.logical_or),
    _logic("logicalXor", "(a != 0u) != (b != 0u)", np.logical_xor),
    unary(
        "logicalNot",
        "",
        np.logical_not,
        types=("uint8",),
        integer="select(0u, 1u, x == 0u)",
        output="uint8",
        operand="a",
        spec=LOGICAL,
    ),
    unary("isNaN", "select(0u, 1u, is_nan_f32(x))", np.isnan, output="uint8", operand="a", spec=LOGICAL),
    unary("isInfinite", "select(0u, 1u, is_inf_f32(x))", np.isinf, output="uint8", operand="a", spec=LOGICAL),
)

OPS = (*UNARY, *BINARY, *LOGIC)
