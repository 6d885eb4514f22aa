"""The descriptions of tensors and operators that `Interpreter` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_wgpu import WebNNError

from ..common.held import Array
from .contents import OperatorRecord, SubgraphRecord, TensorRecord


class InterpreterValueError(WebNNError, ValueError):
    """An argument of the interpreter that is wrong, as a ValueError of LiteRT."""


class InterpreterRuntimeError(WebNNError, RuntimeError):
    """A call of the interpreter that is out of order, or a model that cannot run, as a RuntimeError of LiteRT."""


def type_of(record: TensorRecord) -> type[Any]:
    """Return a tensor's numpy class, for strings that of bytes."""
    return np.bytes_ if record.dtype is None else record.dtype.type


def quantization_of(record: TensorRecord) -> dict[str, Any]:
    """Return scales, zero points, their dimension and the size of blocks."""
    found = record.quantization
    if found is None:
        return {
            "scales": np.zeros(0, np.float32),
            "zero_points": np.zeros(0, np.int32),
            "quantized_dimension": 0,
            "block_size": 0,
        }
    return {
        "scales": np.array(found.scales, np.float32),
        "zero_points": np.array(found.zero_points, np.int32),
        "quantized_dimension": found.axis,
        "block_size": found.block_size,
    }


def tensor_details(record: TensorRecord, shape: Sequence[int]) -> dict[str, Any]:
    """Return the description of a tensor with its current shape."""
    found = record.quantization
    whole = found is not None and found.is_whole
    return {
        "name": record.name,
        "index": record.index,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(record.signature if record.signature is not None else shape, np.int32),
        "dtype": type_of(record),
        "quantization": (found.scale, found.zero_point) if found is not None and whole else (0.0, 0),
        "quantization_parameters": quantization_of(record),
        "sparsity_parameters": sparsity_of(record),
    }


def sparsity_of(record: TensorRecord) -> dict[str, Any]:
    """Return the storage of a sparse tensor, an empty dictionary for others."""
    if record.sparsity is None:
        return {}
    levels: list[dict[str, Any]] = []
    for level in record.sparsity.levels:
        if level.segments is None or level.indices is None:
            levels.append({"format": 0, "dense_size": level.size})
        else:
            levels.append({"format": 1, "array_segments": level.segments, "array_indices": level.indices})
    return {
        "traversal_order": np.array(record.sparsity.order, np.int32),
        "block_map": np.array(record.sparsity.blocked, np.int32),
        "dim_metadata": levels,
    }


def operator_details(subgraph: SubgraphRecord, record: OperatorRecord) -> dict[str, Any]:
    """Return the description of an operator."""
    present = [i for i in record.inputs if i >= 0]
    return {
        "index": record.index,
        "op_name": record.name,
        "inputs": np.array(record.inputs, np.int32),
        "outputs": np.array(record.outputs, np.int32),
        "operand_types": [type_of(subgraph.tensors[i]) for i in present],
        "result_types": [type_of(subgraph.tensors[i]) for i in record.outputs],
    }


def checked_value(record: TensorRecord, shape: Sequence[int], value: Any) -> Array:
    """Return a value for a tensor as an array of its own.

    Raises:
        InterpreterValueError: the value has another type, rank or shape.
    """
    array: Array = np.array(value)
    what = f"input {record.index}, name: {record.name}"
    if record.dtype is None or array.dtype != record.dtype:
        wanted = record.type_name.upper()
        raise InterpreterValueError(
            f"Cannot set tensor: Got value of type {array.dtype.name.upper()} but expected type {wanted} for {what}"
        )
    if array.ndim != len(shape):
        raise InterpreterValueError(
            f"Cannot set tensor: Dimension mismatch. Got {array.ndim} but expected {len(shape)} for {what}"
        )
    for i, (size, expected) in enumerate(zip(array.shape, shape, strict=True)):
        if size != expected:
            raise InterpreterValueError(
                f"Cannot set tensor: Dimension mismatch. Got {size} but expected {expected} for dimension {i} of {what}"
            )
    return array
