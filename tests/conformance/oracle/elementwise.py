"""Cases of element-wise operators: every data type, shapes of rank 0 to 5, operands that broadcast."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import (
    ANY,
    EXACT,
    FLOATS,
    INTEGERS,
    SIGNED,
    Constant,
    Numbers,
    Tolerance,
    atol,
    case,
    exact,
    rounded,
    shown,
    ulp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

SHAPES = ((), (1,), (7,), (3, 5), (2, 3, 4), (2, 1, 3, 4), (1, 2, 2, 3, 2))

PAIRS = (
    ((3, 5), (3, 5)),
    ((3, 5), (5,)),
    ((3, 1), (3, 5)),
    ((), (2, 3)),
    ((2, 1, 4), (3, 1)),
    ((2, 3, 4), (1,)),
    ((1, 2, 3, 2, 2), (3, 1, 2)),
)

SPECIALS = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 600.0])


@dataclass(frozen=True)
class Unary:
    """An operator of one operand, as float64 computes it.

    Attributes:
        formula: the function; options are its keywords, by the specification's names.
        tolerance: by data type.
        low: smallest operand.
        high: largest operand.
        integers: the integer types that the operator takes.
        options: options of the calls; each has numbers that float16 holds exactly.
        specials: whether IEEE says what becomes of NaN, infinities and zeros.
    """

    formula: Callable[..., Array]
    tolerance: Mapping[str, Tolerance]
    low: float = -4
    high: float = 4
    integers: Sequence[str] = ()
    options: Sequence[Mapping[str, float]] = ({},)
    specials: bool = False
    data_types: Sequence[str] = field(default=FLOATS)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _softplus(x: Array, steepness: float = 1.0) -> Array:
    return np.logaddexp(0, steepness * x) / steepness


TRIGONOMETRY = atol(2.0**-10, 2.0**-9)

UNARY: Mapping[str, Unary] = {
    "abs": Unary(np.abs, ulp(0), integers=SIGNED, specials=True),
    "ceil": Unary(np.ceil, ulp(0), specials=True),
    "cos": Unary(np.cos, TRIGONOMETRY, -20, 20),
    "elu": Unary(
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)), ulp(18), options=({}, {"alpha": 0.25}, {"alpha": 2.0})
    ),
    "erf": Unary(_erf, TRIGONOMETRY, specials=True),
    "exp": Unary(np.exp, ulp(32, 1), -5, 5, specials=True),
    "floor": Unary(np.floor, ulp(0), specials=True),
    "gelu": Unary(lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2, ulp(18), -2, 6),
    "hardSigmoid": Unary(
        lambda x, alpha=0.2, beta=0.5: np.clip(alpha * x + beta, 0, 1), ulp(2), 0, 4, options=({"alpha": 0.25, "beta": 0.125},)
    ),
    "hardSwish": Unary(lambda x: x * np.clip(x + 3, 0, 6) / 6, ulp(4), -2.5, 5),
    "identity": Unary(lambda x: x, ulp(0), integers=INTEGERS, specials=True),
    "leakyRelu": Unary(
        lambda x, alpha=0.01: np.where(x >= 0, x, alpha * x), ulp(1, 2), options=({"alpha": 0.5}, {"alpha": -1.5})
    ),
    "linear": Unary(lambda x, alpha=1.0, beta=0.0: alpha * x + beta, ulp(2), 0, 4, options=({}, {"alpha": 1.5, "beta": 0.75})),
    "log": Unary(np.log, atol(2.0**-10, 2.0**-9), 0.01, 50, specials=True),
    "neg": Unary(lambda x: -x, ulp(0), integers=SIGNED, specials=True),
    "reciprocal": Unary(lambda x: 1 / x, ulp(2), 0.1, 8, specials=True),
    "relu": Unary(lambda x: np.where(x > 0, x, np.where(np.isnan(x), x, 0 * abs(x))), ulp(0), integers=SIGNED),
    "roundEven": Unary(np.rint, ulp(0), -9, 9, specials=True),
    "sigmoid": Unary(lambda x: 1 / (1 + np.exp(-x)), ulp(34, 10), specials=True),
    "sign": Unary(lambda x: np.where(np.isnan(x), 0, np.sign(x)), ulp(0), integers=SIGNED, specials=True),
    "sin": Unary(np.sin, TRIGONOMETRY, -20, 20),
    "softplus": Unary(_softplus, ulp(18), options=({}, {"steepness": 2.0})),
    "softsign": Unary(lambda x: x / (1 + np.abs(x)), ulp(3)),
    "sqrt": Unary(np.sqrt, ulp(1), 0, 30, specials=True),
    "tan": Unary(np.tan, TRIGONOMETRY, -1.2, 1.2),
    "tanh": Unary(np.tanh, ulp(16), specials=True),
}
"""The operators of one operand. Integers go through the same formulas, exactly."""


def _divided(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    whole = np.vectorize(lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), otypes=[object])
    return whole(a.astype(object), b.astype(object))


BINARY: Mapping[str, tuple[Callable[[Any, Any], Any], Mapping[str, Tolerance]]] = {
    "add": (np.add, ulp(1)),
    "sub": (np.subtract, ulp(1)),
    "mul": (np.multiply, ulp(1)),
    "div": (_divided, ulp(2)),
    "max": (np.maximum, ulp(0)),
    "min": (np.minimum, ulp(0)),
    "pow": (np.power, ulp(32, 2)),
}

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "equal": np.equal,
    "notEqual": np.not_equal,
    "greater": np.greater,
    "greaterOrEqual": np.greater_equal,
    "lesser": np.less,
    "lesserOrEqual": np.less_equal,
}

LOGICAL: Mapping[str, Callable[[Any, Any], Any]] = {
    "logicalAnd": np.logical_and,
    "logicalOr": np.logical_or,
    "logicalXor": np.logical_xor,
}


def cases() -> Iterator[Case]:
    """Yield the cases of all element-wise operators."""
    with np.errstate(all="ignore"):
        yield from _unary()
        yield from _binary()
        yield from _compared()
        yield from _clamped()
        yield from _cast()
        yield from _chosen()
        yield from _quantized()


def _unary() -> Iterator[Case]:
    for name, op in UNARY.items():
        for data_type in (*FLOATS, *op.integers):
            for options in op.options:
                for shape in SHAPES:
                    numbers = Numbers(name, data_type, shape)
                    x = numbers.draw(data_type, shape, op.low, op.high if data_type in FLOATS else 100)
                    result = rounded(op.formula(exact(x), **options), data_type)
                    what = " ".join([data_type, shown(shape), *(f"{k}={v}" for k, v in options.items())])
                    yield case(name, what, {"input": x}, result, op.tolerance[data_type], **options)
            if op.specials and data_type in FLOATS:
                x = SPECIALS.astype(data_type)
                result = rounded(op.formula(exact(x)), data_type)
                yield case(name, f"{data_type} special values", {"input": x}, result, op.tolerance[data_type])
    for name, test in (("isNaN", np.isnan), ("isInfinite", np.isinf)):
        for data_type in FLOATS:
            x = SPECIALS.astype(data_type)
            yield case(name, data_type, {"a": x}, rounded(test(x), "uint8"), EXACT)
    for shape in SHAPES:
        x = Numbers("logicalNot", shape).draw("uint8", shape, 0, 2)
        yield case("logicalNot", shown(shape), {"a": x}, rounded(x == 0, "uint8"), EXACT)


def _operands(name: str, data_type: str, pair: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    numbers = Numbers(name, data_type, pair)
    if name == "pow":
        high = 3 if data_type in FLOATS else 5
        return numbers.draw(data_type, pair[0], 0.1, high), numbers.draw(data_type, pair[1], -3 * (high == 3), high)
    if name == "div":
        b = numbers.draw(data_type, pair[1], 1, 9)
        return numbers.draw(data_type, pair[0], -100, 100), np.where(b % 2 == 0, b, b.dtype.type(0) - b).astype(b.dtype)
    if data_type in FLOATS:
        return numbers.draw(data_type, pair[0]), numbers.draw(data_type, pair[1])
    # What is beyond the range wraps.
    return numbers.whole_range(data_type, pair[0]), numbers.whole_range(data_type, pair[1])


def _binary() -> Iterator[Case]:
    for name, (formula, tolerance) in BINARY.items():
        for data_type in ANY:
            for pair in PAIRS:
                a, b = _operands(name, data_type, pair)
                result = rounded(formula(exact(a), exact(b)), data_type)
                yield case(name, f"{data_type} {shown(*pair)}", {"a": a, "b": b}, result, tolerance[data_type])
        for data_type in FLOATS:
            a, b = _operands(name, data_type, ((4, 6), (6,)))
            result = rounded(formula(exact(a), exact(b)), data_type)
            yield case(name, f"{data_type} constant", {"a": a, "b": Constant(b)}, result, tolerance[data_type])
    for data_type in ("float32", "float16"):
        a = np.array([-3, -2, -0.5, 2, 5, 9, 0, 7], data_type)
        b = np.array([3, 2, -3, -2, 0.5, 0, 0, 1], data_type)
        yield case(
            "pow",
            f"{data_type} whole exponents",
            {"a": a, "b": b},
            rounded(exact(a) ** exact(b), data_type),
            ulp(32, 2)[data_type],
        )
    for data_type in (*FLOATS, *SIGNED):
        for pair in PAIRS[:4]:
            if len(pair[0]) >= len(pair[1]) and pair[0] != (3, 1):
                x = Numbers("prelu", data_type, pair).draw(data_type, pair[0], -9, 9)
                slope = Numbers("slope", data_type, pair).draw(data_type, pair[1], -3, 3)
                result = rounded(np.where(x < 0, exact(x) * exact(slope), exact(x)), data_type)
                arguments = {"input": x, "slope": slope}
                yield case("prelu", f"{data_type} {shown(*pair)}", arguments, result, ulp(1, 2)[data_type])


def _compared() -> Iterator[Case]:
    for name, formula in COMPARISONS.items():
        for data_type in ANY:
            for pair in PAIRS[:5]:
                numbers = Numbers(name, data_type, pair)
                a, b = (numbers.draw(data_type, shape, -2, 2) for shape in pair)
                if data_type in FLOATS:
                    a, b = np.rint(a), np.rint(b)
                yield case(name, f"{data_type} {shown(*pair)}", {"a": a, "b": b}, rounded(formula(a, b), "uint8"), EXACT)
        for data_type in FLOATS:
            a, b = (x.ravel().astype(data_type) for x in np.meshgrid(SPECIALS, SPECIALS))
            result = rounded(formula(a, b), "uint8")
            yield case(name, f"{data_type} special values", {"a": a, "b": b}, result, EXACT)
        for data_type in ("int64", "uint64"):
            base = np.iinfo(data_type).max - 3
            a, b = (np.array([base, base + 1, base + 2]) + np.array(d, data_type) for d in ([0, 1, 0], [1, 0, 0]))
            a, b = a.astype(data_type), b.astype(data_type)
            yield case(name, f"{data_type} near the end", {"a": a, "b": b}, rounded(formula(a, b), "uint8"), EXACT)
    for name, formula in LOGICAL.items():
        for pair in PAIRS:
            numbers = Numbers(name, pair)
            a, b = (numbers.draw("uint8", shape, 0, 2) for shape in pair)
            yield case(name, shown(*pair), {"a": a, "b": b}, rounded(formula(a, b), "uint8"), EXACT)


def _clamped() -> Iterator[Case]:
    for data_type in ANY:
        for low, high in ((2, 5), (None, 3), (1, None), (4, 4)):
            bounds = {name: bound for name, bound in (("minValue", low), ("maxValue", high)) if bound is not None}
            for shape in ((), (11,), (3, 4)):
                x = Numbers("clamp", data_type, shape).draw(data_type, shape, -9, 9)
                result = rounded(np.clip(exact(x), low, high), data_type)
                yield case("clamp", f"{data_type} {shown(shape)} {low} to {high}", {"input": x}, result, EXACT, **bounds)


def _cast() -> Iterator[Case]:
    for source in ANY:
        for target in ANY:
            unsigned = source[0] == "u" or (target[0] == "u" and source in FLOATS)
            for shape in ((), (5,), (3, 4)):
                x = Numbers("cast", source, target, shape).draw(source, shape, 0 if unsigned else -100, 100)
                name = f"{source} to {target} {shown(shape)}"
                yield case("cast", name, {"input": x, "dataType": target}, rounded(x, target), EXACT)


def _chosen() -> Iterator[Case]:
    shapes = (
        ((3, 4), (3, 4), (3, 4)),
        ((4,), (3, 4), (1,)),
        ((3, 1), (4,), (3, 4)),
        ((), (2, 3), (2, 3)),
        ((2, 1, 3), (4, 1), ()),
    )
    for data_type in ANY:
        for three in shapes:
            numbers = Numbers("where", data_type, three)
            condition = numbers.draw("uint8", three[0], 0, 2)
            a, b = (numbers.whole_range(data_type, shape) for shape in three[1:])
            arguments = {"condition": condition, "trueValue": a, "falseValue": b}
            result = np.where(condition, a, b).astype(data_type)
            yield case("where", f"{data_type} {shown(*three)}", arguments, result, EXACT)


def _blocks(parameter: Array, shape: Sequence[int]) -> Array:
    for axis, size in enumerate(shape):
        parameter = np.repeat(parameter, size // parameter.shape[axis], axis)
    return parameter


def _quantized() -> Iterator[Case]:
    for scale_type in FLOATS:
        for data_type in ("uint8", "int8", "uint32", "int32"):
            for shape, blocks in (((6,), (1,)), ((4, 6), (1, 1)), ((4, 6), (4, 1)), ((4, 6), (2, 3)), ((2, 3, 4), (1, 3, 2))):
                numbers = Numbers("quantization", scale_type, data_type, shape, blocks)
                scale = numbers.draw(scale_type, blocks, 0.25, 1.0)
                zero = numbers.draw(data_type, blocks, -20, 20)
                name = f"{scale_type} {data_type} {shown(shape, blocks)}"
                scales, zeros = _blocks(exact(scale), shape), _blocks(zero, shape).astype(np.int64)
                q = numbers.draw(data_type, shape, -100, 200)
                result = rounded((q.astype(np.int64) - zeros) * scales, scale_type)
                arguments = {"input": q, "scale": scale, "zeroPoint": zero}
                yield case("dequantizeLinear", name, arguments, result, ulp(1)[scale_type])
                x = numbers.draw(scale_type, shape, -90, 90)
                limits = np.iinfo(data_type)
                steps = np.clip(np.rint(exact(x) / scales) + zeros, limits.min, limits.max)
                arguments = {"input": x, "scale": scale, "zeroPoint": zero}
                yield case("quantizeLinear", name, arguments, rounded(steps, data_type), Tolerance("ULP", 1))
