"""What a model tells of itself: its inputs and outputs, and where its nodes run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx_ir

from webnn_wgpu import NotSupportedError

from .dims import Dimension
from .lowering import Placed
from .types import DType, logical

LARGEST = 2**48
"""No tensor has as many elements."""


NAMED = 3
"""Most nodes of one operator and reason that a summary names."""


@dataclass(frozen=True)
class ValueInfo:
    """An input or output of a model.

    Attributes:
        name: its name.
        shape: sizes; a string is a symbolic dimension, None an unknown one. The whole is None where the rank is unknown.
        dtype: its type, as a numpy dtype; void where the model does not declare the type of an output.
    """

    name: str
    shape: tuple[Dimension, ...] | None
    dtype: DType

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ", ".join("?" if d is None else str(d) for d in self.shape)
        return f"{self.name}: {'?' if self.dtype == np.dtype(np.void) else self.dtype}[{sizes}]"


class Placement(tuple[Placed, ...]):
    """Where each node of a model runs, as a tuple of `Placed`."""

    __slots__ = ()

    def on(self, where: str) -> list[Placed]:
        """Return the nodes at a place: "device", "host" or "folded"."""
        return [p for p in self if p.where == where]

    def summary(self) -> str:
        """Return one line: how many nodes run where, and which on the host."""
        counts = Counter(p.where for p in self)
        text = f"{counts['device']} nodes on the device, {counts['host']} on the host, {counts['folded']} evaluated beforehand"
        text += "".join(f", {counts[where]} {where}" for where in ("unsupported", "later") if counts[where])
        groups: dict[tuple[str, str], list[str]] = {}
        for placed in self.on("host"):
            groups.setdefault((placed.op, placed.note), []).append(f"'{placed.name}'")
        if groups:
            text += "; on the host: " + ", ".join(
                f"{op} {', '.join(names[:NAMED])}{f' and {len(names) - NAMED} more' if len(names) > NAMED else ''} ({note})"
                for (op, note), names in groups.items()
            )
        return text


def value_info(value: onnx_ir.Value, name: str, declared: bool = True) -> ValueInfo:
    """Return what a value is called, its shape and type; refuse what is no tensor of numbers.

    Args:
        value: an input or output.
        name: what messages call the model.
        declared: whether its type must be.
    """
    if value.type is None and not declared:
        return ValueInfo(value.name or "", None, np.dtype(np.void))
    dtype = logical(value.dtype) if value.dtype is not None else None
    if dtype is None or not isinstance(value.type, onnx_ir.TensorType):
        kind = value.type if value.dtype is None else value.dtype.name
        raise NotSupportedError(f"{name}: '{value.name}' is {kind}, not a tensor of numbers")
    if value.shape is None:
        return ValueInfo(value.name or "", None, dtype)
    sizes = [d if isinstance(d, int) else d.value for d in value.shape]
    for d in sizes:
        if isinstance(d, int) and not 0 <= d < LARGEST:
            raise NotSupportedError(f"{name}: '{value.name}' has a size of {d}")
    if math.prod(d for d in sizes if isinstance(d, int) and d) >= LARGEST:
        raise NotSupportedError(f"{name}: '{value.name}' has sizes of {sizes}")
    return ValueInfo(value.name or "", tuple(sizes), dtype)
