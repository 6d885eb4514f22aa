"""Matrix products."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import MICROSOFT, Result, lowers
from .activations import activated

MOST_PRODUCTS = 1 << 24
"""The maximum number of products of integers in memory at a time."""


def product(call: NodeCall, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return numpy's matrix product: vectors are rows or columns, integers are multiplied exactly."""
    if not a.shape or not b.shape:
        call.fail("a scalar is multiplied as a matrix")
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a = call.reshape(a, [1, *a.shape]) if row else a
    b = call.reshape(b, [*b.shape, 1]) if column else b
    y = call.build.matmul(a, b) if a.data_type in ("float32", "float16") else integer_product(call, a, b)
    sizes = list(y.shape)
    if column:
        sizes.pop()
    if row:
        sizes.pop(-1 if column else -2)
    return call.reshape(y, sizes)


def integer_product(call: NodeCall, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return the product of matrices of integers, wrapped around as their type does."""
    if a.data_type in ("int8", "uint8"):
        return call.cast(integer_product(call, call.cast(a, "int32"), call.cast(b, "int32")), a.data_type)
    *heads, m, k = (int(d) for d in a.shape)
    *others, _, n = (int(d) for d in b.shape)
    images = math.prod(np.broadcast_shapes(heads, others))
    rows = max(1, MOST_PRODUCTS // (images * k * n))
    right = call.reshape(b, [*others, 1, k, n])
    parts: list[MLOperand] = []
    for start in range(0, m, rows):
        count = min(rows, m - start)
        left = a if count == m else call.build.slice(a, [0] * len(heads) + [start, 0], [*heads, count, k])
        products = call.build.mul(call.reshape(left, [*heads, count, k, 1]), right)
        parts.append(call.build.reduce_sum(products, axes=[len(products.shape) - 2]))
    return parts[0] if len(parts) == 1 else call.build.concat(parts, len(parts[0].shape) - 2)


@lowers("MatMul")
def matmul(call: NodeCall) -> Result:
    """The matrix product."""
    return product(call, call.operand(0), call.operand(1))


@lowers("Gemm")
def gemm(call: NodeCall) -> Result:
    """Alpha * A' * B' + beta * C."""
    a, b, c = call.operand(0), call.operand(1), call.optional(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    a_transpose, b_transpose = bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0))
    if a.data_type in ("float32", "float16"):
        if c is not None and len(c.shape) > 2:
            call.fail(f"C has rank {len(c.shape)}")
        c = c if beta else None
        return call.build.gemm(a, b, c=c, alpha=alpha, beta=beta, a_transpose=a_transpose, b_transpose=b_transpose)
    if not float(alpha).is_integer() or not float(beta).is_integer():
        call.on_host("integers scaled by fractions")
    a = call.transpose(a, [1, 0]) if a_transpose else a
    b = call.transpose(b, [1, 0]) if b_transpose else b
    y = product(call, a, b)
    y = call.build.mul(y, call.like(alpha, y)) if alpha != 1 else y
    if c is None or beta == 0:
        return y
    return call.build.add(y, call.build.mul(c, call.like(beta, c)) if beta != 1 else c)


@lowers("FusedGemm", domain=MICROSOFT)
def fused_gemm(call: NodeCall) -> Result:
    """Alpha * A' * B' + beta * C, with an activation."""
    y = gemm(call)
    assert isinstance(y, MLOperand)
    parameters = (call.attribute(f"activation_{name}") for name in ("alpha", "beta"))
    return activated(call, y, [p for p in parameters if p is not None])


@lowers("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(call: NodeCall) -> Result:
    """Alpha times the matrix product of inputs that may be transposed."""
    operands = [call.operand(0), call.operand(1)]
    for i, letter in enumerate("AB"):
        rank = len(operands[i].shape)
        if rank < 2:
            continue
        order = list(range(rank))
        if call.attribute(f"transBatch{letter}", 0):
            # The batch dimensions follow the first dimension of the matrix.
            order = [*order[1:-1], 0, rank - 1]
        if call.attribute(f"trans{letter}", 0):
            order[-2:] = order[:-3:-1]
        operands[i] = call.transpose(operands[i], order)
    y, alpha = product(call, *operands), call.attribute("alpha", 1.0)
    return y if alpha == 1 else call.build.mul(y, call.like(alpha, y))


@lowers("Det", ranks={0: range(2, 65)})
def det(call: NodeCall) -> Result:
    """Determinants of matrices, by elimination with the greatest element of each column as pivot."""
    *heads, n, columns = call.tensor(0).shape
    if n != columns:
        call.fail(f"matrices of {n} x {columns}")
    images = math.prod(heads)
    rest = call.reshape(call.cast(call.operand(0), "float32"), [images, n, n])
    total: MLOperand | None = None
    for size in range(n, 0, -1):
        # The pivot's row, as a mask. Its index determines the sign: a move to the front takes that many exchanges.
        column = call.reshape(call.build.slice(rest, [0, 0, 0], [images, size, 1]), [images, size])
        place = call.build.arg_max(call.build.abs(column), 1, keep_dimensions=True)
        pivot = call.build.gather_elements(column, place, axis=1)
        if size > 1:
            signs = call.constant([1.0, -1.0] * ((size + 1) // 2), "float32")
            factor = call.build.mul(pivot, call.build.gather(signs, place))
            chosen = call.build.expand(call.reshape(place, [images, 1, 1]), [images, 1, size])
            row = call.build.gather_elements(rest, chosen, axis=1)
            # The remaining rows are those before and behind the pivot's row.
            number = call.constant(np.arange(size - 1)[np.newaxis], place.data_type)
            later = call.build.greater_or_equal(number, place)
            others = call.build.add(number, call.cast(later, place.data_type))
            indices = call.build.expand(call.reshape(others, [images, size - 1, 1]), [images, size - 1, size])
            left = call.build.gather_elements(rest, indices, axis=1)
            # A column of zeros makes the determinant 0, regardless of the subtraction.
            zero = call.build.equal(pivot, call.constant(0, "float32"))
            divisor = call.build.where(zero, call.constant(1, "float32"), pivot)
            first = call.build.slice(left, [0, 0, 0], [images, size - 1, 1])
            share = call.build.div(first, call.reshape(divisor, [images, 1, 1]))
            reduced = call.build.sub(left, call.build.mul(share, row))
            rest = call.build.slice(reduced, [0, 0, 1], [images, size - 1, size - 1])
        else:
            factor = pivot
        total = factor if total is None else call.build.mul(total, factor)
    assert total is not None
    return call.reshape(total, heads)
