"""`keras.ops`'s encodings of classes, and losses of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import backend

from . import core
from .activations import log_sigmoid, log_softmax
from .elementwise import equal, floating
from .movement import axis_of, expand_dims, squeeze
from .reductions import max as largest
from .reductions import sum as total
from .tensor import Tensor, call, cast, of_array


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """A one at the place of each class, in a further dimension."""
    if sparse:
        raise ValueError("Unsupported value `sparse=True` with webnn backend")
    found = core.convert_to_tensor(x, "int32")
    rank = found.ndim + 1
    place = axis_of(axis, rank)
    classes = of_array(np.arange(num_classes).reshape([-1 if n == place else 1 for n in range(rank)]), "int32")
    return core.cast(equal(expand_dims(found, place), classes), dtype or backend.floatx())


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> Tensor:
    """Ones at the places of all classes."""
    found = core.convert_to_tensor(x)
    return largest(one_hot(found, num_classes, axis, dtype, sparse), 1 if found.ndim > 1 else 0)


def _log_shares(output: Tensor, axis: int) -> Tensor:
    """Return the logarithm of probabilities that may not add up to one."""
    shares = output / total(output, axis, keepdims=True)
    small = backend.epsilon()
    return call("log", call("clamp", shares, min_value=small, max_value=1.0 - small))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of distributions."""
    wanted, found = core.convert_to_tensor(target), floating(output)
    if wanted.shape != found.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    if not wanted.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    logarithm = log_softmax(found, axis) if from_logits else _log_shares(found, axis)
    return -total(cast(wanted, found.dtype) * logarithm, axis)


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of classes."""
    wanted, found = core.convert_to_tensor(target, "int32"), floating(output)
    if wanted.ndim == found.ndim and wanted.shape[-1] == 1:
        wanted = squeeze(wanted, -1)
    if not found.ndim:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={found.shape}")
    if wanted.shape != found.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={wanted.shape}, output.shape={found.shape}"
        )
    logarithm = log_softmax(found, axis) if from_logits else _log_shares(found, axis)
    return -total(one_hot(wanted, found.shape[axis], axis, found.dtype) * logarithm, axis)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of truth values."""
    wanted, found = core.convert_to_tensor(target), floating(output)
    if wanted.shape != found.shape:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. "
            f"Received: target.shape={wanted.shape}, output.shape={found.shape}"
        )
    wanted = cast(wanted, found.dtype)
    if from_logits:
        return -(wanted * log_sigmoid(found)) - (1.0 - wanted) * log_sigmoid(-found)
    small = backend.epsilon()
    found = call("clamp", found, min_value=small, max_value=1.0 - small)
    return -(wanted * call("log", found) + (1.0 - wanted) * call("log", 1.0 - found))
