"""A subgraph of TFLite's runtime as the contents of a file, which the importer lowers."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...common.held import DType
from ..constants import BITS
from ..contents import OperatorRecord, Quantization, SubgraphRecord, TensorRecord, TfliteFile
from ..module import CustomLowering, TfliteModule
from ..reading import CUSTOM, OPERATOR_NAMES, TYPES
from ..tensors import TfliteNode
from .layouts import AFFINE, BLOCKWISE, MEMORY_CONSTANT, RuntimeContext, TfliteAffineStruct, floats_at, ints_at, text_at
from .parameters import parameters_at

TYPE_NAMES = {
    1: "float32",
    2: "int32",
    3: "uint8",
    4: "int64",
    5: "string",
    6: "bool",
    7: "int16",
    8: "complex64",
    9: "int8",
    10: "float16",
    11: "float64",
    12: "complex128",
    13: "uint64",
    14: "resource",
    15: "variant",
    16: "uint32",
    17: "uint16",
    18: "int4",
    19: "bfloat16",
}
"""The runtime's numbers of data types, which are not those of the file."""

DTYPES: dict[str, DType | None] = dict(TYPES.values())
"""Data types by their names in files."""

FOREIGN = ("resource", "variant", "string")
"""Types whose values only the runtime can read."""


@dataclass(kw_only=True)
class RuntimeFile(TfliteFile):
    """A subgraph of the runtime. Its buffers are addresses and sizes of the runtime's constants, one for each tensor.

    Attributes:
        faults: the reasons why tensors cannot leave the runtime, by their numbers.
    """

    faults: dict[int, str] = field(default_factory=dict[int, str])

    def bytes_of(self, buffer: int) -> memoryview:
        """Return a copy of a constant's bytes, which outlives the runtime's model."""
        address, size = self.buffers[buffer]
        return memoryview(ctypes.string_at(address, size))


class RuntimeModule(TfliteModule):
    """A subgraph of the runtime and the meaning of its nodes. The runtime's kernels run all nodes for the host.

    Args:
        file: the subgraph.
        custom_operators: functions that lower custom operators, by name.
        wide_float16: whether float16 values between nodes are stored as float32.
    """

    def __init__(self, file: RuntimeFile, custom_operators: Mapping[str, CustomLowering], wide_float16: bool) -> None:
        super().__init__(file, "error", custom_operators, wide_float16)
        self.faults = file.faults

    def refuse_host(self, node: TfliteNode, reason: str) -> None:
        """Leave a node for the host to the runtime.

        Raises:
            NotSupportedError: always.
        """
        raise self.refusal(node, reason)


def snapshot(context: RuntimeContext) -> RuntimeFile:
    """Return the subgraph of a context, whose operators have the numbers of the runtime's nodes."""
    buffers: list[tuple[int, int]] = [(0, 0)]
    faults: dict[int, str] = {}
    tensors: list[TensorRecord] = []
    for index in range(context.num_tensors):
        tensor = context.tensor(index)
        constant = tensor.allocation_type == MEMORY_CONSTANT and tensor.data and tensor.bytes
        buffers.append((tensor.data, tensor.bytes) if constant else (0, 0))
        record = _tensor(index, tensor)
        tensors.append(record)
        fault = _fault(record, tensor, bool(constant))
        if fault:
            faults[index] = fault
    operators = tuple(_operator(index, *context.node(index)) for index in context.execution_plan())
    subgraph = SubgraphRecord(index=0, name="", tensors=tuple(tensors), operators=operators, inputs=(), outputs=())
    return RuntimeFile(
        name="the interpreter's model", path=None, data=memoryview(b""), subgraphs=[subgraph], buffers=buffers, faults=faults
    )


def _tensor(index: int, tensor: Any) -> TensorRecord:
    type_name = TYPE_NAMES.get(tensor.type, f"type {tensor.type}")
    shape = ints_at(tensor.dims)
    signature = ints_at(tensor.dims_signature)
    return TensorRecord(
        index=index,
        name=text_at(tensor.name),
        type_name=type_name,
        dtype=DTYPES.get(type_name),
        shape=tuple(max(d, 0) for d in shape),
        signature=signature if len(signature) == len(shape) else shape,
        buffer=index + 1,
        is_variable=bool(tensor.is_variable),
        quantization=_quantization(tensor),
    )


def _quantization(tensor: Any) -> Quantization | None:
    if tensor.quantization_type != AFFINE or not tensor.quantization_params:
        return None
    params: Any = TfliteAffineStruct.from_address(tensor.quantization_params)
    scales, points = floats_at(params.scale), ints_at(params.zero_point)
    if not scales:
        return None
    if len(points) != len(scales):
        points = (points or (0,))[:1] * len(scales)
    return Quantization(
        scales=np.array(scales, np.float32), zero_points=np.array(points, np.int64), axis=max(params.quantized_dimension, 0)
    )


def _fault(record: TensorRecord, tensor: Any, constant: bool) -> str:
    """Return why a tensor cannot leave the runtime, "" if it can."""
    where = f"tensor {record.index} ('{record.name}')"
    if record.type_name in FOREIGN:
        return f"{where} has the type {record.type_name}, whose values stay in the runtime"
    if tensor.sparsity:
        return f"{where} is sparse"
    if tensor.quantization_type >= BLOCKWISE:
        return f"{where} has a scale per block"
    if record.dtype in BITS and not constant:
        return f"{where} has the type {record.type_name} and is no constant"
    return ""


def _operator(index: int, node: Any, registration: Any) -> OperatorRecord:
    name = OPERATOR_NAMES.get(registration.builtin_code, f"operator {registration.builtin_code}")
    custom = name == CUSTOM
    size = node.custom_initial_data_size if node.custom_initial_data else 0
    return OperatorRecord(
        index=index,
        name=text_at(registration.custom_name) if custom else name,
        custom=custom,
        version=max(registration.version, 1),
        inputs=ints_at(node.inputs),
        outputs=ints_at(node.outputs),
        intermediates=ints_at(node.intermediates),
        options=None if custom else parameters_at(name, node.builtin_data),
        custom_options=ctypes.string_at(node.custom_initial_data, size) if custom and size > 0 else b"",
    )
