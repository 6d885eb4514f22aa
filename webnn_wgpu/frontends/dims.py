"""Sizes of symbolic dimensions: from the application, from a file beside the model, or defaults.

`load` leaves a dimension without a size open, and compiles for the sizes of the inputs at run time. Functions that need sizes
before a run (random inputs, `analyze`) use `DEFAULTS`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
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
"""Sizes of symbolic dimensions by regular expressions for the whole name in lower case. The first match counts. A cache
("past") is empty, as at the beginning of a text."""

OTHERWISE = 1
"""Size of a dimension without a name, or with a name that matches no entry of `DEFAULTS`."""


def sidecar(source: object) -> dict[str, int]:
    """Return the sizes in `NAME.dims.json` beside `NAME.onnx`, or an empty mapping if there is no such file.

    Raises:
        NotSupportedError: the file does not map names to sizes.
    """
    if not isinstance(source, (str, os.PathLike)):
        return {}
    place = Path(os.fspath(source))  # pyright: ignore[reportUnknownArgumentType] - a path of any kind
    path = place.parent / f"{place.stem}.dims.json"
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


def symbols_in(shapes: Iterable[Sequence[Dimension] | None]) -> list[str]:
    """Return the symbolic dimensions of shapes, and the terms of their sums, sorted.

    >>> symbols_in([("batch", "past + sequence"), None, (1, "batch")])
    ['batch', 'past', 'past + sequence', 'sequence']
    """
    symbols = {d for shape in shapes for d in shape or () if isinstance(d, str)}
    return sorted(symbols | {part.strip() for d in symbols for part in d.split("+")})


def default_size(name: str | None) -> int:
    """Return the default size of a symbolic dimension.

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


def assumed(shapes: Iterable[tuple[Sequence[Dimension] | None, Sequence[int]]], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the symbolic dimensions that got a default size, with that size.

    Args:
        shapes: pairs of a declared shape and the shape that it got.
        sizes: the sizes that were given, by name.

    Example:
        >>> from webnn_wgpu.frontends.dims import assumed
        >>> assumed([(("batch", 3, "h", "w"), (1, 3, 224, 64))], {"w": 64})
        {'batch': 1, 'h': 224}
    """
    pairs = ((d, size) for shape, settled in shapes for d, size in zip(shape or (), settled, strict=False))
    return {d: size for d, size in pairs if isinstance(d, str) and d not in sizes and "+" not in d}


def settle(shape: Sequence[Dimension] | None, sizes: Mapping[str, int], what: str = "the input") -> tuple[int, ...]:
    """Return a shape with a size for each dimension.

    Args:
        shape: sizes, names and unknown dimensions. None, an unknown rank, is an error.
        sizes: the sizes of names. A name such as "past + sequence" is the sum of its parts.
        what: the name of the tensor in messages.

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
