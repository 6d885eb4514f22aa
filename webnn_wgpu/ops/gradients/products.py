"""Gradients of matrix products: products of the gradient with the transpose of the other factor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..interfaces.gradient import GradientCall, GradientTerm, by_parts


def _transposed(matrix: GradientTerm) -> GradientTerm:
    return matrix.permuted([*range(matrix.rank - 2), matrix.rank - 1, matrix.rank - 2])


def _rows(matrices: GradientTerm) -> GradientTerm:
    """Return the rows of all matrices as one matrix."""
    columns = matrices.shape[-1]
    return matrices.reshaped((matrices.type.num_elements // columns, columns))


def matmul(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of a matrix product."""
    a, b, g = call.given(0), call.given(1), call.gradient
    found: list[GradientTerm | None] = [None, None]
    if call.wants(0):
        found[0] = g.apply("matmul", _transposed(b)).summed_to(a.shape)
    if call.wants(1) and b.rank == 2:
        # One product over the rows of all matrices needs no sum over the matrices.
        found[1] = _rows(a).apply("gemm", _rows(g), a_transpose=True)
    elif call.wants(1):
        found[1] = _transposed(a).apply("matmul", g).summed_to(b.shape)
    return found


def gemm(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradients of alpha a b + beta c. The gradient of a transposed factor is transposed too."""
    a, b, c, g = call.given(0), call.given(1), call.optional(2), call.gradient
    turned_a, turned_b = call.attrs["a_transpose"], call.attrs["b_transpose"]

    def product(left: GradientTerm, right: GradientTerm, turn_left: bool, turn_right: bool) -> GradientTerm:
        return left.apply("gemm", right, alpha=call.attrs["alpha"], a_transpose=turn_left, b_transpose=turn_right)

    found: list[GradientTerm | None] = [None] * len(call.operands)
    if call.wants(0):
        found[0] = product(b, g, turned_b, True) if turned_a else product(g, b, False, not turned_b)
    if call.wants(1):
        found[1] = product(g, a, True, turned_a) if turned_b else product(a, g, not turned_a, False)
    if c is not None:
        found[2] = (call.attrs["beta"] * g).summed_to(c.shape)
    return found


def _unpacked(packed: GradientTerm, call: GradientCall) -> GradientTerm:
    """Return the numbers that bytes hold along the last dimension, as floats of the data type of the scales."""
    bits = call.attrs["bits"]
    shifts = call.constant(np.arange(0, 8, bits, dtype=np.uint8))
    mask = call.constant(np.array(2**bits - 1, np.uint8))
    numbers = packed.reshaped((*packed.shape, 1)).apply("x.shift_right", shifts).apply("x.bitwise_and", mask)
    numbers = numbers.reshaped((*packed.shape[:-1], packed.shape[-1] * (8 // bits)))
    return numbers.cast(call.given(2).type.data_type)


def _quantized_product(call: GradientCall, operands: Sequence[GradientTerm | None]) -> Sequence[GradientTerm]:
    a, b, scales, zero_points, bias = operands
    assert a is not None
    assert b is not None
    assert scales is not None
    rows, blocks, _ = b.shape
    numbers = _unpacked(b, call)
    if zero_points is None:
        numbers = numbers - 2.0 ** (call.attrs["bits"] - 1)
    elif zero_points.type.data_type == "uint8":
        zeros = _unpacked(zero_points.reshaped((rows, zero_points.type.num_elements // rows)), call)
        numbers = numbers - zeros.sliced(1, 0, blocks).reshaped((rows, blocks, 1))
    else:
        numbers = numbers - zero_points.reshaped((rows, blocks, 1))
    weights = (numbers * scales.reshaped((rows, blocks, 1))).reshaped((rows, blocks * numbers.shape[2]))
    weights = weights.sliced(1, 0, a.shape[-1])
    result = _rows(a).apply("matmul", _transposed(weights))
    result = result if bias is None else result + bias
    return (result.reshaped(call.y.shape),)


MATMUL_NBITS = by_parts(_quantized_product)
