"""The inputs of a model's run: their names, and their arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLTensor, MLTypeError

Array = NDArray[Any]

FILES = "Read a file first: numpy.load reads arrays, and webnn_wgpu.frontends.images.image_tensor reads pictures"
"""The hint about inputs that are paths or texts."""

ON_DEVICE = "context.dispatch(model.graph, ...) and context.encode(model.graph, ...) use tensors without a copy to the host"
"""The hint about tensors that cannot be read."""


def check_feeds(feeds: Any, known: Collection[str]) -> None:
    """Check that the argument of `run` maps names of inputs.

    Args:
        feeds: the argument.
        known: the names of the inputs.

    Raises:
        MLTypeError: the argument is no mapping, or has another name.
    """
    if not isinstance(feeds, Mapping):
        rule, hint = "the inputs must be a mapping of name to array", "The inputs come first: run(feeds, outputs)"
        allowed = f"a mapping of {_joined(known)}"
        raise MLTypeError(rule, operator="run", got=type(feeds).__name__, allowed=allowed, hint=hint)
    given: Mapping[Any, Any] = feeds  # pyright: ignore[reportUnknownVariableType] - what a caller passes
    if unknown := set(given).difference(known):
        raise MLTypeError("unknown input", operator="run", got=repr(min(map(str, unknown))), allowed=_joined(known))


def _joined(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def feed_array(value: Any, dtype: np.dtype[Any], name: str, allowed: object) -> Array:
    """Return an input as an array. Lists and numbers are converted if they fit.

    Args:
        value: the input. An array must have the data type.
        dtype: the data type.
        name: the name of the input.
        allowed: the input's information, whose text is for messages alone: each run makes this call.

    Raises:
        MLTypeError: another data type, or elements that do not fit.
    """
    try:
        array: Array = np.asarray(value, None if hasattr(value, "dtype") else dtype)
        if array.dtype == dtype and dtype.kind in "biu" and not hasattr(value, "dtype"):
            natural: Array = np.asarray(value)
            if natural.dtype.kind == "f" and not np.array_equal(natural, array):
                raise ValueError(f"the list has numbers that are not {dtype}")
    except (ValueError, TypeError, OverflowError) as error:
        hint = FILES if isinstance(value, (str, PurePath)) else ON_DEVICE if isinstance(value, MLTensor) else ""
        raise MLTypeError("wrong input", operator="run", got=f"{name}: {error}", allowed=str(allowed), hint=hint) from error
    if array.dtype != dtype:
        hint = f"array.astype('{dtype}') converts it"
        raise MLTypeError("wrong type of input", operator="run", got=f"{name}: {array.dtype}", allowed=str(allowed), hint=hint)
    return array
