"""Sums of products of small integers, computed by float32 operators without rounding.

float32 represents all integers up to 2^24, so a sum of products is exact while the sum of their magnitudes stays below that.
Otherwise the factors are split into digits, and the sums of the digits are combined as integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from webnn_wgpu import MLOperand

from .calls import OperatorCall

Bilinear = Callable[[MLOperand, MLOperand], MLOperand]

EXACT_BITS = 24


def digits(call: OperatorCall, x: MLOperand, bits: int, count: int) -> list[tuple[MLOperand, int]]:
    """Split integers: return float32 operands and their powers of 2. The integers are the sum of the products."""
    width = -(-bits // count)
    parts: list[tuple[MLOperand, int]] = []
    for i in range(count - 1):
        base = call.constant(2.0**width, "float32")
        higher = call.build.floor(call.build.mul(x, call.constant(2.0**-width, "float32")))
        parts.append((call.build.sub(x, call.build.mul(higher, base)), i * width))
        x = higher
    return [*parts, (x, (count - 1) * width)]


def exact_sums(
    call: OperatorCall,
    product: Bilinear,
    a: MLOperand,
    a_bits: int,
    b: MLOperand,
    b_bits: int,
    terms: int,
    most: int | None = None,
) -> MLOperand:
    """Return sums of products as int32, with int32's wraparound.

    Args:
        call: the node.
        product: the operator that multiplies and sums, on float32.
        a: integers as float32.
        a_bits: the number of bits of their magnitudes.
        b: the other factors.
        b_bits: the number of bits of their magnitudes.
        terms: the maximum number of products in a sum.
        most: the maximum sum of the magnitudes of `b` in one sum. None if unknown.
    """
    room = EXACT_BITS - int(np.ceil(np.log2(max(terms, 1))))
    choices = [(m * n, m, n) for m in range(1, a_bits + 1) for n in range(1, b_bits + 1)]
    fitting = [c for c in choices if -(-a_bits // c[1]) - (-b_bits // c[2]) <= room]
    if most is not None:
        fitting += [(m, m, 1) for m in range(1, a_bits + 1) if most << -(-a_bits // m) <= 1 << EXACT_BITS]
    if not fitting:
        call.on_host(f"sums of {terms} products are not exact")
    # Of as many products, those with fewer digits of the second factor: if it is constant, each digit is a copy of it.
    _, b_count, a_count = min((count, n, m) for count, m, n in fitting)
    total: MLOperand | None = None
    b_digits = digits(call, b, b_bits, b_count)
    for left, left_power in digits(call, a, a_bits, a_count):
        for right, right_power in b_digits:
            part = call.cast(product(left, right), "int32")
            power = left_power + right_power
            if power >= 32:
                continue
            if power:
                part = call.build.mul(part, call.constant(np.array(1 << power).astype(np.int32), "int32"))
            total = part if total is None else call.build.add(total, part)
    assert total is not None
    return total
