"""Arithmetic, comparisons and logic of two tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from webnn_wgpu.eager import Tensor, cast, ops, with_gradient

from ._convert import TensorLike, as_floats, as_tensor, broadcast, same_type

Binary: TypeAlias = Callable[[TensorLike, TensorLike], Tensor]

_DOCUMENTATION = """Return {}, element by element.

Args:
    a: a tensor.
    b: a tensor, with a shape that broadcasts.
"""


def _binary(name: str, what: str, dtype: str | None = None) -> Binary:
    """Return the function of an operator on two tensors, which first get one data type."""

    def call(a: TensorLike, b: TensorLike) -> Tensor:
        left, right = same_type(a, b) if dtype is None else (as_tensor(a, dtype), as_tensor(b, dtype))
        return operator(left, right)

    operator: Any = ops.ext if name.startswith("ext.") else ops
    operator = getattr(operator, name.removeprefix("ext."))
    call.__doc__ = _DOCUMENTATION.format(what[0].lower() + what[1:])
    return call


def _arithmetic(name: str, what: str) -> Binary:
    """Return the function of an operator, of which truth values count as integers."""
    plain = _binary(name, what)

    @functools.wraps(plain)
    def call(a: TensorLike, b: TensorLike) -> Tensor:
        left, right = same_type(a, b)
        return plain(*(cast(each, "int32") if each.dtype == "bool" else each for each in (left, right)))

    return call


add = _arithmetic("add", "The sum of two tensors")
sub = _arithmetic("sub", "The difference of two tensors")
mul = _arithmetic("mul", "The product of two tensors")
maximum = _arithmetic("max", "The larger one of two elements")
minimum = _arithmetic("min", "The smaller one of two elements")
mod = _arithmetic("ext.mod", "The remainder of a division, with the sign of the divisor")
pow_ = _arithmetic("pow", "The first tensor to the power of the second")
equal = _binary("equal", "Whether elements are equal")
not_equal = _binary("not_equal", "Whether elements differ")
greater = _binary("greater", "Whether the first element is greater")
greater_equal = _binary("greater_or_equal", "Whether the first element is greater, or elements are equal")
less = _binary("lesser", "Whether the first element is less")
less_equal = _binary("lesser_or_equal", "Whether the first element is less, or elements are equal")
logical_and = _binary("logical_and", "Whether both elements are true", "bool")
logical_or = _binary("logical_or", "Whether one of the elements is true", "bool")
logical_xor = _binary("logical_xor", "Whether exactly one of the elements is true", "bool")
bitwise_and = _binary("ext.bitwise_and", "The bits that both integers have", "int32")


def div(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the quotient of two tensors. Quotients of integers are rounded down.

    Args:
        a: a tensor.
        b: a tensor, with a shape that broadcasts.
    """
    left, right = same_type(a, b)
    return ops.div(left, right) if left.dtype.startswith("float") else floor_div(left, right)


def floor_div(a: TensorLike, b: TensorLike) -> Tensor:
    """Return quotients, rounded down to integers.

    Args:
        a: a tensor.
        b: a tensor, with a shape that broadcasts.
    """
    left, right = same_type(a, b)
    if left.dtype.startswith("float"):
        return cast(ops.floor(ops.div(left, right)), "int32")
    left, right = as_tensor(left, "int32"), as_tensor(right, "int32")
    quotient = ops.div(left, right)
    rest = left - quotient * right
    differ = ops.logical_and(ops.not_equal(rest, 0), ops.not_equal(rest < 0, right < 0))
    return ops.where(differ, quotient - 1, quotient)


def div_no_nan(a: TensorLike, b: TensorLike) -> Tensor:
    """Return quotients, and 0 for divisors of 0.

    Args:
        a: a tensor.
        b: a tensor, with a shape that broadcasts.
    """
    left, right = as_floats(a), as_floats(b)
    zero = ops.equal(right, 0)
    return ops.where(zero, 0, ops.div(left, ops.where(zero, 1, right)))


def squared_difference(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the squares of differences.

    Args:
        a: a tensor.
        b: a tensor, with a shape that broadcasts.
    """
    difference = sub(a, b)
    return difference * difference


def atan2(a: TensorLike, b: TensorLike) -> Tensor:
    """Return the angle of the vector (b, a) in radians.

    Args:
        a: the second coordinates.
        b: the first coordinates, with a shape that broadcasts.
    """
    y, x = broadcast(as_floats(a), as_floats(b))
    axis = ops.equal(x, 0)
    inner = ops.ext.atan(y / ops.where(axis, 1, x))
    turned = inner + ops.where(y < 0, -math.pi, math.pi)
    result = ops.where(axis, ops.sign(y) * (math.pi / 2), ops.where(x < 0, turned, inner))

    def gradient(dy: Tensor) -> Sequence[Tensor]:
        share = dy / (x * x + y * y)
        return share * x, -(share * y)

    return with_gradient(result, [y, x], gradient)


def add_n(tensors: Sequence[TensorLike]) -> Tensor:
    """Return the sum of tensors of one shape.

    Args:
        tensors: the tensors.
    """
    return functools.reduce(add, tensors[1:], as_tensor(tensors[0]))


def where(condition: TensorLike, a: TensorLike, b: TensorLike) -> Tensor:
    """Return elements of the first tensor where a condition holds, and of the second elsewhere.

    Args:
        condition: truth values.
        a: a tensor.
        b: a tensor.
    """
    left, right = same_type(a, b)
    return ops.where(as_tensor(condition, "bool"), left, right)
