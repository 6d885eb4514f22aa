"""Values and nodes of a TFLite graph, and values during the lowering of their graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..common.held import Array
from ..common.stages import LoweredTensor
from .contents import OperatorRecord, Quantization, TensorRecord

VariableKey = tuple[str, ...]

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
class TfliteTensor(LoweredTensor[TfliteValue]):
    """A value during the lowering of its graph.

    Attributes:
        quantization: the mapping of its integers to numbers.
        real: the operand of its numbers, if it is quantized, after the first request.
        whole: the operand of its integers as floats, after the first request.
        handle: the key of the variable that the tensor refers to, if it is a resource.
    """

    quantization: Quantization | None = None
    real: MLOperand | None = None
    whole: MLOperand | None = None
    handle: VariableKey | None = None

    @classmethod
    def known(cls, array: Array, quantization: Quantization | None = None, name: str = "") -> TfliteTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array, quantization=quantization, name=name)

    @property
    def is_quantized(self) -> bool:
        """Whether the elements are integers that stand for numbers."""
        return self.quantization is not None and (self.dtype.kind in "iu" or self.dtype.name.lstrip("u").startswith("int"))
