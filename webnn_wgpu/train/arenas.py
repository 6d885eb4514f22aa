"""Arenas: large tensors that hold many parameters, so that few kernels update all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLGraphBuilder, MLOperand

_ALIGNMENT = 64
"""Each parameter begins at a multiple of 64 elements: 256 bytes, to which every device can bind a part of a buffer."""

_QUAD = 4
"""Elements that a kernel reads and writes at once."""

_MOST_ELEMENTS = 1 << 25
"""Elements of the largest arena of several parameters: 128 MiB, which every device can bind at once."""

_MOST_PARAMETERS = 2048
"""Parameters of an arena at most. The concatenation of their gradients has two operands for each."""


@dataclass(frozen=True)
class Place:
    """The place of a parameter in an arena: the shape, and the number of the first element."""

    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """The number of the first element behind the parameter and its padding."""
        return self.start + -(-self.size // _ALIGNMENT) * _ALIGNMENT


@dataclass(frozen=True)
class Arena:
    """A tensor of one dimension that holds parameters, or a state of each of them, with zeros between them.

    Attributes:
        name: the name of the tensor of the parameters in the graph.
        places: the places of the parameters by name.
    """

    name: str
    places: Mapping[str, Place]

    @property
    def size(self) -> int:
        """The number of elements."""
        return max(place.end for place in self.places.values())

    def split(self, b: MLGraphBuilder, whole: MLOperand) -> dict[str, MLOperand]:
        """Return the parameters as operands, from the tensor of the arena."""
        found: dict[str, MLOperand] = {}
        for name, place in self.places.items():
            part = b.slice(whole, [place.start], [place.size], label=name)
            found[name] = b.reshape(part, place.shape, label=name)
        return found

    def joined(self, b: MLGraphBuilder, parts: Mapping[str, MLOperand]) -> MLOperand:
        """Return the tensor of the arena that holds operands, such as the gradients of the parameters.

        Their producers can store them there if all operands of the concatenation consist of whole quads.
        """
        found: list[MLOperand] = []
        for name, place in self.places.items():
            part, padding = b.reshape(parts[name], [place.size]), place.end - place.start - place.size
            if place.size % _QUAD:
                part, padding = b.pad(part, [0], [padding]), 0
            found.append(part)
            if padding:
                found.append(b.constant(np.zeros(padding, np.float32)))
        return b.concat(found, 0)

    def arrays(self, whole: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Return the parameters as arrays, from the elements of the arena."""
        return {name: whole[place.start : place.start + place.size].reshape(place.shape) for name, place in self.places.items()}


def arenas_of(shapes: Mapping[str, tuple[int, ...]]) -> Sequence[Arena]:
    """Return the arenas of parameters.

    Matrices come first. Products store their gradients in the arena, and the gradients of vectors are copied together.
    """
    groups: list[dict[str, Place]] = []
    end = 0
    for name in sorted(shapes, key=lambda name: len(shapes[name]) < 2):
        place = Place(shapes[name], end)
        if not groups or place.end > _MOST_ELEMENTS or len(groups[-1]) == _MOST_PARAMETERS:
            place = Place(shapes[name], 0)
            groups.append({})
        groups[-1][name] = place
        end = place.end
    return [Arena(f"step/parameters/{i}", places) for i, places in enumerate(groups)]
