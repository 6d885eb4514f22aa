"""Fixed-point arithmetic of TFLite's integer kernels: products with a multiplier of 31 bits, and functions of 16 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import Array
from ..call import RANGES, TfliteCall

LOWEST, HIGHEST = RANGES["int16"]
MOST = 2.0**30
"""The least scale that is too large for the kernels."""
HALF_ROOT_OF_TWO = 1518500250
"""Half of the square root of 2, with 31 fraction bits."""
ONE = 15
"""The number of bits of a fraction in 16 bits. The number 1 is represented by the highest integer."""


def limited(call: TfliteCall, x: MLOperand, data_type: str = "int16") -> MLOperand:
    """Return integers within the range of a type, without a change of the data type that holds them."""
    low, high = RANGES[data_type]
    return call.build.clamp(x, min_value=low, max_value=high)


def rescaled(call: TfliteCall, x: MLOperand, scales: Sequence[float] | Array) -> MLOperand:
    """Return int32 numbers times positive scales as int32, rounded twice: to the size of the fraction times them, then whole.

    The fraction of a scale lies between 0.5 and 1, and has 31 bits.

    Args:
        call: the node.
        x: the numbers.
        scales: one scale, or one for each index of the last dimension. They are rounded to float32.
    """
    b = call.build
    with np.errstate(over="ignore"):
        rounded = np.asarray(scales).astype(np.float32)
    if not (rounded < MOST).all():
        call.fail(f"scales of its products reach {float(rounded.max()):g}; allowed are those below {MOST:g}")
    fractions, exponents = np.frexp(rounded.astype(np.float64))
    multipliers = np.rint(fractions * 2.0**31).astype(np.int64) << exponents.clip(0, None)
    # The kernels do not shift by more than 31 bits. Smaller scales give 0.
    multipliers[exponents < -31] = 0
    high = high_products(call, b.cast(x, "int64"), call.constant(multipliers, "int64"))
    return divided(call, b.cast(high, "int32"), (-exponents).clip(0, 31))


def high_products(call: TfliteCall, x: MLOperand, y: MLOperand) -> MLOperand:
    """Return the products of int64 numbers of 32 bits, divided by 2^31 and rounded, halves up."""
    b = call.build
    return b.ext.shift_right(b.add(b.mul(x, y), call.constant(1 << 30, "int64")), call.constant(31, "int64"))


def reciprocal_root(call: TfliteCall, x: MLOperand) -> tuple[MLOperand, MLOperand]:
    """Return the reciprocal of the square root of int32 numbers from 1 on, [..., 1].

    The result is an int64 multiplier of 31 fraction bits, and the power of 2 that then divides. Powers of 4 scale a number to
    28 or 29 bits, so that five steps of Newton's method are precise. Numbers of Newton's method have 28 fraction bits.
    """
    b = call.build

    def whole(value: int, data_type: str = "int64") -> MLOperand:
        return call.constant(value, data_type)

    def shift(from_level: int, times: int, high: int) -> MLOperand:
        steps = b.mul(b.sub(level, whole(from_level, "int32")), whole(times, "int32"))
        return b.cast(b.clamp(steps, min_value=0, max_value=high), "int64")

    # The number of bits, from 2 of them on, in pairs. Level 0 is that of the number 1, whose results come last.
    reached = b.greater_or_equal(x, call.constant(2 << np.arange(0, 30, 2), "int32"))
    level = b.reduce_sum(b.cast(reached, "int32"), axes=[len(x.shape) - 1], keep_dimensions=True)
    scaled = b.ext.shift_left(b.ext.shift_right(b.cast(x, "int64"), shift(14, 2, 2)), shift(14, -2, 26))
    half = b.ext.shift_right(b.add(b.ext.shift_right(scaled, whole(1)), whole(1)), whole(1))
    # The first step, from 1.
    root = b.mul(b.sub(whole(3 << 24), b.ext.shift_right(b.add(half, whole(4)), whole(3))), whole(8))
    for _ in range(4):
        cube = b.mul(high_products(call, high_products(call, root, root), root), whole(1 << 6))
        cube = b.clamp(cube, max_value=(1 << 31) - 1)
        difference = b.sub(high_products(call, root, whole(3 << 27)), high_products(call, half, cube))
        root = b.mul(difference, whole(8))
    root = high_products(call, root, whole(HALF_ROOT_OF_TWO))
    multiplier = b.ext.shift_left(root, shift(3, -1, 2))
    is_one = b.lesser(level, whole(1, "int32"))
    powers = b.clamp(b.sub(level, whole(3, "int32")), min_value=0)
    return b.where(is_one, whole((1 << 31) - 1), multiplier), powers


def divided(call: TfliteCall, x: MLOperand, powers: int | Array | MLOperand) -> MLOperand:
    """Return int32 numbers divided by powers of 2, halves rounded away from 0.

    Args:
        call: the node.
        x: the numbers.
        powers: the exponent, or one for each index of the last dimension. An operand has one for each number.
    """
    b = call.build
    if isinstance(powers, MLOperand):
        one = call.constant(1, "int32")
        half = b.ext.shift_right(b.ext.shift_left(one, powers), one)
        negative = b.mul(b.clamp(x, min_value=-1, max_value=0), b.clamp(powers, max_value=1))
        return b.ext.shift_right(b.add(b.add(x, half), negative), powers)
    shifts = np.asarray(powers, np.int64)
    if not shifts.any():
        return x
    negative = b.clamp(x, min_value=-1, max_value=0)
    if not shifts.all():
        negative = b.ext.bitwise_and(negative, call.constant(np.where(shifts > 0, -1, 0), "int32"))
    rounded = b.add(b.add(x, call.constant((1 << shifts) >> 1, "int32")), negative)
    return b.ext.shift_right(rounded, call.constant(shifts, "int32"))


def logistic_table() -> Array:
    """Return sigmoid with 15 fraction bits for each integer of 16 bits, which has 12 fraction bits."""
    x = np.arange(LOWEST, 1, dtype=np.int64)
    positive = _shifted_left(_reciprocal(_exp(x, 3)), 1)
    return _mirrored(positive, HIGHEST - positive, 1 << (ONE - 1))


def tanh_table(integer_bits: int) -> Array:
    """Return tanh with 15 fraction bits for each integer of 16 bits.

    Args:
        integer_bits: the number of bits of the argument's whole part. The others are its fraction and its sign.
    """
    x = np.arange(LOWEST, 1, dtype=np.int64)
    positive = _shifted_left(_reciprocal(_exp(x, integer_bits + 1)) - (1 << 13), 2)
    return _mirrored(positive, -positive, 0)


def _mirrored(positive: Array, negative: Array, zero: int) -> Array:
    """Return results for all arguments from those for -32768 to 0, which stand for magnitudes."""
    return np.concatenate([negative[:-1], [zero], positive[-2:0:-1]]).astype(np.int32)


def _product(a: Array, b: Array | int) -> Array:
    return np.minimum((a * b + (1 << 14)) >> 15, HIGHEST)


def _halved(x: Array, times: int) -> Array:
    return (x + (1 << (times - 1)) - (x < 0)) >> times


def _shifted_left(x: Array, times: int) -> Array:
    return (x << times).clip(LOWEST, HIGHEST)


def _constant(value: float, integer_bits: int = 0) -> int:
    return min(round(value * 2.0 ** (ONE - integer_bits)), HIGHEST)


def _exp(x: Array, integer_bits: int) -> Array:
    """Return exp of numbers up to 0: a polynomial of degree 4 within a quarter, times powers of e."""
    fraction_bits = ONE - integer_bits
    quarter = 1 << (fraction_bits - 2)
    within = (x & (quarter - 1)) - quarter
    near = (within << integer_bits) + (1 << 12)
    square = _product(near, near)
    cube, fourth = _product(square, near), _product(square, square)
    terms = _halved(_product(_halved(fourth, 2) + cube, _constant(1 / 3)) + square, 1)
    middle = _constant(np.exp(-1 / 8))
    result = np.minimum(middle + _product(near + terms, middle), HIGHEST)
    for power in range(-2, min(integer_bits, 5)):
        found = (within - x) & (1 << (fraction_bits + power)) != 0
        result = np.where(found, _product(result, _constant(np.exp(-(2.0**power)))), result)
    if integer_bits > 5:
        result = np.where(x < -(32 << fraction_bits), 0, result)
    return np.where(x == 0, HIGHEST, result)


def _reciprocal(x: Array) -> Array:
    """Return 2 / (1 + x) for fractions, with two integer bits: three steps of Newton's method."""
    half = (x + HIGHEST + 1) >> 1
    result = _constant(48 / 17, 2) + _product(half, _constant(-32 / 17, 2))
    for _ in range(3):
        result = result + _shifted_left(_product(result, (1 << 13) - _product(half, result)), 2)
    return result
