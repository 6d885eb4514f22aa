"""ONNX values during the lowering of their graph."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir

from webnn_wgpu import MLOperand

from ..common.calls import OnHost
from .types import Array, DType

__all__ = ["OnHost", "OnnxTensor", "Shape", "ValueNeeded"]

Shape = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class OnnxTensor:
    """A value with known shape and data type, and optionally known elements.

    Attributes:
        shape: its sizes. A size may be 0, which operands do not support.
        dtype: its logical data type.
        array: the elements, if they are known without a run.
        operand: its operand on the device, after the first request of an operator.
        feed: the value that the graph receives at run time, if the tensor is a graph input.
        name: the name of an initializer, or "" of other tensors.
    """

    shape: Shape
    dtype: DType
    array: Array | None = None
    operand: MLOperand | None = None
    feed: onnx_ir.Value | None = None
    name: str = ""

    @classmethod
    def known(cls, array: Array, name: str = "") -> OnnxTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array, name=name)

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


class ValueNeeded(Exception):
    """An operator needs the elements of values that are known only after a run of their producers."""

    def __init__(self, values: tuple[onnx_ir.Value, ...]) -> None:
        super().__init__()
        self.values = values
