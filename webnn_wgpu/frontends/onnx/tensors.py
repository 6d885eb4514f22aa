"""What an ONNX value is while its graph is lowered."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir

from webnn_wgpu import MLOperand

from .types import Array, DType

Shape = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class OnnxTensor:
    """A value whose shape and type are known, and perhaps its elements.

    Attributes:
        shape: its sizes; a size may be 0, which no operand can have.
        dtype: its logical type.
        array: the elements, where they are known without running anything.
        operand: what holds it on the device, as soon as an operator asked for it.
        feed: the value that is given to the graph at run time, where the tensor is one.
    """

    shape: Shape
    dtype: DType
    array: Array | None = None
    operand: MLOperand | None = None
    feed: onnx_ir.Value | None = None

    @classmethod
    def known(cls, array: Array) -> OnnxTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for d in self.shape:
            count *= d
        return count


class OnHost(Exception):
    """An operator cannot run on the device; `str()` says why. The host evaluates it."""


class ValueNeeded(Exception):
    """An operator needs the elements of values that are known only when what computes them has run."""

    def __init__(self, values: tuple[onnx_ir.Value, ...]) -> None:
        super().__init__()
        self.values = values
