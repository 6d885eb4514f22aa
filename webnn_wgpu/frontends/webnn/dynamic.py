"""Inputs as a file declares them, and dynamic dimensions: which sizes of a graph follow them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from webnn_wgpu.formats.document import Document, DynamicDimension, TensorDeclaration

from ..description import ValueInfo

Shape: TypeAlias = tuple[int, ...]


def named_shape(declaration: TensorDeclaration) -> tuple[int | str, ...]:
    """Return a declared shape, with the names of dynamic dimensions."""
    return tuple(d.name if isinstance(d, DynamicDimension) else d for d in declaration.shape)


def declared_inputs(document: Document) -> tuple[ValueInfo, ...]:
    """Return a document's inputs as users see them."""
    return tuple(ValueInfo(d.public_name, named_shape(d), np.dtype(d.data_type)) for d in document.inputs)


def dynamic_dimensions(document: Document) -> dict[str, int]:
    """Return the names of a document's dynamic dimensions, in the order of the inputs, and their largest sizes."""
    found: dict[str, int] = {}
    for declaration in document.inputs:
        for size in declaration.shape:
            if isinstance(size, DynamicDimension):
                found[size.name] = min(size.max_size, found.get(size.name, size.max_size))
    return found


def symbolic(
    limits: Mapping[str, int], sizes: Mapping[str, int], shapes_for: Callable[[Mapping[str, int]], Sequence[Shape]]
) -> list[tuple[int | str | None, ...]]:
    """Return shapes with the names of the dimensions that they follow.

    Args:
        limits: largest sizes of the dynamic dimensions.
        sizes: sizes that are fixed.
        shapes_for: returns the shapes for sizes of all dimensions.

    Returns:
        The shapes. A size that depends on dynamic dimensions and is not one of them is None.

    Example:
        >>> symbolic({"n": 8}, {}, lambda sizes: [(sizes["n"], 3, 2 * sizes["n"])])
        [('n', 3, None)]
    """
    largest = {**limits, **sizes}
    found: list[list[int | str | None]] = [list(shape) for shape in shapes_for(largest)]
    for name in limits.keys() - sizes.keys():
        if limits[name] == 1:
            continue
        other = largest | {name: limits[name] - 1}
        for shape, base, changed in zip(found, shapes_for(largest), shapes_for(other), strict=True):
            for i, (before, after) in enumerate(zip(base, changed, strict=True)):
                if before != after:
                    follows = shape[i] == before and (before, after) == (limits[name], limits[name] - 1)
                    shape[i] = name if follows else None
    return [tuple(shape) for shape in found]
