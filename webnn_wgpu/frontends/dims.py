"""Symbolic dimensions and the sizes they get: given ones, those of a file beside the model, and defaults.

`load` leaves a dimension without a size open, and compiles for the sizes that inputs have at run time. What needs sizes
beforehand (random inputs, `analyze`) takes `DEFAULTS`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from webnn_wgpu import MLTypeError, NotSupportedError

Dimension = int | str | None

DEFAULTS: tuple[tuple[str, int], ...] = (
    (r"past.*", 0),
    (r"total_?seq.*", 128),
    (r".*(batch|bs).*|n", 1),
    (r".*(seq|len|time|token|text|frames?|steps?).*|s|t|l", 128),
    (r".*(channels?).*|c", 3),
    (r".*(height|width|size).*|h|w", 224),
)
"""Sizes of symbolic dimensions by their names, as regular expressions for the whole name in lower case; the first that
matches counts. A cache ("past") is empty, as when a text begins."""

OTHERWISE = 1
"""Size of a dimension whose name says nothing, or that has no name."""


def sidecar(source: object) -> dict[str, int]:
    """Return the sizes that `NAME.dims.json` beside `NAME.onnx` gives; none if there is no such file.

    Raises:
        NotSupportedError: the file does not map names to sizes.
    """
    if not isinstance(source, (str, os.PathLike)):
        return {}
    path = Path(os.fspath(source)).with_suffix(".dims.json")  # pyright: ignore[reportUnknownArgumentType] - a path of any kind
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NotSupportedError(f"{path.name} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise NotSupportedError(f"{path.name} must map names of dimensions to sizes")
    members = cast("dict[str, Any]", content)
    sizes: Any = members.get("freeDimensionOverrides", members)
    if not isinstance(sizes, dict) or not all(type(v) is int and v >= 0 for v in cast("dict[str, Any]", sizes).values()):
        raise NotSupportedError(f"{path.name} must map names of dimensions to sizes")
    return cast("dict[str, int]", sizes)


def default_size(name: str | None) -> int:
    """Return the size that a symbolic dimension has where nothing says otherwise.

    Example:
        >>> from webnn_wgpu.frontends.dims import default_size
        >>> default_size("batch_size"), default_size("sequence_length"), default_size("past_sequence_length")
        (1, 128, 0)
    """
    size = usual_size(name)
    return OTHERWISE if size is None else size


def usual_size(name: str | None) -> int | None:
    """Return the size that is usual for the name of a dimension; None if the name says nothing."""
    lowered = (name or "").lower()
    return next((size for pattern, size in DEFAULTS if re.fullmatch(pattern, lowered)), None)


def settle(shape: Sequence[Dimension] | None, sizes: Mapping[str, int], what: str = "the input") -> tuple[int, ...]:
    """Return a shape with a size for each dimension.

    Args:
        shape: sizes, names and unknown dimensions. None, an unknown rank, is refused.
        sizes: sizes of names. A name such as "past + sequence" is the sum of its parts.
        what: what messages call the tensor.

    Raises:
        MLTypeError: the rank is not known.

    Example:
        >>> from webnn_wgpu.frontends.dims import settle
        >>> settle(("batch", "past + seq", 64), {"seq": 5, "past": 3})
        (1, 8, 64)
    """
    if shape is None:
        raise MLTypeError(f"the rank of {what} is not known", hint="Give it an array or a shape")

    def size(name: str) -> int:
        if name in sizes:
            return sizes[name]
        parts = [part.strip() for part in name.split("+")]
        if len(parts) > 1 and all(parts):
            return sum(int(part) if part.isdecimal() else size(part) for part in parts)
        return default_size(name)

    return tuple(d if isinstance(d, int) else OTHERWISE if d is None else size(d) for d in shape)
