"""Element-wise operators, activations, comparisons and conversions as ONNX nodes."""

from __future__ import annotations

import math

import numpy as np

from .call import BITCAST_OPSET, ELEMENT_TYPES, WRITERS, OnnxCall, OnnxValue, writes

UNARY = {
    "abs": "Abs",
    "ceil": "Ceil",
    "cos": "Cos",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "identity": "Identity",
    "log": "Log",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "roundEven": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
    "x.acos": "Acos",
    "x.acosh": "Acosh",
    "x.asin": "Asin",
    "x.asinh": "Asinh",
    "x.atan": "Atan",
    "x.atanh": "Atanh",
    "x.cosh": "Cosh",
    "x.sinh": "Sinh",
    "x.bitwise_not": "BitwiseNot",
}
BINARY = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "max": "Max",
    "min": "Min",
    "x.bitwise_and": "BitwiseAnd",
    "x.bitwise_or": "BitwiseOr",
    "x.bitwise_xor": "BitwiseXor",
}
COMPARISONS = {
    "equal": "Equal",
    "greater": "Greater",
    "greaterOrEqual": "GreaterOrEqual",
    "lesser": "Less",
    "lesserOrEqual": "LessOrEqual",
}
LOGICAL = {"logicalAnd": "And", "logicalOr": "Or", "logicalXor": "Xor"}

WIDER = {"int8": "int32", "uint8": "int32", "uint32": "int64", "uint64": "int64"}
"""Types that many kernels of onnxruntime do not have, and wider types that have them and give the same results."""


def _register() -> None:
    for name, op_type in UNARY.items():
        WRITERS[name] = lambda call, op_type=op_type: call.node(op_type, call.given[0])
    for name, op_type in BINARY.items():
        WRITERS[name] = lambda call, op_type=op_type: call.node(op_type, *call.given, shape=call.shape)
    for name, op_type in COMPARISONS.items():
        WRITERS[name] = lambda call, op_type=op_type: _compared(call, op_type)
    for name, op_type in LOGICAL.items():
        WRITERS[name] = lambda call, op_type=op_type: call.cast(
            call.node(op_type, *(call.logical(v) for v in call.given), shape=call.shape), "uint8"
        )


def _compared(call: OnnxCall, op_type: str) -> OnnxValue:
    return call.cast(call.node(op_type, *call.given, data_type="bool", shape=call.shape), "uint8")


_register()


@writes("notEqual")
def _not_equal(call: OnnxCall) -> OnnxValue:
    return call.cast(call.node("Not", call.node("Equal", *call.given, data_type="bool", shape=call.shape)), "uint8")


@writes("logicalNot")
def _logical_not(call: OnnxCall) -> OnnxValue:
    return call.cast(call.node("Not", call.logical(call.given[0])), "uint8")


@writes("isNaN")
def _is_nan(call: OnnxCall) -> OnnxValue:
    return call.cast(call.node("IsNaN", call.given[0], data_type="bool"), "uint8")


@writes("isInfinite")
def _is_infinite(call: OnnxCall) -> OnnxValue:
    operand = call.cast(call.given[0], "float32") if call.opset < 20 else call.given[0]
    return call.cast(call.node("IsInf", operand, data_type="bool"), "uint8")


@writes("pow")
def _pow(call: OnnxCall) -> OnnxValue:
    wide = WIDER.get(call.data_type, call.data_type)
    return call.cast(call.node("Pow", *(call.cast(v, wide) for v in call.given), shape=call.shape), call.data_type)


@writes("x.mod")
def _mod(call: OnnxCall) -> OnnxValue:
    if call.given[0].is_float:
        # ONNX has the remainder of the sign of the dividend alone for floats.
        a, b = call.given
        quotient = call.node("Floor", call.node("Div", a, b, shape=call.shape))
        return call.node("Sub", a, call.node("Mul", quotient, b), shape=call.shape)
    return call.node("Mod", *call.given, shape=call.shape)


@writes("x.fmod")
def _fmod(call: OnnxCall) -> OnnxValue:
    return call.node("Mod", *call.given, shape=call.shape, fmod=1)


@writes("x.shift_left", "x.shift_right")
def _shift(call: OnnxCall) -> OnnxValue:
    operand, count = call.given
    signed, right = call.data_type.startswith("int"), call.operator.endswith("right")
    # BitShift shifts unsigned integers alone. A negative number is shifted right as its complement.
    negative = call.node("Less", operand, call.scalar(0, operand, "zero"), data_type="bool") if signed and right else None
    if negative is not None:
        operand = call.node("Where", negative, call.node("BitwiseNot", operand), operand, data_type=call.data_type)
    kind = f"u{call.data_type}" if signed else call.data_type
    given = (call.cast(v, kind) for v in (operand, count))
    shifted = call.cast(call.node("BitShift", *given, shape=call.shape, direction="RIGHT" if right else "LEFT"), call.data_type)
    if negative is None:
        return shifted
    complement = call.node("BitwiseNot", shifted)
    return call.node("Where", negative, complement, shifted, data_type=call.data_type, shape=call.shape)


@writes("where")
def _where(call: OnnxCall) -> OnnxValue:
    condition, *values = call.given
    kind = "int64" if call.data_type == "uint64" else call.data_type
    chosen = call.node(
        "Where", call.logical(condition), *(call.cast(v, kind) for v in values), data_type=kind, shape=call.shape
    )
    return call.cast(chosen, call.data_type)


@writes("cast")
def _cast(call: OnnxCall) -> OnnxValue:
    return call.cast(call.given[0], call.data_type)


@writes("x.round_bfloat16")
def _round_bfloat16(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    return call.cast(call.cast(operand, "bfloat16"), operand.data_type)


@writes("x.round_float8")
def _round_float8(call: OnnxCall) -> OnnxValue:
    call.need(19, "floats of 8 bits")
    operand, kind = call.given[0], f"float8_{call.attrs['format']}"
    rounded = call.node("Cast", operand, data_type=kind, to=ELEMENT_TYPES[kind], saturate=int(call.attrs["saturate"]))
    return call.cast(rounded, operand.data_type)


@writes("x.bitcast")
def _bitcast(call: OnnxCall) -> OnnxValue:
    call.need(BITCAST_OPSET, "BitCast")
    return call.node("BitCast", call.given[0], data_type=call.data_type, to=ELEMENT_TYPES[call.data_type])


@writes("clamp")
def _clamp(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    low, high = call.attrs["min_value"], call.attrs["max_value"]
    low = None if low is None or low == -math.inf else low
    high = None if high is None or high == math.inf else high
    if not operand.is_float:
        limits = np.iinfo(operand.data_type)
        low = None if low is None or low <= limits.min else min(math.ceil(low), limits.max)
        high = None if high is None or high >= limits.max else max(math.floor(high), limits.min)
    bounds = [None if b is None else call.scalar(b, operand, n) for b, n in ((low, "min"), (high, "max"))]
    return call.node("Clip", operand, *bounds) if any(bounds) else operand


@writes("relu")
def _relu(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    if operand.data_type.startswith("uint"):
        return operand
    if operand.data_type == "int64" and call.opset > 18:
        return call.node("Max", operand, call.scalar(0, operand, "zero"))
    return call.node("Relu", operand)


@writes("elu")
def _elu(call: OnnxCall) -> OnnxValue:
    return call.node("Elu", call.given[0], alpha=float(call.attrs["alpha"]))


@writes("leakyRelu")
def _leaky_relu(call: OnnxCall) -> OnnxValue:
    return call.node("LeakyRelu", call.given[0], alpha=float(call.attrs["alpha"]))


@writes("hardSigmoid")
def _hard_sigmoid(call: OnnxCall) -> OnnxValue:
    return call.node("HardSigmoid", call.given[0], alpha=float(call.attrs["alpha"]), beta=float(call.attrs["beta"]))


@writes("hardSwish")
def _hard_swish(call: OnnxCall) -> OnnxValue:
    return call.node("HardSwish", call.given[0])


@writes("linear")
def _linear(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    scaled = call.node("Mul", operand, call.scalar(call.attrs["alpha"], operand, "alpha"))
    return call.node("Add", scaled, call.scalar(call.attrs["beta"], operand, "beta"))


@writes("softplus")
def _softplus(call: OnnxCall) -> OnnxValue:
    operand, steepness = call.given[0], call.attrs["steepness"]
    if steepness == 1:
        return call.node("Softplus", operand)
    factor = call.scalar(steepness, operand, "steepness")
    return call.node("Div", call.node("Softplus", call.node("Mul", operand, factor)), factor)


@writes("gelu")
def _gelu(call: OnnxCall) -> OnnxValue:
    operand = call.given[0]
    if call.opset >= 20:
        return call.node("Gelu", operand)
    scaled = call.node("Div", operand, call.scalar(math.sqrt(2), operand, "root"))
    raised = call.node("Add", call.node("Erf", scaled), call.scalar(1, operand, "one"))
    # Half of it first: twice the largest numbers is infinite.
    return call.node("Mul", call.node("Mul", operand, call.scalar(0.5, operand, "half")), raised)


@writes("prelu")
def _prelu(call: OnnxCall) -> OnnxValue:
    operand, slope = call.given
    if operand.is_float and operand.shape == call.shape:
        return call.node("PRelu", operand, slope)
    positive = call.node("GreaterOrEqual", operand, call.scalar(0, operand, "zero"), data_type="bool")
    scaled = call.node("Mul", operand, slope, shape=call.shape)
    return call.node("Where", positive, operand, scaled, data_type=call.data_type, shape=call.shape)
