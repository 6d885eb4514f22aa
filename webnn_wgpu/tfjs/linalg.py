"""Linear algebra: TensorFlow.js's namespace `linalg`."""

from __future__ import annotations

from collections.abc import Sequence

from webnn_wgpu.eager import Tensor, ops

from ._convert import TensorLike, as_floats
from .arrays import stack, unstack


def band_part(a: TensorLike, num_lower: int, num_upper: int) -> Tensor:
    """Return matrices with zeros away from the diagonal.

    Args:
        a: matrices.
        num_lower: how many diagonals below it stay. A negative number stands for all.
        num_upper: how many diagonals above it stay. A negative number stands for all.
    """
    found = as_floats(a)
    if num_lower >= 0:
        found = ops.triangular(found, upper=True, diagonal=-num_lower)
    return ops.triangular(found, upper=False, diagonal=num_upper) if num_upper >= 0 else found


def gram_schmidt(xs: TensorLike | Sequence[Tensor]) -> Tensor | list[Tensor]:
    """Return orthogonal vectors of length 1 that span the same spaces.

    Args:
        xs: vectors, as a list or as the rows of a matrix.
    """
    items = list(xs) if isinstance(xs, Sequence) and not isinstance(xs, str | bytes) else []
    listed = [each for each in items if isinstance(each, Tensor)]
    rows = listed or unstack(as_floats(xs))
    found: list[Tensor] = []
    for row in rows:
        rest = row
        for each in found:
            rest = rest - ops.reduce_sum(each * rest) * each
        found.append(rest / ops.reduce_l2(rest))
    return found if listed else stack(found)
