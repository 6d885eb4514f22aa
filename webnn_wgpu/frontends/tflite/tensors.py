"""Values and nodes of a TFLite graph, and values during the lowering of their graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..common.held import HELD, Array, DType, decode, encode
from .contents import OperatorRecord, Quantization, TensorRecord

Shape = tuple[int, ...]
VariableKey = tuple[str, ...]

COMPLEX64 = np.dtype(np.complex64)
PACKED = (np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4))
"""Types whose constants the device reads in packed form."""


@dataclass(eq=False, slots=True, kw_only=True)
class TfliteValue:
    """A tensor of one use of a subgraph.

    Attributes:
        record: the tensor in the file.
        subgraph: the index of its subgraph.
        variable: the key of its elements, if they are kept from run to run.
    """

    record: TensorRecord
    subgraph: int
    variable: VariableKey | None = None

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.record.name


@dataclass(eq=False, slots=True, kw_only=True)
class TfliteNode:
    """An operator of one use of a subgraph.

    Attributes:
        record: the operator in the file.
        subgraph: the index of its subgraph.
        inputs: its inputs, None for absent ones.
        outputs: its outputs.
    """

    record: OperatorRecord
    subgraph: int
    inputs: tuple[TfliteValue | None, ...]
    outputs: tuple[TfliteValue, ...]

    @property
    def label(self) -> str:
        """The name in messages: the name of the first output."""
        return (self.outputs[0].name if self.outputs else "") or f"{self.record.name}_{self.record.index}"


@dataclass(slots=True, kw_only=True)
class TfliteGraph:
    """One use of a subgraph."""

    nodes: Sequence[TfliteNode]
    inputs: Sequence[TfliteValue]
    outputs: Sequence[TfliteValue]
    values: Sequence[TfliteValue]


@dataclass(slots=True, kw_only=True)
class TfliteTensor:
    """A value with known shape and data type, and optionally known elements.

    Attributes:
        shape: its sizes. A size may be 0, which operands do not support.
        dtype: its logical data type.
        quantization: the mapping of its integers to numbers.
        array: the elements, if they are known without a run.
        operand: its operand on the device, after the first request of an operator.
        real: the operand of its numbers, if it is quantized, after the first request.
        feed: the value that the graph receives at run time, if the tensor is a graph input.
        handle: the key of the variable that the tensor refers to, if it is a resource.
    """

    shape: Shape
    dtype: DType
    quantization: Quantization | None = None
    array: Array | None = None
    operand: MLOperand | None = None
    real: MLOperand | None = None
    feed: TfliteValue | None = None
    handle: VariableKey | None = None

    @classmethod
    def known(cls, array: Array, quantization: Quantization | None = None) -> TfliteTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array, quantization=quantization)

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

    @property
    def is_quantized(self) -> bool:
        """Whether the elements are integers that stand for numbers."""
        return self.quantization is not None and (self.dtype.kind in "iu" or self.dtype.name.lstrip("u").startswith("int"))


class ValueNeeded(Exception):
    """An operator needs the elements of a value that is known only after a run of its producer."""

    def __init__(self, value: TfliteValue) -> None:
        super().__init__()
        self.value = value


def held_type(dtype: DType) -> str:
    """Return the WebNN data type that holds a logical type. Complex numbers are pairs of floats."""
    return "float32" if dtype == COMPLEX64 else HELD[dtype]


def held_shape(shape: Shape, dtype: DType) -> Shape:
    """Return the shape of the operand of a tensor: complex numbers have a last dimension of 2."""
    return (*shape, 2) if dtype == COMPLEX64 else shape


def encoded(array: Array) -> Array:
    """Convert an array from its logical to its held type."""
    if array.dtype == COMPLEX64:
        return np.ascontiguousarray(array)[..., None].view(np.float32)
    return encode(array)


def decoded(array: Array, dtype: DType) -> Array:
    """Convert an array that the device computed to its logical type."""
    if dtype == COMPLEX64:
        return np.ascontiguousarray(array).view(np.complex64)[..., 0]
    return decode(array, dtype)
