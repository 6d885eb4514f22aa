"""Products of matrices, and norms."""

from __future__ import annotations

import math

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, ops

from ._convert import Axes, TensorLike, as_floats, axes_of
from .arrays import reshape, transpose


def mat_mul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Return the product of matrices.

    Args:
        a: matrices.
        b: matrices. Dimensions before those of the matrices broadcast.
        transpose_a: whether the first matrices are transposed.
        transpose_b: whether the second matrices are transposed.
    """
    left, right = as_floats(a), as_floats(b)
    return ops.matmul(_turned(left) if transpose_a else left, _turned(right) if transpose_b else right)


def _turned(x: Tensor) -> Tensor:
    return transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def dot(t1: TensorLike, t2: TensorLike) -> Tensor:
    """Return the product of two vectors or matrices.

    Args:
        t1: a vector or matrix.
        t2: a vector or matrix.
    """
    left, right = as_floats(t1), as_floats(t2)
    found = ops.matmul(
        reshape(left, [1, -1]) if left.ndim == 1 else left, reshape(right, [-1, 1]) if right.ndim == 1 else right
    )
    return reshape(found, [*left.shape[: left.ndim - 1], *right.shape[1:]])


def outer_product(v1: TensorLike, v2: TensorLike) -> Tensor:
    """Return the products of all elements of two vectors.

    Args:
        v1: a vector.
        v2: a vector.
    """
    return reshape(as_floats(v1), [-1, 1]) * reshape(as_floats(v2), [1, -1])


def norm(x: TensorLike, ord: float | str = "euclidean", axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Return norms of vectors, or of matrices along two axes.

    Args:
        x: a tensor.
        ord: 1, 2, infinity, minus infinity, "euclidean", or "fro" for matrices.
        axis: the axes. None takes all elements as one vector.
        keep_dims: whether the axes stay, with size 1.

    Raises:
        MLTypeError: a norm that is unknown for the number of axes.
    """
    given = as_floats(x)
    if axis is None:
        found = norm(reshape(given, [-1]), ord, 0)
        return reshape(found, [1] * given.ndim) if keep_dims else found
    axes = axes_of(given, axis)
    if ord in ("euclidean", "fro") or (ord == 2 and len(axes) == 1):
        return ops.reduce_l2(given, axes=axes, keep_dimensions=keep_dims)
    sizes = ops.abs(given)
    if ord not in (1, math.inf, -math.inf) or len(axes) > 2:
        raise MLTypeError("the norm must be known for the number of axes", operator="norm", got=f"{ord!r} of {len(axes)} axes")
    if len(axes) == 2:
        inner, outer = axes if ord == 1 else axes[::-1]
        sizes = ops.reduce_sum(sizes, axes=[inner], keep_dimensions=True)
        reduce = ops.reduce_min if ord == -math.inf else ops.reduce_max
        sizes = reduce(sizes, axes=[outer], keep_dimensions=True)
        return sizes if keep_dims else reshape(sizes, [size for i, size in enumerate(given.shape) if i not in axes])
    reduce = {1: ops.reduce_sum, math.inf: ops.reduce_max, -math.inf: ops.reduce_min}[ord]  # type: ignore[index]
    return reduce(sizes, axes=axes, keep_dimensions=keep_dims)


def euclidean_norm(x: TensorLike, axis: Axes = None, keep_dims: bool = False) -> Tensor:
    """Return lengths of vectors.

    Args:
        x: a tensor.
        axis: the axes. None takes all elements as one vector.
        keep_dims: whether the axes stay, with size 1.
    """
    return norm(x, "euclidean", axis, keep_dims)


def einsum(equation: str, *tensors: TensorLike) -> Tensor:
    """Return sums of products by a formula such as "ij,jk->ik".

    Args:
        equation: a letter for each dimension of each tensor, and those of the result.
        tensors: the tensors.

    Raises:
        MLTypeError: an equation that does not fit the tensors.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    labels = inputs.split(",")
    given = [as_floats(each) for each in tensors]
    if (
        not arrow
        or len(labels) != len(given)
        or any(len(a) != b.ndim or len(set(a)) != len(a) for a, b in zip(labels, given, strict=False))
    ):
        raise MLTypeError(
            "the equation must fit the tensors", operator="einsum", got=repr(equation), allowed=f"{len(given)} tensors"
        )
    found, letters = given[0], labels[0]
    for number, (other, names) in enumerate(zip(given[1:], labels[1:], strict=True), 1):
        later = set(output).union(*labels[number + 1 :])
        found, letters = _pair(found, letters, other, names, later)
    return _summed(found, letters, output)


def _summed(x: Tensor, letters: str, output: str) -> Tensor:
    """Return sums over the letters that the result does not have, in the order of the result."""
    lost = [i for i, letter in enumerate(letters) if letter not in output]
    found = ops.reduce_sum(x, axes=lost) if lost else x
    left = "".join(letter for letter in letters if letter in output)
    return found if left == output else transpose(found, [left.index(letter) for letter in output])


def _pair(a: Tensor, a_letters: str, b: Tensor, b_letters: str, later: set[str]) -> tuple[Tensor, str]:
    """Return the product of two tensors as one product of matrices, and the letters of its dimensions."""
    own = "".join(letter for letter in a_letters if letter in b_letters or letter in later)
    other = "".join(letter for letter in b_letters if letter in a_letters or letter in later)
    a, b = _summed(a, a_letters, own), _summed(b, b_letters, other)
    sizes = dict(zip(own, a.shape, strict=True)) | dict(zip(other, b.shape, strict=True))
    batch = "".join(letter for letter in own if letter in other and letter in later)
    inner = "".join(letter for letter in own if letter in other and letter not in later)
    rows = "".join(letter for letter in own if letter not in other)
    columns = "".join(letter for letter in other if letter not in own)

    def joined(x: Tensor, letters: str, *groups: str) -> Tensor:
        turned = transpose(x, [letters.index(letter) for letter in "".join(groups)]) if x.ndim else x
        return reshape(turned, [math.prod(sizes[letter] for letter in group) for group in groups])

    product = ops.matmul(joined(a, own, batch, rows, inner), joined(b, other, batch, inner, columns))
    letters = batch + rows + columns
    return reshape(product, [sizes[letter] for letter in letters]), letters
