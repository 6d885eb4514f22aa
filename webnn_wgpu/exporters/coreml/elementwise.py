"""Element-wise operators, activations, comparisons and conversions as operations of MIL."""

from __future__ import annotations

import math

import numpy as np

from .call import EXACT_INTEGERS, WRITERS, CoreCall, Var, cast, held, mb, writes

UNARY = {
    "ceil": "ceil",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "floor": "floor",
    "identity": "identity",
    "roundEven": "round",
    "sigmoid": "sigmoid",
    "sin": "sin",
    "softplus": "softplus",
    "softsign": "softsign",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
    "x.acos": "acos",
    "x.asin": "asin",
    "x.atan": "atan",
    "x.atanh": "atanh",
    "x.cosh": "cosh",
    "x.sinh": "sinh",
}
BINARY = {"add": "add", "sub": "sub", "mul": "mul", "max": "maximum", "min": "minimum"}
COMPARISONS = {
    "equal": "equal",
    "notEqual": "not_equal",
    "greater": "greater",
    "greaterOrEqual": "greater_equal",
    "lesser": "less",
    "lesserOrEqual": "less_equal",
}
LOGICAL = {"logicalAnd": "logical_and", "logicalOr": "logical_or", "logicalXor": "logical_xor"}


def _register() -> None:
    for name, operation in UNARY.items():
        WRITERS[name] = lambda call, operation=operation: getattr(mb, operation)(x=call.x)
    for name, operation in BINARY.items():
        WRITERS[name] = lambda call, operation=operation: getattr(mb, operation)(x=call.operands[0], y=call.operands[1])
    for name, operation in COMPARISONS.items():
        WRITERS[name] = lambda call, operation=operation: cast(
            getattr(mb, operation)(x=call.operands[0], y=call.operands[1]), "int32"
        )
    for name, operation in LOGICAL.items():
        WRITERS[name] = lambda call, operation=operation: cast(
            getattr(mb, operation)(x=cast(call.operands[0], "bool"), y=cast(call.operands[1], "bool")), "int32"
        )


_register()


@writes("abs", "sign")
def _through_floats(call: CoreCall) -> Var:
    """Write operations that MIL has for floats alone. Integers go through float32 if it holds them."""
    operation = getattr(mb, call.operator)
    if call.is_float:
        return operation(x=call.x)
    if call.operator == "abs":
        return mb.maximum(x=call.x, y=mb.mul(x=call.x, y=np.int32(-1)))
    zero = np.int32(0)
    up, down = (cast(f(x=call.x, y=zero), "int32") for f in (mb.greater, mb.less))
    return mb.sub(x=up, y=down)


@writes("neg")
def _neg(call: CoreCall) -> Var:
    return mb.mul(x=call.x, y=call.number(-1))


@writes("relu")
def _relu(call: CoreCall) -> Var:
    return mb.relu(x=call.x) if call.is_float else mb.maximum(x=call.x, y=np.int32(0))


@writes("log")
def _log(call: CoreCall) -> Var:
    return mb.log(x=call.x, epsilon=call.number(0))


@writes("reciprocal")
def _reciprocal(call: CoreCall) -> Var:
    return mb.inverse(x=call.x, epsilon=call.number(0))


@writes("div")
def _div(call: CoreCall) -> Var:
    x, y = call.operands
    if call.is_float:
        return mb.real_div(x=x, y=y)
    # MIL rounds quotients of integers down, WebNN towards zero.
    quotient = mb.floor_div(x=x, y=y)
    rest = mb.sub(x=x, y=mb.mul(x=quotient, y=y))
    inexact = cast(mb.not_equal(x=rest, y=np.int32(0)), "int32")
    negative = cast(mb.less(x=quotient, y=np.int32(0)), "int32")
    return mb.add(x=quotient, y=mb.mul(x=inexact, y=negative))


@writes("pow")
def _pow(call: CoreCall) -> Var:
    return mb.pow(x=call.operands[0], y=call.operands[1])


@writes("logicalNot")
def _logical_not(call: CoreCall) -> Var:
    return cast(mb.logical_not(x=cast(call.x, "bool")), "int32")


@writes("isNaN")
def _is_nan(call: CoreCall) -> Var:
    return cast(mb.not_equal(x=call.x, y=call.x), "int32")


@writes("isInfinite")
def _is_infinite(call: CoreCall) -> Var:
    return cast(mb.equal(x=mb.abs(x=call.x), y=call.number(math.inf)), "int32")


@writes("where")
def _where(call: CoreCall) -> Var:
    condition, a, b = call.operands
    shape = call.shape
    a, b = (value if tuple(value.shape) == shape else _spread(value, shape) for value in (a, b))
    return mb.select(cond=cast(_spread(condition, shape), "bool"), a=a, b=b)


def _spread(value: Var, shape: tuple[int, ...]) -> Var:
    """Return a value broadcast to a shape."""
    own = (1,) * (len(shape) - len(value.shape)) + tuple(value.shape)
    if own == shape and len(value.shape) == len(shape):
        return value
    value = value if tuple(value.shape) == own else mb.reshape(x=value, shape=own)
    times = tuple(m // n for n, m in zip(own, shape, strict=True))
    return value if all(t == 1 for t in times) else mb.tile(x=value, reps=times)


@writes("expand")
def _expand(call: CoreCall) -> Var:
    return mb.identity(x=_spread(call.x, call.shape))


@writes("cast")
def _cast(call: CoreCall) -> Var:
    target = call.results[0][0]
    value = cast(call.x, held(target))
    narrow = {"int8": (-(2**7), 2**7), "uint8": (0, 2**8)}.get(target)
    if narrow is None or call.data_type == target:
        return value
    low, high = narrow
    size = np.int32(high - low)
    moved = mb.sub(x=value, y=np.int32(low))
    return mb.add(x=mb.sub(x=moved, y=mb.mul(x=mb.floor_div(x=moved, y=size), y=size)), y=np.int32(low))


@writes("clamp")
def _clamp(call: CoreCall) -> Var:
    low, high = call.attrs["min_value"], call.attrs["max_value"]
    x = call.x
    if not call.is_float:
        limits = np.iinfo(np.int32)
        low = None if low is None or low <= limits.min else min(math.ceil(low), limits.max)
        high = None if high is None or high >= limits.max else max(math.floor(high), limits.min)
    if low is not None:
        x = mb.maximum(x=x, y=call.number(low))
    if high is not None:
        x = mb.minimum(x=x, y=call.number(high))
    return x


@writes("elu")
def _elu(call: CoreCall) -> Var:
    return mb.elu(x=call.x, alpha=call.number(call.attrs["alpha"]))


@writes("leakyRelu")
def _leaky_relu(call: CoreCall) -> Var:
    return mb.leaky_relu(x=call.x, alpha=call.number(call.attrs["alpha"]))


@writes("hardSigmoid")
def _hard_sigmoid(call: CoreCall) -> Var:
    alpha, beta = (call.number(call.attrs[n]) for n in ("alpha", "beta"))
    return mb.sigmoid_hard(x=call.x, alpha=alpha, beta=beta)


@writes("hardSwish")
def _hard_swish(call: CoreCall) -> Var:
    gate = mb.sigmoid_hard(x=call.x, alpha=call.number(1 / 6), beta=call.number(0.5))
    return mb.mul(x=call.x, y=gate)


@writes("linear")
def _linear(call: CoreCall) -> Var:
    return mb.add(x=mb.mul(x=call.x, y=call.number(call.attrs["alpha"])), y=call.number(call.attrs["beta"]))


@writes("gelu")
def _gelu(call: CoreCall) -> Var:
    return mb.gelu(x=call.x, mode="EXACT")


@writes("prelu")
def _prelu(call: CoreCall) -> Var:
    x, slope = call.operands
    zero = call.number(0)
    return mb.add(x=mb.maximum(x=x, y=zero), y=mb.mul(x=slope, y=mb.minimum(x=x, y=zero)))


@writes("dequantizeLinear")
def _dequantize(call: CoreCall) -> Var:
    x, scale, zero = call.operands
    shape = tuple(x.shape)
    kind = held(call.results[0][0])
    if call.data_type in ("int32", "uint32") and call.arrays[0] is None:
        raise call.refuse(f"integers from {EXACT_INTEGERS} on are not exact in float32")
    centered = mb.sub(x=cast(x, kind), y=cast(_blocks(zero, shape), kind))
    return mb.mul(x=centered, y=_blocks(scale, shape))


@writes("quantizeLinear")
def _quantize(call: CoreCall) -> Var:
    x, scale, zero = call.operands
    shape, target = tuple(x.shape), call.results[0][0]
    if target in ("int32", "uint32"):
        raise call.refuse(f"integers from {EXACT_INTEGERS} on are not exact in float32")
    limits = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}[target]
    kind = "fp32"
    rounded = mb.round(x=mb.real_div(x=cast(x, kind), y=cast(_blocks(scale, shape), kind)))
    moved = mb.add(x=rounded, y=cast(_blocks(zero, shape), kind))
    low, high = map(np.float32, limits)
    return cast(mb.minimum(x=mb.maximum(x=moved, y=low), y=high), "int32")


def _blocks(value: Var, shape: tuple[int, ...]) -> Var:
    """Return a scale or zero point that broadcasts to a tensor, with its blocks spread."""
    own = tuple(value.shape)
    if all(n in (1, m) for n, m in zip(own, shape, strict=True)):
        return value
    for axis, (n, m) in enumerate(zip(own, shape, strict=True)):
        if n not in (1, m):
            parted = (*tuple(value.shape)[: axis + 1], 1, *tuple(value.shape)[axis + 1 :])
            spread = mb.tile(
                x=mb.reshape(x=value, shape=parted), reps=[m // n if i == axis + 1 else 1 for i in range(len(parted))]
            )
            value = mb.reshape(x=spread, shape=[m if i == axis else k for i, k in enumerate(tuple(value.shape))])
    return value
