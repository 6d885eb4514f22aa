"""Shape arithmetic shared by operators: broadcasting, strides, merging of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape both broadcast to, or None if they do not.

    >>> broadcast((2, 1, 4), (3, 1)), broadcast((2,), (3,))
    ((2, 3, 4), None)
    """
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        return None
    return tuple(max(x, y) for x, y in zip(a, b, strict=True))


def unidirectional(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Return whether `shape` broadcasts to exactly `target`."""
    return len(shape) <= len(target) and broadcast(shape, target) == tuple(target)


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, in elements.

    >>> strides_of((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Return the strides with which `shape` is read at indices of `target`: 0 along dimensions it is repeated over."""
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    return tuple(0 if d == 1 else s for d, s in zip(padded, strides_of(padded), strict=True))


def merge_dimensions(
    dims: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge neighboring dimensions that every operand traverses as one dimension, and drop dimensions of size 1.

    Args:
        dims: the sizes of the index space.
        strides: the strides of each operand along every dimension.

    Returns:
        The smaller index space (at least one dimension) and the operands' strides in it.

    >>> merge_dimensions((2, 3, 4), [(12, 4, 1), (0, 0, 1)])
    ((6, 4), ((4, 1), (0, 1)))
    """
    new_dims: list[int] = []
    new_strides: list[list[int]] = [[] for _ in strides]
    for i, dim in enumerate(dims):
        if dim == 1:
            continue
        if new_dims and all(mine[-1] == s[i] * dim for mine, s in zip(new_strides, strides, strict=True)):
            new_dims[-1] *= dim
            for mine, s in zip(new_strides, strides, strict=True):
                mine[-1] = s[i]
        else:
            new_dims.append(dim)
            for mine, s in zip(new_strides, strides, strict=True):
                mine.append(s[i])
    if not new_dims:
        return (1,), tuple((0,) for _ in strides)
    return tuple(new_dims), tuple(tuple(s) for s in new_strides)
