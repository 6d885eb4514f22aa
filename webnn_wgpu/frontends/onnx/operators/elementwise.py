"""Element-wise arithmetic, comparisons, logic and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..tensors import OnnxTensor
from ..types import is_float
from ._registry import Result, lowers

UNARY = {
    "Ceil": "ceil",
    "Cos": "cos",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Round": "round_even",
    "Sin": "sin",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Not": "logical_not",
    "IsNaN": "is_nan",
    "Acos": "ext.acos",
    "Acosh": "ext.acosh",
    "Asin": "ext.asin",
    "Asinh": "ext.asinh",
    "Atan": "ext.atan",
    "Atanh": "ext.atanh",
    "Cosh": "ext.cosh",
    "Sinh": "ext.sinh",
    "BitwiseNot": "ext.bitwise_not",
}
BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
    "Less": "lesser",
    "LessOrEqual": "lesser_or_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "BitwiseAnd": "ext.bitwise_and",
    "BitwiseOr": "ext.bitwise_or",
    "BitwiseXor": "ext.bitwise_xor",
}
VARIADIC = {"Max": "max", "Min": "min", "Sum": "add"}


def method(call: NodeCall, name: str) -> Callable[..., MLOperand]:
    """Return a method of the builder, or of its extensions where the name starts with "ext."."""
    holder: Any = call.build.ext if name.startswith("ext.") else call.build
    return getattr(holder, name.removeprefix("ext."))


def _unary(name: str) -> Callable[[NodeCall], Result]:
    def lower(call: NodeCall) -> Result:
        return method(call, name)(call.operand(0))

    return lower


def _binary(name: str) -> Callable[[NodeCall], Result]:
    def lower(call: NodeCall) -> Result:
        return method(call, name)(call.operand(0), call.operand(1))

    return lower


def _variadic(name: str) -> Callable[[NodeCall], Result]:
    def lower(call: NodeCall) -> Result:
        if len(call) == 1:
            return call.tensor(0)
        return call.fold(method(call, name), [call.operand(i) for i in range(len(call))])

    return lower


for _name, _method in UNARY.items():
    lowers(_name)(_unary(_method))
for _name, _method in BINARY.items():
    lowers(_name)(_binary(_method))
for _name, _method in VARIADIC.items():
    lowers(_name)(_variadic(_method))


@lowers("Mean")
def mean(call: NodeCall) -> Result:
    """The mean of any number of inputs. The mean of float16 inputs is computed in float32."""
    operands = [call.operand(i) for i in range(len(call))]
    if len(operands) == 1:
        return call.tensor(0)
    total = call.fold(call.build.add, [call.cast(o, "float32") for o in operands])
    return call.build.div(total, call.like(len(operands), total))


@lowers("Abs")
def absolute(call: NodeCall) -> Result:
    """The distance from 0."""
    return call.tensor(0) if unsigned(call.tensor(0)) else call.build.abs(call.operand(0))


@lowers("Sign")
def sign(call: NodeCall) -> Result:
    """-1, 0 or 1."""
    x = call.operand(0)
    return call.build.min(x, call.like(1, x)) if unsigned(call.tensor(0)) else call.build.sign(x)


def unsigned(tensor: OnnxTensor) -> bool:
    """Return whether a tensor has an unsigned integer type."""
    return not is_float(tensor.dtype) and "u" in tensor.dtype.name


@lowers("IsInf")
def is_inf(call: NodeCall) -> Result:
    """Whether elements are infinite, with the requested signs."""
    x = call.operand(0)
    infinite = call.build.is_infinite(x)
    positive, negative = call.attribute("detect_positive", 1), call.attribute("detect_negative", 1)
    if positive and negative:
        return infinite
    if not positive and not negative:
        return call.filled(call.tensor(0).shape, 0, np.dtype(bool))
    compare = call.build.greater if positive else call.build.lesser
    return call.build.logical_and(infinite, compare(x, call.like(0, x)))


@lowers("Where", moves=True)
def where(call: NodeCall) -> Result:
    """Elements of the second input where the first is true, of the third elsewhere."""
    return call.build.where(call.operand(0), call.operand(1), call.operand(2))


@lowers("Mod")
def mod(call: NodeCall) -> Result:
    """The remainder of a division, with the sign of the dividend (fmod) or of the divisor."""
    return method(call, "ext.fmod" if call.attribute("fmod", 0) else "ext.mod")(call.operand(0), call.operand(1))


@lowers("BitShift")
def bit_shift(call: NodeCall) -> Result:
    """Bits shifted up or down."""
    name = "ext.shift_left" if call.attribute("direction") == "LEFT" else "ext.shift_right"
    return method(call, name)(call.operand(0), call.operand(1))


@lowers("Pow")
def power(call: NodeCall) -> Result:
    """Elements raised to exponents, in the data type of the bases."""
    base, exponent = call.operand(0), call.operand(1)
    if is_float(call.tensor(0).dtype):
        if exponent.data_type != base.data_type:
            # The exponents can exceed the range of float16.
            wide = call.build.pow(call.cast(base, "float32"), call.cast(exponent, "float32"))
            return call.cast(wide, base.data_type)
        return call.build.pow(base, exponent)
    if is_float(call.tensor(1).dtype):
        exponents = call.value(1).astype(np.float64)
        if not np.array_equal(exponents, np.rint(exponents)):
            call.on_host("integers raised to fractions")
        exponent = call.cast(exponent, "int64")
    # The lowest bits of the 64-bit result are those of the narrower result.
    wide = call.build.pow(call.cast(base, "int64"), call.cast(exponent, "int64"))
    return call.cast(wide, base.data_type)
