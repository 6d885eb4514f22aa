"""Initial weights, from numpy's random numbers on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLTypeError


def glorot_uniform(
    shape: Sequence[int], rng: np.random.Generator, *, fan_in: int | None = None, fan_out: int | None = None
) -> NDArray[Any]:
    """Return uniform random weights for layers with a sigmoid, tanh or softmax, by Glorot and Bengio.

    Source: X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010.

    Args:
        shape: the shape of the weights.
        rng: the source of random numbers.
        fan_in: the number of inputs of an output element. None is the first dimension of a matrix.
        fan_out: the number of outputs of an input element. None is the second dimension of a matrix.

    Returns:
        A float32 array.

    Raises:
        MLTypeError: the weights are no matrix, and a number of inputs or outputs is missing.

    Example:
        >>> from webnn_wgpu import train
        >>> weights = train.glorot_uniform([4, 8], np.random.default_rng(0))
        >>> weights.dtype, weights.shape, bool(abs(weights).max() < (6 / 12) ** 0.5)
        (dtype('float32'), (4, 8), True)
    """
    fans = _fan("glorot_uniform", "fan_in", fan_in, shape, 0) + _fan("glorot_uniform", "fan_out", fan_out, shape, 1)
    bound = math.sqrt(6 / fans)
    return rng.uniform(-bound, bound, shape).astype(np.float32)


def he_normal(shape: Sequence[int], rng: np.random.Generator, *, fan_in: int | None = None) -> NDArray[Any]:
    """Return normal random weights for layers with a ReLU, by He and others.

    Source: K. He et al., Delving Deep into Rectifiers, 2015.

    Args:
        shape: the shape of the weights.
        rng: the source of random numbers.
        fan_in: the number of inputs of an output element, such as input channels times elements of a filter. None is the
            first dimension of a matrix.

    Returns:
        A float32 array.

    Raises:
        MLTypeError: the weights are no matrix, and the number of inputs is missing.

    Example:
        >>> from webnn_wgpu import train
        >>> train.he_normal([16, 3, 3, 3], np.random.default_rng(0), fan_in=27).shape
        (16, 3, 3, 3)
    """
    deviation = math.sqrt(2 / _fan("he_normal", "fan_in", fan_in, shape, 0))
    return (deviation * rng.standard_normal(shape)).astype(np.float32)


def _fan(operator: str, name: str, given: int | None, shape: Sequence[int], axis: int) -> int:
    if given is None and len(shape) != 2:
        raise MLTypeError(
            f"{name} must be given for weights that are no matrix", operator=operator, got=f"the shape {list(shape)}"
        )
    return shape[axis] if given is None else given
