"""Matrix products."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ..call import Call
from ._registry import Result, lowers


def product(call: Call, a: MLOperand, b: MLOperand) -> MLOperand:
    """Return numpy's matrix product: vectors are rows or columns, integers are multiplied exactly."""
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a = call.reshape(a, [1, *a.shape]) if row else a
    b = call.reshape(b, [*b.shape, 1]) if column else b
    if a.data_type in ("float32", "float16"):
        y = call.build.matmul(a, b)
    else:
        *heads, m, k = a.shape
        left, right = call.reshape(a, [*heads, m, k, 1]), call.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
        y = call.build.reduce_sum(call.build.mul(left, right), axes=[max(len(left.shape), len(right.shape)) - 2])
    sizes = list(y.shape)
    if column:
        sizes.pop()
    if row:
        sizes.pop(-1 if column else -2)
    return call.reshape(y, sizes)


@lowers("MatMul")
def matmul(call: Call) -> Result:
    """The matrix product."""
    return product(call, call.operand(0), call.operand(1))


@lowers("Gemm")
def gemm(call: Call) -> Result:
    """Alpha * A' * B' + beta * C."""
    a, b, c = call.operand(0), call.operand(1), call.optional(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    a_transpose, b_transpose = bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0))
    if a.data_type in ("float32", "float16"):
        if c is not None and len(c.shape) > 2:
            call.fail(f"C has rank {len(c.shape)}")
        c = c if beta else None
        return call.build.gemm(a, b, c=c, alpha=alpha, beta=beta, a_transpose=a_transpose, b_transpose=b_transpose)
    if alpha != int(alpha) or beta != int(beta):
        call.on_host("integers scaled by fractions")
    a = call.transpose(a, [1, 0]) if a_transpose else a
    b = call.transpose(b, [1, 0]) if b_transpose else b
    y = product(call, a, b)
    y = call.build.mul(y, call.like(alpha, y)) if alpha != 1 else y
    if c is None or beta == 0:
        return y
    return call.build.add(y, call.build.mul(c, call.like(beta, c)) if beta != 1 else c)
