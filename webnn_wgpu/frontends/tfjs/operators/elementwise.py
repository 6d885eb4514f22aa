"""Operators that treat each element by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import BOOL, FLOAT32, HELD, DType
from ..call import TfjsCall
from ..layers.activations import relu6, selu
from ._registry import INT32, Result, lowers

_FLOAT_UNARY = {
    "Acos": "ext.acos",
    "Acosh": "ext.acosh",
    "Asin": "ext.asin",
    "Asinh": "ext.asinh",
    "Atan": "ext.atan",
    "Atanh": "ext.atanh",
    "Cos": "cos",
    "Cosh": "ext.cosh",
    "Elu": "elu",
    "Erf": "erf",
    "Exp": "exp",
    "Log": "log",
    "Reciprocal": "reciprocal",
    "Sigmoid": "sigmoid",
    "Sin": "sin",
    "Sinh": "ext.sinh",
    "Softplus": "softplus",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}
"""Operators on floats, and those of the builder."""

_UNARY = {"Abs": "abs", "Neg": "neg", "Sign": "sign", "Relu": "relu"}
"""Operators on floats and integers, and those of the builder."""

_ROUNDING = {"Ceil": "ceil", "Floor": "floor", "Round": "round_even"}
"""Operators that leave integers as they are."""

_BINARY = {"Add": "add", "AddV2": "add", "Sub": "sub", "Mul": "mul", "Maximum": "max", "Minimum": "min", "BiasAdd": "add"}
"""Operators on two operands of the same type, and those of the builder."""

_COMPARISONS = {
    "Equal": "equal",
    "NotEqual": "not_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_or_equal",
    "Less": "lesser",
    "LessEqual": "lesser_or_equal",
}

_LOGIC = {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}


def method(call: TfjsCall, name: str) -> Callable[..., MLOperand]:
    """Return a method of the builder, or of its extension."""
    room, _, own = name.rpartition(".")
    return getattr(call.build.ext if room else call.build, own)


def common_type(*dtypes: DType) -> DType:
    """Return the type that operands of several types are cast to."""
    return FLOAT32 if FLOAT32 in dtypes else INT32 if INT32 in dtypes else BOOL


def numbers(call: TfjsCall, *indices: int) -> list[MLOperand]:
    """Return inputs on the device, cast to their common type, booleans to int32."""
    dtype = common_type(*(call.tensor(i).dtype for i in indices), INT32)
    return [call.cast(call.operand(i), HELD[dtype]) for i in indices]


def _float_unary(name: str, call: TfjsCall) -> Result:
    return method(call, name)(call.floats(0))


def _unary(name: str, call: TfjsCall) -> Result:
    return method(call, name)(numbers(call, 0)[0])


def _rounding(name: str, call: TfjsCall) -> Result:
    x = numbers(call, 0)[0]
    return x if x.data_type == "int32" else method(call, name)(x)


def _binary(name: str, call: TfjsCall) -> Result:
    a, b = numbers(call, 0, 1)
    if call.node.op == "BiasAdd" and call.text("data_format") == "NCHW" and len(a.shape) > 2:
        b = call.reshape(b, [b.shape[-1], *[1] * (len(a.shape) - 2)])
    return method(call, name)(a, b)


def _compared(name: str, call: TfjsCall) -> Result:
    return method(call, name)(*numbers(call, 0, 1))


def _logic(name: str, call: TfjsCall) -> Result:
    return method(call, name)(*(call.cast(call.operand(i), "uint8") for i in (0, 1)))


for _table, _function in (
    (_FLOAT_UNARY, _float_unary),
    (_UNARY, _unary),
    (_ROUNDING, _rounding),
    (_BINARY, _binary),
    (_COMPARISONS, _compared),
    (_LOGIC, _logic),
):
    for _tf, _own in _table.items():
        lowers(_tf)(partial(_function, _own))


@lowers("LogicalNot")
def logical_not(call: TfjsCall) -> Result:
    """The opposite of a truth."""
    return call.build.logical_not(call.cast(call.operand(0), "uint8"))


@lowers("AddN")
def add_n(call: TfjsCall) -> Result:
    """The sum of all inputs."""
    return call.fold(call.build.add, numbers(call, *range(len(call.inputs))))


def floor_div(call: TfjsCall, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return quotients rounded down."""
    if a.data_type != "int32":
        return call.build.floor(call.build.div(a, b))
    # The remainder has the sign of the divisor, so that what is left is divided without a rest.
    return call.build.div(call.build.sub(a, call.build.ext.mod(a, b)), b)


@lowers("RealDiv", "Div")
def div(call: TfjsCall) -> Result:
    """Quotients. Those of integers are rounded down, as in TensorFlow.js."""
    a, b = numbers(call, 0, 1)
    return floor_div(call, a, b) if a.data_type == "int32" else call.build.div(a, b)


@lowers("FloorDiv")
def floor_division(call: TfjsCall) -> Result:
    """Quotients rounded down, as int32 of floats too."""
    return call.cast(floor_div(call, *numbers(call, 0, 1)), "int32")


@lowers("DivNoNan")
def div_no_nan(call: TfjsCall) -> Result:
    """Quotients, 0 where the divisor is 0."""
    a, b = call.floats(0), call.floats(1)
    zero = call.constant(0.0, "float32")
    none = call.build.equal(b, zero)
    safe = call.build.where(none, call.constant(1.0, "float32"), b)
    return call.build.where(none, zero, call.build.div(a, safe))


@lowers("Mod", "FloorMod")
def mod(call: TfjsCall) -> Result:
    """Remainders with the sign of the divisor."""
    return call.build.ext.mod(*numbers(call, 0, 1))


@lowers("Pow")
def pow_(call: TfjsCall) -> Result:
    """Powers."""
    a, b = numbers(call, 0, 1)
    y = call.build.pow(call.cast(a, "float32"), call.cast(b, "float32"))
    return call.cast(call.build.round_even(y), "int32") if a.data_type == "int32" else y


@lowers("SquaredDifference")
def squared_difference(call: TfjsCall) -> Result:
    """Squares of differences."""
    a, b = numbers(call, 0, 1)
    apart = call.build.sub(a, b)
    return call.build.mul(apart, apart)


@lowers("Square")
def square(call: TfjsCall) -> Result:
    """Squares."""
    x = numbers(call, 0)[0]
    return call.build.mul(x, x)


@lowers("Rsqrt")
def rsqrt(call: TfjsCall) -> Result:
    """Reciprocals of square roots."""
    return call.build.reciprocal(call.build.sqrt(call.floats(0)))


@lowers("Expm1")
def expm1(call: TfjsCall) -> Result:
    """exp(x) - 1, precise near 0 by the identity with tanh."""
    x, one = call.floats(0), call.constant(1.0, "float32")
    half = call.build.tanh(call.build.mul(x, call.constant(0.5, "float32")))
    # exp(x) - 1 is tanh(x / 2) (exp(x) + 1); without the factor of large x, which would be infinite, there is nothing to gain.
    near = call.build.mul(half, call.build.add(call.build.exp(x), one))
    far = call.build.sub(call.build.exp(x), one)
    return call.build.where(call.build.lesser(call.build.abs(x), one), near, far)


@lowers("Log1p")
def log1p(call: TfjsCall) -> Result:
    """log(1 + x), precise near 0 by the identity with atanh."""
    x, one, two = call.floats(0), call.constant(1.0, "float32"), call.constant(2.0, "float32")
    small = call.build.lesser(call.build.abs(x), call.constant(0.25, "float32"))
    safe = call.build.where(small, x, call.constant(0.0, "float32"))
    near = call.build.mul(call.build.ext.atanh(call.build.div(safe, call.build.add(safe, two))), two)
    return call.build.where(small, near, call.build.log(call.build.add(x, one)))


@lowers("Atan2")
def atan2(call: TfjsCall) -> Result:
    """Angles of points."""
    y, x, b = call.floats(0), call.floats(1), call.build
    zero = call.constant(0.0, "float32")
    pi = call.constant(math.pi, "float32")
    flat = b.equal(x, zero)
    angle = b.ext.atan(b.div(y, b.where(flat, call.constant(1.0, "float32"), x)))
    behind = b.where(b.lesser(y, zero), b.neg(pi), pi)
    angle = b.add(angle, b.where(b.lesser(x, zero), behind, zero))
    upright = b.mul(b.sign(y), call.constant(math.pi / 2, "float32"))
    return b.where(flat, upright, angle)


@lowers("Selu")
def selu_(call: TfjsCall) -> Result:
    """The self-normalizing exponential linear unit."""
    return selu(call, call.floats(0))


@lowers("Relu6")
def relu6_(call: TfjsCall) -> Result:
    """Elements between 0 and 6."""
    return relu6(call, call.floats(0))


@lowers("LeakyRelu")
def leaky_relu(call: TfjsCall) -> Result:
    """Negative elements are scaled down."""
    return call.build.leaky_relu(call.floats(0), alpha=call.float("alpha", 0.2))


@lowers("Prelu")
def prelu(call: TfjsCall) -> Result:
    """Negative elements are scaled by others."""
    return call.build.prelu(call.floats(0), call.floats(1))


@lowers("ClipByValue")
def clip_by_value(call: TfjsCall) -> Result:
    """Elements within bounds."""
    x = numbers(call, 0)[0]
    if call.tensor(1).array is not None and call.tensor(2).array is not None and x.data_type == "float32":
        return call.build.clamp(x, min_value=float(call.number(1)), max_value=float(call.number(2)))
    x, low, high = numbers(call, 0, 1, 2)
    return call.build.min(call.build.max(x, low), high)


@lowers("FakeQuantWithMinMaxVars")
def fake_quantization(call: TfjsCall) -> Result:
    """The input: TensorFlow.js does not round either."""
    return call.operand(0)


@lowers("IsNan")
def is_nan(call: TfjsCall) -> Result:
    """Whether elements are no numbers."""
    return call.build.is_nan(call.floats(0))


@lowers("IsInf")
def is_inf(call: TfjsCall) -> Result:
    """Whether elements are infinite."""
    return call.build.is_infinite(call.floats(0))


@lowers("IsFinite")
def is_finite(call: TfjsCall) -> Result:
    """Whether elements are finite."""
    x = call.floats(0)
    return call.build.logical_not(call.build.logical_or(call.build.is_nan(x), call.build.is_infinite(x)))


@lowers("BitwiseAnd")
def bitwise_and(call: TfjsCall) -> Result:
    """The bits that both integers have."""
    a, b = numbers(call, 0, 1)
    return call.build.ext.bitwise_and(a, b)


@lowers("Select", "SelectV2")
def select(call: TfjsCall) -> Result:
    """The elements of one or the other input."""
    condition = call.cast(call.operand(0), "uint8")
    dtype = common_type(call.tensor(1).dtype, call.tensor(2).dtype)
    a, b = (call.cast(call.operand(i), HELD[dtype]) for i in (1, 2))
    if call.node.op == "Select" and len(condition.shape) == 1 and len(a.shape) > 1:
        # The first version chooses whole rows.
        condition = call.reshape(condition, [condition.shape[0], *[1] * (len(a.shape) - 1)])
    return call.build.where(condition, a, b)


@lowers("Cast")
def cast(call: TfjsCall) -> Result:
    """Elements of another type."""
    dtype = call.dtype("DstT")
    x = call.tensor(0)
    if dtype is None or np.dtype(np.complex64) in (dtype, x.dtype):
        call.fail(f"a cast from {x.dtype} to {call.attribute('DstT', 'type')}")
    if dtype == x.dtype:
        return x
    if dtype == BOOL:
        operand = call.operand(0)
        return call.build.not_equal(operand, call.like(0, operand))
    return call.typed(call.operand(0), dtype)
