"""Operators on the elements of two tensors, which broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable

from webnn_wgpu import MLOperand

from ..call import TfliteCall
from ._registry import Result, lowers
from ._sums import counted, counts_steps, in_steps, rounded_steps

Binary = Callable[[TfliteCall, MLOperand, MLOperand], MLOperand]
FLOATS = ("float32", "float16")


def _squared_difference(call: TfliteCall, a: MLOperand, b: MLOperand) -> MLOperand:
    difference = call.build.sub(a, b)
    return call.build.mul(difference, difference)


def floor_mod(call: TfliteCall, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return the remainder with the divisor's sign."""
    build = call.build
    if a.data_type not in FLOATS:
        return build.ext.mod(a, b)
    rest = build.ext.fmod(a, b)
    zero = call.like(0, rest)
    other = build.logical_xor(build.lesser(rest, zero), build.lesser(b, zero))
    return build.where(build.logical_and(build.not_equal(rest, zero), other), build.add(rest, b), rest)


def _floor_div(call: TfliteCall, a: MLOperand, b: MLOperand) -> MLOperand:
    build = call.build
    return build.floor(build.div(a, b)) if a.data_type in FLOATS else build.div(build.sub(a, build.ext.mod(a, b)), b)


def _atan2(call: TfliteCall, y: MLOperand, x: MLOperand) -> MLOperand:
    build = call.build
    zero, pi = call.like(0, x), call.like(math.pi, x)
    left, below = build.lesser(x, zero), build.lesser(y, zero)
    turned = build.where(below, build.neg(pi), pi)
    angle = build.ext.atan(build.div(y, x))
    angle = build.where(left, build.add(angle, turned), angle)
    upright = build.where(build.equal(y, zero), zero, build.where(below, call.like(-math.pi / 2, x), call.like(math.pi / 2, x)))
    return build.where(build.equal(x, zero), upright, angle)


ARITHMETIC: dict[str, tuple[int, Binary]] = {
    "ADD": (6, lambda c, a, b: c.build.add(a, b)),
    "SUB": (5, lambda c, a, b: c.build.sub(a, b)),
    "MUL": (8, lambda c, a, b: c.build.mul(a, b)),
    "DIV": (2, lambda c, a, b: c.build.div(a, b)),
    "POW": (1, lambda c, a, b: c.build.pow(a, b)),
    "SQUARED_DIFFERENCE": (2, _squared_difference),
    "FLOOR_DIV": (3, _floor_div),
    "FLOOR_MOD": (2, floor_mod),
    "ATAN2": (1, _atan2),
}
"""Operators whose quantized operands are computed as numbers and rounded once."""


def _steps(call: TfliteCall, function: Binary) -> MLOperand:
    """Return a sum, a difference or a product in steps of the output, which needs no division."""
    a, b = counted(call, 0), counted(call, 1)
    if call.node.record.name == "MUL":
        return call.build.mul(function(call, a, b), call.like(in_steps(call, 0, 1), a))
    return function(call, *(call.build.mul(x, call.like(in_steps(call, i), x)) for i, x in enumerate((a, b))))


@lowers({name: version for name, (version, _) in ARITHMETIC.items()}, note="quantized: in floats, rounded once")
def arithmetic(call: TfliteCall) -> Result:
    """Arithmetic with a fused activation."""
    name = call.node.record.name
    _, function = ARITHMETIC[name]
    if name in ("ADD", "SUB", "MUL") and counts_steps(call, 0, 1):
        return call.bare(rounded_steps(call, _steps(call, function)))
    return call.activated(function(call, call.real(0), call.real(1)))


@lowers(MAXIMUM=4, MINIMUM=4, note="quantized: of the integers if the scales are equal")
def extremes(call: TfliteCall) -> Result:
    """The larger or the smaller elements."""
    largest = call.node.record.name == "MAXIMUM"
    a, b = (call.moved(i) for i in (0, 1))
    return call.bare(call.build.max(a, b) if largest else call.build.min(a, b))


@lowers(ADD_N=1)
def add_n(call: TfliteCall) -> Result:
    """The sum of any number of tensors."""
    return call.fold(call.build.add, [call.real(i) for i in range(len(call))])


COMPARISONS: dict[str, tuple[int, str]] = {
    "EQUAL": (5, "equal"),
    "NOT_EQUAL": (4, "not_equal"),
    "GREATER": (2, "greater"),
    "GREATER_EQUAL": (3, "greater_or_equal"),
    "LESS": (3, "lesser"),
    "LESS_EQUAL": (2, "lesser_or_equal"),
}
"""Comparisons and the builder's methods."""


@lowers({name: version for name, (version, _) in COMPARISONS.items()}, note="quantized: of the numbers")
def comparison(call: TfliteCall) -> Result:
    """A comparison of the numbers of two tensors."""
    first, second = call.tensor(0), call.tensor(1)
    alike = first.is_quantized and first.quantization is not None and first.quantization.same_as(second.quantization)
    a, b = (call.operand(i) if alike else call.real(i) for i in (0, 1))
    return getattr(call.build, COMPARISONS[call.node.record.name][1])(a, b)


@lowers(LOGICAL_AND=1, LOGICAL_OR=1, LOGICAL_NOT=1)
def logic(call: TfliteCall) -> Result:
    """Logic of truth values."""
    method = getattr(call.build, call.node.record.name.lower())
    return method(*(call.operand(i) for i in range(len(call))))


@lowers(BITWISE_XOR=1, RIGHT_SHIFT=1)
def bitwise(call: TfliteCall) -> Result:
    """Operators on the bits of integers. Shifts of signed integers are arithmetic."""
    a, b = call.operand(0), call.operand(1)
    if call.node.record.name == "RIGHT_SHIFT":
        return call.bare(call.build.ext.shift_right(a, b))
    if call.tensor(0).dtype.kind == "b":
        return call.build.not_equal(a, b)
    return call.bare(call.build.ext.bitwise_xor(a, b))


@lowers(BITCAST=1)
def bitcast(call: TfliteCall) -> Result:
    """The bytes of the elements as another type. The last dimension holds the parts of an element of another size."""
    source, target = call.tensor(0).dtype, call.output().dtype
    assert target is not None
    if source.name in ("int16", "uint16", "bool") or target.name in ("int16", "uint16", "bool"):
        call.on_host("elements of this type are held in another number of bytes")
    x = call.operand(0)
    if source.itemsize < target.itemsize:
        ratio = target.itemsize // source.itemsize
        if not x.shape or x.shape[-1] != ratio:
            call.fail(f"the last dimension of {list(x.shape)} must be {ratio}")
        return call.bare(call.reshape(call.build.ext.bitcast(x, call.held(target)), x.shape[:-1]))
    return call.bare(call.build.ext.bitcast(x, call.held(target)))
