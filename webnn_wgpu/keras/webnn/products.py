"""Functions of `keras.ops` that multiply and add: products of vectors, matrices and tensors."""

from __future__ import annotations

import math as host_math
from typing import Any

import numpy as np

from . import core, host
from .dtypes import is_float
from .elementwise import multiply, operands, wide
from .movement import axis_of, broadcast_to, expand_dims, moveaxis, ravel, reshape, take, transpose
from .reductions import sum as total
from .tensor import Tensor, call, cast


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of matrices of one data type, batched as in numpy."""
    if is_float(a.dtype):
        if a.dtype == "bfloat16":
            return cast(call("matmul", wide(a), wide(b)), a.dtype)
        return call("matmul", a, b)
    # WebNN multiplies matrices of floats alone; these sums of products stay integers.
    found = total(multiply(expand_dims(cast(a, "int32"), -1), expand_dims(cast(b, "int32"), -3)), -2)
    return cast(found, a.dtype)


@host.unless_held("numpy")
def matmul(x1: Any, x2: Any) -> Tensor:
    """The product of matrices."""
    first, second = core.convert_to_tensor(x1), core.convert_to_tensor(x2)
    narrow = first.dtype == "int8" and second.dtype == "int8"
    a, b = (cast(x, "int32") for x in (first, second)) if narrow else operands(first, second)
    left, right = a.ndim == 1, b.ndim == 1
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: an operand has no dimensions")
    a = reshape(a, (1, *a.shape)) if left else a
    b = reshape(b, (*b.shape, 1)) if right else b
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {first.shape} and {second.shape} do not fit")
    found = _product(a, b)
    sizes = list(found.shape)
    if left:
        del sizes[-2]
    if right:
        del sizes[-1]
    return reshape(found, sizes)


@host.unless_held("numpy")
def tensordot(x1: Any, x2: Any, axes: Any = 2) -> Tensor:
    """The sum of products over dimensions of both."""
    a, b = operands(x1, x2)
    if isinstance(axes, (int, np.integer)):
        first, second = list(range(a.ndim - int(axes), a.ndim)), list(range(int(axes)))
    else:
        first, second = ([each] if isinstance(each, (int, np.integer)) else list(each) for each in axes)
    first, second = [axis_of(n, a.ndim) for n in first], [axis_of(n, b.ndim) for n in second]
    rest_a, rest_b = [n for n in range(a.ndim) if n not in first], [n for n in range(b.ndim) if n not in second]
    inner = host_math.prod(a.shape[n] for n in first)
    left = reshape(transpose(a, [*rest_a, *first]), (-1, inner))
    right = reshape(transpose(b, [*second, *rest_b]), (inner, -1))
    return reshape(_product(left, right), [*(a.shape[n] for n in rest_a), *(b.shape[n] for n in rest_b)])


@host.unless_held("numpy")
def dot(x1: Any, x2: Any) -> Tensor:
    """Numpy's product: of the last dimension of one and the last but one of the other."""
    a, b = operands(x1, x2)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return tensordot(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def inner(x1: Any, x2: Any) -> Tensor:
    """The product of the last dimensions."""
    a, b = operands(x1, x2)
    return multiply(a, b) if not a.ndim or not b.ndim else tensordot(a, b, ((a.ndim - 1,), (b.ndim - 1,)))


def vdot(x1: Any, x2: Any) -> Tensor:
    """The product of all elements."""
    a, b = operands(x1, x2)
    return tensordot(ravel(a), ravel(b), 1)


def outer(x1: Any, x2: Any) -> Tensor:
    """All products of an element of each."""
    a, b = operands(x1, x2)
    return multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


@host.unless_held("numpy")
def kron(x1: Any, x2: Any) -> Tensor:
    """The Kronecker product."""
    a, b = operands(x1, x2)
    rank = max(a.ndim, b.ndim)
    a, b = (reshape(x, [1] * (rank - x.ndim) + list(x.shape)) for x in (a, b))
    left = reshape(a, [size for each in a.shape for size in (each, 1)])
    right = reshape(b, [size for each in b.shape for size in (1, each)])
    return reshape(multiply(left, right), [m * n for m, n in zip(a.shape, b.shape, strict=True)])


@host.unless_held("numpy")
def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The product of vectors in space."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = operands(x1, x2)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        return host.fall_back("numpy", "cross", x1, x2, axisa, axisb, axisc)
    turned = [[take(x, np.int32([(n + step) % 3 for n in range(3)]), -1) for step in (1, 2)] for x in (a, b)]
    return moveaxis(turned[0][0] * turned[1][1] - turned[0][1] * turned[1][0], -1, axisc)


# Sums by letters ------------------------------------------------------------------------------------------------------


def _letters(subscripts: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters of their own for an ellipsis."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise ValueError(f"einsum: {subscripts} has {len(parts)} operands, not {len(ranks)}")
    spare = [chr(code) for code in range(0x3B1, 0x3B1 + 12)]
    widths = [rank - len(part.replace("...", "")) for part, rank in zip(parts, ranks, strict=True)]
    most = max([width for part, width in zip(parts, widths, strict=True) if "..." in part], default=0)
    found = [part.replace("...", "".join(spare[most - width : most])) for part, width in zip(parts, widths, strict=True)]
    if arrow:
        return found, right.replace("...", "".join(spare[:most]))
    names = "".join(found)
    single = sorted(name for name in set(names) if names.count(name) == 1 and name not in spare)
    return found, "".join(spare[:most]) + "".join(single)


def _unrepeated(x: Tensor, letters: str) -> tuple[Tensor, str]:
    """Take the diagonal of dimensions with one letter."""
    for name in dict.fromkeys(letters):
        while letters.count(name) > 1:
            first = letters.index(name)
            second = letters.index(name, first + 1)
            from .movement import diagonal

            x = diagonal(x, 0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + name
    return x, letters


def _summed(x: Tensor, letters: str, kept: str) -> tuple[Tensor, str]:
    gone = [n for n, name in enumerate(letters) if name not in kept]
    if not gone:
        return x, letters
    return cast(total(x, gone), x.dtype), "".join(name for name in letters if name in kept)


def _contracted(a: Tensor, first: str, b: Tensor, second: str, kept: str) -> tuple[Tensor, str]:
    """Multiply two tensors, and sum over letters that neither the result nor a later operand has."""
    a, first = _summed(a, first, second + kept)
    b, second = _summed(b, second, first + kept)
    batch = [name for name in first if name in second and name in kept]
    inner_names = [name for name in first if name in second and name not in kept]
    rows = [name for name in first if name not in second]
    columns = [name for name in second if name not in first]
    sizes = dict(zip(second, b.shape, strict=True))
    for name, size in zip(first, a.shape, strict=True):
        sizes[name] = max(size, sizes.get(name, 1))
    a = transpose(a, [first.index(name) for name in [*batch, *rows, *inner_names]])
    b = transpose(b, [second.index(name) for name in [*batch, *inner_names, *columns]])
    a = broadcast_to(a, [sizes[name] for name in [*batch, *rows, *inner_names]])
    b = broadcast_to(b, [sizes[name] for name in [*batch, *inner_names, *columns]])
    many = [host_math.prod(sizes[name] for name in names) for names in (batch, rows, inner_names, columns)]
    if not inner_names:
        spread = reshape(a, [*(sizes[n] for n in batch), *(sizes[n] for n in rows), *[1] * len(columns)])
        other = reshape(b, [*(sizes[n] for n in batch), *[1] * len(rows), *(sizes[n] for n in columns)])
        return multiply(spread, other), "".join([*batch, *rows, *columns])
    found = _product(reshape(a, (many[0], many[1], many[2])), reshape(b, (many[0], many[2], many[3])))
    return reshape(found, [sizes[name] for name in [*batch, *rows, *columns]]), "".join([*batch, *rows, *columns])


@host.unless_held("numpy")
def einsum(subscripts: str, *given: Any, **kwargs: Any) -> Tensor:
    """Products and sums, named by letters."""
    tensors = [core.convert_to_tensor(x) for x in given]
    if any(x.value is None for x in tensors):
        return host.fall_back("numpy", "einsum", subscripts, *tensors)
    narrow = {x.dtype for x in tensors} == {"int8"}
    tensors = [cast(x, "int32") for x in tensors] if narrow else operands(*tensors)
    names, result = _letters(subscripts, [x.ndim for x in tensors])
    terms = [_unrepeated(x, letters) for x, letters in zip(tensors, names, strict=True)]
    found, letters = terms[0]
    for number, (x, others) in enumerate(terms[1:], 1):
        later = "".join(name for _, names_left in terms[number + 1 :] for name in names_left)
        found, letters = _contracted(found, letters, x, others, result + later)
    found, letters = _summed(found, letters, result)
    return transpose(found, [letters.index(name) for name in result])
