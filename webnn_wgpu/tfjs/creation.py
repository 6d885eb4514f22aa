"""Tensors made of numbers, and tensors of equal elements, sequences and random numbers."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLGraphBuilder, MLOperand, MLTypeError
from webnn_wgpu.eager import Tensor, apply, cast, ops
from webnn_wgpu.eager import tensor as eager_tensor

from ._convert import TensorLike, as_tensor


def tensor(values: TensorLike, shape: Sequence[int] | None = None, dtype: str | None = None) -> Tensor:
    """Return a tensor of given elements.

    Args:
        values: numbers, nested lists, or an array.
        shape: the dimensions. None is those of the values.
        dtype: the data type. None is float32 for numbers, int32 for integers of numpy's arrays, and "bool" for truth values.

    Raises:
        MLTypeError: a shape that does not fit the values.
    """
    if shape is None:
        return as_tensor(values, dtype)
    if isinstance(values, Tensor):
        return ops.reshape(as_tensor(values, dtype), list(shape))
    array = np.asarray(values)
    if array.size != math.prod(shape):
        raise MLTypeError(
            "the shape must fit the values", operator="tensor", got=str(list(shape)), allowed=f"{array.size} elements"
        )
    return as_tensor(array.reshape(shape) if isinstance(values, np.ndarray) else array.reshape(shape).tolist(), dtype)


_RANKED = """Return a tensor of {} dimensions.

Args:
    values: as for `tensor`.
    shape: as for `tensor`.
    dtype: as for `tensor`.

Raises:
    MLTypeError: values of another rank.
"""


def _ranked(rank: int) -> Any:
    def call(values: TensorLike, shape: Sequence[int] | None = None, dtype: str | None = None) -> Tensor:
        found = tensor(values, shape, dtype)
        if found.ndim != rank:
            raise MLTypeError(
                "the values must have the rank", operator=f"tensor{rank}d", got=str(found.ndim), allowed=str(rank)
            )
        return found

    call.__doc__ = _RANKED.format(rank)
    return call


tensor1d, tensor2d, tensor3d, tensor4d = (_ranked(rank) for rank in range(1, 5))


def scalar(value: float | bool, dtype: str | None = None) -> Tensor:
    """Return a tensor without dimensions.

    Args:
        value: the element.
        dtype: the data type.
    """
    return as_tensor(value, dtype)


def fill(shape: Sequence[int], value: float | bool, dtype: str | None = None) -> Tensor:
    """Return a tensor of equal elements.

    Args:
        shape: the dimensions.
        value: the element.
        dtype: the data type.
    """
    found = as_tensor(value, dtype)
    return ops.expand(found, list(shape)) if len(shape) else found


def zeros(shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """Return a tensor of zeros.

    Args:
        shape: the dimensions.
        dtype: the data type.
    """
    return fill(shape, 0, dtype)


def ones(shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: the dimensions.
        dtype: the data type.
    """
    return fill(shape, 1, dtype)


def zeros_like(x: TensorLike) -> Tensor:
    """Return zeros in the shape and data type of a tensor.

    Args:
        x: the tensor.
    """
    given = as_tensor(x)
    return zeros(given.shape, given.dtype)


def ones_like(x: TensorLike) -> Tensor:
    """Return ones in the shape and data type of a tensor.

    Args:
        x: the tensor.
    """
    given = as_tensor(x)
    return ones(given.shape, given.dtype)


def constant(array: npt.ArrayLike, key: object) -> Tensor:
    """Return a tensor that is a constant of the compiled graph.

    Args:
        array: the elements.
        key: names the elements.
    """
    elements = np.asarray(array)

    def compose(b: MLGraphBuilder) -> MLOperand:
        return b.identity(b.constant(elements))

    return apply(compose, key=("constant", key, str(elements.dtype), elements.shape))


def eye(num_rows: int, num_columns: int | None = None, batch_shape: Sequence[int] = (), dtype: str = "float32") -> Tensor:
    """Return a matrix with ones on its diagonal.

    Args:
        num_rows: the number of rows.
        num_columns: the number of columns. None is the number of rows.
        batch_shape: the dimensions before, along which the matrix repeats.
        dtype: the data type.
    """
    columns = num_rows if num_columns is None else num_columns
    found = cast(constant(np.eye(num_rows, columns, dtype=np.float32), ("eye", num_rows, columns)), dtype)
    return ops.expand(found, [*batch_shape, num_rows, columns]) if batch_shape else found


def linspace(start: float, stop: float, num: int) -> Tensor:
    """Return numbers in even distances.

    Args:
        start: the first number.
        stop: the last number.
        num: how many.
    """
    return eager_tensor(np.linspace(start, stop, num, dtype=np.float32))


def range_(start: float, stop: float, step: float = 1, dtype: str = "float32") -> Tensor:
    """Return the numbers start, start + step, ... before stop.

    Args:
        start: the first number.
        stop: the end, which is not included.
        step: the distance.
        dtype: the data type.
    """
    distance = -step if stop < start and step == 1 else step
    return eager_tensor(np.arange(start, stop, distance), dtype)


def one_hot(indices: TensorLike, depth: int, on_value: float = 1, off_value: float = 0, dtype: str = "int32") -> Tensor:
    """Return a row for each index, which has one value at the index and another one elsewhere.

    Args:
        indices: integers.
        depth: the length of the rows.
        on_value: the value at the index.
        off_value: the value elsewhere.
        dtype: the data type.
    """
    places = ops.unsqueeze(as_tensor(indices, "int32"), [-1 % (as_tensor(indices).ndim + 1)])
    hit = ops.equal(places, constant(np.arange(depth, dtype=np.int32), ("range", depth)))
    return ops.where(hit, as_tensor(on_value, dtype), as_tensor(off_value, dtype))


def diag(x: TensorLike) -> Tensor:
    """Return a tensor with the elements on its diagonal, and zeros elsewhere.

    Args:
        x: the elements. The result has each dimension twice.
    """
    given = as_tensor(x)
    size = given.size
    square = ops.reshape(given, [1, size]) * cast(eye(size), given.dtype)
    return ops.reshape(square, [*given.shape, *given.shape])


def _key(seed: int | None) -> Tensor:
    """Return the key of random numbers. None is another one at each call."""
    number = secrets.randbits(64) if seed is None else int(seed) % (1 << 64)
    return eager_tensor(np.array([number >> 32, number & 0xFFFFFFFF], np.uint32))


def random_normal(
    shape: Sequence[int], mean: float = 0, std_dev: float = 1, dtype: str = "float32", seed: int | None = None
) -> Tensor:
    """Return numbers of a normal distribution.

    Args:
        shape: the dimensions.
        mean: the mean.
        std_dev: the standard deviation.
        dtype: the data type.
        seed: calls with one seed return the same numbers. They differ from those of TensorFlow.js.
    """
    return cast(ops.ext.random_normal(_key(seed), list(shape), mean=mean, deviation=std_dev), dtype)


def random_uniform(
    shape: Sequence[int], minval: float = 0, maxval: float = 1, dtype: str = "float32", seed: int | None = None
) -> Tensor:
    """Return numbers of a uniform distribution.

    Args:
        shape: the dimensions.
        minval: the lower bound.
        maxval: the upper bound, which is not included.
        dtype: the data type.
        seed: calls with one seed return the same numbers. They differ from those of TensorFlow.js.
    """
    return cast(ops.ext.random_uniform(_key(seed), list(shape), low=minval, high=maxval), dtype)


def dropout(x: TensorLike, rate: float, noise_shape: Sequence[int] | None = None, seed: int | None = None) -> Tensor:
    """Return a tensor of which random elements are 0, and the others are larger by as much.

    Args:
        x: the tensor.
        rate: the share of elements that become 0.
        noise_shape: the dimensions of the random choices, which broadcast.
        seed: calls with one seed make the same choices.
    """
    given = as_tensor(x)
    if rate == 0:
        return ops.identity(given)
    if noise_shape is None:
        return ops.ext.dropout(given, _key(seed), rate)
    kept = random_uniform(noise_shape, seed=seed) >= rate
    return given * ops.where(kept, as_tensor(1 / (1 - rate)), as_tensor(0.0))
