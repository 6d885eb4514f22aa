"""Shapes, parts and joins of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Tensor, cast, ops, with_gradient

from ._convert import Axes, TensorLike, as_tensor, axes_of, broadcast, checked_axis, same_type


def reshape(x: TensorLike, shape: Sequence[int]) -> Tensor:
    """Return the elements in another shape.

    Args:
        x: a tensor.
        shape: the dimensions. One of them may be -1: the others determine it.
    """
    given = as_tensor(x)
    sizes = list(shape)
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = given.size // rest if rest else 0
    return ops.reshape(given, sizes)


def cast_(x: TensorLike, dtype: str) -> Tensor:
    """Return the elements in another data type.

    Args:
        x: a tensor.
        dtype: the data type.
    """
    return cast(as_tensor(x), dtype)


def clone(x: TensorLike) -> Tensor:
    """Return another tensor of the same elements.

    Args:
        x: a tensor.
    """
    return ops.identity(as_tensor(x))


def expand_dims(x: TensorLike, axis: int = 0) -> Tensor:
    """Return a tensor with a further dimension of size 1.

    Args:
        x: a tensor.
        axis: the place of the dimension.
    """
    given = as_tensor(x)
    return ops.unsqueeze(given, [axis % (given.ndim + 1)])


def squeeze(x: TensorLike, axis: Sequence[int] | None = None) -> Tensor:
    """Return a tensor without dimensions of size 1.

    Args:
        x: a tensor.
        axis: the dimensions. None is all of size 1.

    Raises:
        MLTypeError: a dimension of another size.
    """
    given = as_tensor(x)
    axes = [i for i, size in enumerate(given.shape) if size == 1] if axis is None else axes_of(given, axis)
    for each in axes:
        if given.shape[each] != 1:
            raise MLTypeError("a dimension must have size 1", operator="squeeze", got=str(each))
    return reshape(given, [size for i, size in enumerate(given.shape) if i not in axes])


def transpose(x: TensorLike, perm: Sequence[int] | None = None) -> Tensor:
    """Return a tensor with its dimensions in another order.

    Args:
        x: a tensor.
        perm: the order. None turns it around.
    """
    given = as_tensor(x)
    return ops.transpose(given, permutation=list(perm) if perm is not None else list(range(given.ndim))[::-1])


def broadcast_to(x: TensorLike, shape: Sequence[int]) -> Tensor:
    """Return the elements repeated to a shape.

    Args:
        x: a tensor.
        shape: the dimensions.
    """
    return ops.expand(as_tensor(x), list(shape))


def ensure_shape(x: TensorLike, shape: Sequence[int | None]) -> Tensor:
    """Return the tensor if it has a shape.

    Args:
        x: a tensor.
        shape: the dimensions, None for any size.

    Raises:
        MLTypeError: the tensor has another shape.
    """
    given = as_tensor(x)
    if len(shape) != given.ndim or any(want not in (None, got) for want, got in zip(shape, given.shape, strict=True)):
        raise MLTypeError("a tensor must have the shape", operator="ensure_shape", got=repr(given), allowed=str(list(shape)))
    return given


def broadcast_args(s0: TensorLike, s1: TensorLike) -> Tensor:
    """Return the shape that two shapes broadcast to.

    Args:
        s0: a shape.
        s1: a shape.
    """
    left, right = as_tensor(s0, "int32"), as_tensor(s1, "int32")
    rank = max(left.size, right.size)
    left, right = (pad(each, [[rank - each.size, 0]], 1) if each.size < rank else each for each in (left, right))
    return ops.where(ops.equal(left, 1), right, left)


def concat(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Return tensors one after the other along an axis.

    Args:
        tensors: the tensors.
        axis: the axis.
    """
    given = same_type(*tensors)
    return ops.concat(given, checked_axis(given[0], axis, "concat"))


def stack(tensors: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Return tensors along a further dimension.

    Args:
        tensors: tensors of one shape.
        axis: the place of the dimension.
    """
    return concat([expand_dims(each, axis) for each in tensors], axis)


def unstack(x: TensorLike, axis: int = 0) -> list[Tensor]:
    """Return the parts of a tensor along a dimension, which they do not have.

    Args:
        x: a tensor.
        axis: the dimension.
    """
    given = as_tensor(x)
    place = checked_axis(given, axis, "unstack")
    parts = ops.split(given, given.shape[place], axis=place)
    return [reshape(part, [*given.shape[:place], *given.shape[place + 1 :]]) for part in parts]


def split(x: TensorLike, num_or_size_splits: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Return parts of a tensor along an axis.

    Args:
        x: a tensor.
        num_or_size_splits: the number of equal parts, or their sizes. One of them may be -1.
        axis: the axis.
    """
    given = as_tensor(x)
    place = checked_axis(given, axis, "split")
    if isinstance(num_or_size_splits, int):
        return ops.split(given, num_or_size_splits, axis=place)
    sizes = list(num_or_size_splits)
    if -1 in sizes:
        sizes[sizes.index(-1)] = given.shape[place] - sum(size for size in sizes if size != -1)
    return ops.split(given, sizes, axis=place)


def slice_(x: TensorLike, begin: int | Sequence[int], size: int | Sequence[int] | None = None) -> Tensor:
    """Return a part of a tensor.

    Args:
        x: a tensor.
        begin: the first index of each dimension. Dimensions without one are complete.
        size: the size in each dimension. -1, and None for all, stands for the rest.
    """
    given = as_tensor(x)
    starts = [begin] if isinstance(begin, int) else list(begin)
    sizes = [] if size is None else [size] if isinstance(size, int) else list(size)
    starts += [0] * (given.ndim - len(starts))
    sizes += [-1] * (given.ndim - len(sizes))
    sizes = [whole - start if size == -1 else size for start, size, whole in zip(starts, sizes, given.shape, strict=True)]
    return ops.slice(given, starts, sizes)


def strided_slice(
    x: TensorLike,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Return every n-th element of a part of a tensor.

    Args:
        x: a tensor.
        begin: the first index of each dimension.
        end: the end in each dimension, which is not included.
        strides: the distances. None is 1 everywhere.
        begin_mask: bits of dimensions that begin at their beginning.
        end_mask: bits of dimensions that end at their end.
        ellipsis_mask: the bit of an entry that stands for all dimensions between.
        new_axis_mask: bits of entries that stand for a further dimension of size 1.
        shrink_axis_mask: bits of dimensions of which one index remains, without the dimension.
    """
    indices: list[Any] = []
    for number, (first, last, step) in enumerate(zip(begin, end, strides or [1] * len(begin), strict=True)):
        bit = 1 << number
        if ellipsis_mask & bit:
            indices.append(...)
        elif new_axis_mask & bit:
            indices.append(None)
        elif shrink_axis_mask & bit:
            indices.append(first)
        else:
            indices.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return as_tensor(x)[tuple(indices)]


def tile(x: TensorLike, reps: Sequence[int]) -> Tensor:
    """Return a tensor repeated along its dimensions.

    Args:
        x: a tensor.
        reps: how often for each dimension.
    """
    return ops.tile(as_tensor(x), list(reps))


def reverse(x: TensorLike, axis: Axes = None) -> Tensor:
    """Return a tensor with elements in the opposite order.

    Args:
        x: a tensor.
        axis: the axes. None is all.
    """
    given = as_tensor(x)
    return ops.reverse(given, axes=axes_of(given, axis))


def pad(x: TensorLike, paddings: Sequence[Sequence[int]], constant_value: float = 0) -> Tensor:
    """Return a tensor with further elements around.

    Args:
        x: a tensor.
        paddings: for each dimension, how many before and after.
        constant_value: the elements.
    """
    given = as_tensor(x)
    return ops.pad(given, [before for before, _ in paddings], [after for _, after in paddings], value=constant_value)


def mirror_pad(x: TensorLike, paddings: Sequence[Sequence[int]], mode: str) -> Tensor:
    """Return a tensor with its own elements mirrored around.

    Args:
        x: a tensor.
        paddings: for each dimension, how many before and after.
        mode: "reflect", which leaves out the elements of the border, or "symmetric", which repeats them.

    Raises:
        MLTypeError: an unknown mode.
    """
    if mode not in ("reflect", "symmetric"):
        raise MLTypeError("mode must be known", operator="mirror_pad", got=repr(mode), allowed="reflect, symmetric")
    found = "reflection" if mode == "reflect" else "symmetric"
    given = as_tensor(x)
    begin = [before for before, _ in paddings]
    result = ops.pad(given, begin, [after for _, after in paddings], mode=found)
    if not given.dtype.startswith("float"):
        return result

    # In TensorFlow.js, the mirrored elements have no part in the gradient.
    def gradient(dy: Tensor) -> Tensor:
        return slice_(dy, begin, given.shape)

    return with_gradient(result, [given], gradient)


def meshgrid(x: TensorLike, y: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid.

    Args:
        x: the first coordinates.
        y: the second coordinates.
        indexing: "xy" for rows of the second coordinate, "ij" for rows of the first.
    """
    first, second = as_tensor(x), as_tensor(y)
    if indexing == "xy":
        return broadcast(reshape(first, [1, -1]), reshape(second, [-1, 1]))
    return broadcast(reshape(first, [-1, 1]), reshape(second, [1, -1]))


def space_to_batch_nd(x: TensorLike, block_shape: Sequence[int], paddings: Sequence[Sequence[int]]) -> Tensor:
    """Return blocks of the dimensions after the first one as a part of the first one.

    Args:
        x: a tensor.
        block_shape: the sizes of a block.
        paddings: zeros before and after, for each dimension.
    """
    given = as_tensor(x)
    blocks, rank = list(block_shape), len(block_shape)
    whole = pad(given, [[0, 0], *paddings, *[[0, 0]] * (given.ndim - 1 - rank)])
    batch, inner, rest = whole.shape[0], whole.shape[1 : 1 + rank], whole.shape[1 + rank :]
    apart = reshape(
        whole, [batch, *[n for size, block in zip(inner, blocks, strict=True) for n in (size // block, block)], *rest]
    )
    order = [*[2 + 2 * i for i in range(rank)], 0, *[1 + 2 * i for i in range(rank)], *range(1 + 2 * rank, apart.ndim)]
    sizes = [size // block for size, block in zip(inner, blocks, strict=True)]
    return reshape(transpose(apart, order), [batch * math.prod(blocks), *sizes, *rest])


def batch_to_space_nd(x: TensorLike, block_shape: Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    """Return parts of the first dimension as blocks of the dimensions after it.

    Args:
        x: a tensor.
        block_shape: the sizes of a block.
        crops: how many elements to leave out before and after, for each dimension.
    """
    given = as_tensor(x)
    blocks, rank = list(block_shape), len(block_shape)
    batch = given.shape[0] // math.prod(blocks)
    inner, rest = given.shape[1 : 1 + rank], given.shape[1 + rank :]
    apart = reshape(given, [*blocks, batch, *inner, *rest])
    order = [rank, *[n for i in range(rank) for n in (rank + 1 + i, i)], *range(2 * rank + 1, apart.ndim)]
    sizes = [size * block for size, block in zip(inner, blocks, strict=True)]
    whole = reshape(transpose(apart, order), [batch, *sizes, *rest])
    starts = [0, *[before for before, _ in crops]]
    kept = [batch, *[size - before - after for size, (before, after) in zip(sizes, crops, strict=True)]]
    return slice_(whole, starts, kept)


def depth_to_space(x: TensorLike, block_size: int, data_format: str = "NHWC") -> Tensor:
    """Return channels as blocks of pixels.

    Args:
        x: a tensor of images.
        block_size: the side of a block.
        data_format: "NHWC" or "NCHW".
    """
    given = as_tensor(x)
    if data_format == "NCHW":
        return transpose(depth_to_space(transpose(given, [0, 2, 3, 1]), block_size), [0, 3, 1, 2])
    batch, height, width, depth = given.shape
    channels = depth // block_size**2
    apart = reshape(given, [batch, height, width, block_size, block_size, channels])
    return reshape(transpose(apart, [0, 1, 3, 2, 4, 5]), [batch, height * block_size, width * block_size, channels])
