"""The content of constants: arrays made of bytes, numbers and stored tensors."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np

from ..core.data_types import CONSTANT_TYPES, DATA_TYPES, PACKED_TYPES, Array, byte_length, of_tensor_bytes, tensor_bytes
from ..core.errors import quoted
from .document import FileError, Location, TensorDeclaration, element_count
from .weights import PACKED_MARK, StoredTensor

MOST_FILLED = 1 << 28
"""Bytes of a constant that a file of a few bytes may ask for, at most."""


def from_number(declaration: TensorDeclaration, shape: tuple[int, ...], value: int | float) -> Array:
    """Return an array whose elements are all `value`, rounded once to a float type and exact for an integer type."""
    kind = CONSTANT_TYPES[declaration.data_type]
    if byte_length(declaration.data_type, element_count(shape, declaration.location)) > MOST_FILLED:
        raise FileError(
            declaration.location,
            f"the constant '{declaration.name}' is too large to be filled with a number",
            got=f"{declaration.data_type}{list(shape)}",
            allowed=f"at most {MOST_FILLED} bytes",
        )
    if kind.kind != "float":
        low, high = kind.limits
        if isinstance(value, float) and not value.is_integer():
            raise FileError(declaration.location, f"'{declaration.name}' needs an integer", got=str(value))
        if not low <= value <= high:
            raise FileError(
                declaration.location,
                f"the number is out of the range of {declaration.data_type}",
                got=quoted(value),
                allowed=f"{low}..{high}",
            )
        return np.full(shape, int(value), kind.numpy)
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        raise FileError(declaration.location, "the number is out of the range of float64", got=quoted(value))
    return np.full(shape, np.array(value).astype(kind.numpy), kind.numpy)


def holds(data_type: str, value: int | float) -> bool:
    """Return whether a data type has a number without a rounding."""
    kind = CONSTANT_TYPES[data_type]
    if kind.kind == "float":
        return abs(value) <= float(np.finfo(data_type).max) and np.array(value).astype(kind.numpy).item() == value
    low, high = kind.limits
    return (isinstance(value, int) or value.is_integer()) and low <= value <= high


def from_bytes(declaration: TensorDeclaration, shape: tuple[int, ...], data: bytes | Array) -> Array:
    """Return the array of these bytes. Elements of 4 bits are two in a byte, or one in each byte's low half."""
    count, data_type = element_count(shape, declaration.location), declaration.data_type
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    if data_type in PACKED_TYPES and len(raw) == count and count != byte_length(data_type, count):
        nibbles = (raw & 15).astype(np.uint8)
        numbers = np.where(nibbles > 7, nibbles.astype(np.int8) - 16, nibbles) if data_type == "int4" else nibbles
        raw = tensor_bytes(numbers.astype(PACKED_TYPES[data_type].numpy))
    expected = byte_length(data_type, count)
    if len(raw) != expected:
        raise FileError(
            declaration.location,
            f"the constant '{declaration.name}' has the wrong number of bytes",
            got=f"{len(raw)} bytes",
            allowed=f"{expected} bytes for {data_type}{list(shape)}",
        )
    if data_type in PACKED_TYPES:
        return of_tensor_bytes(raw, data_type, count).reshape(shape)
    # Blobs do not align their tensors.
    return np.require(raw.view(DATA_TYPES[data_type].numpy), requirements="A").reshape(shape)


def from_stored(declaration: TensorDeclaration, shape: tuple[int, ...], tensor: StoredTensor, file: Location) -> Array:
    """Return the array of a tensor of a file of weights, which must have the declared type and shape."""
    name, data_type = declaration.name, declaration.data_type
    if data_type in PACKED_TYPES:
        if not tensor.packed:
            raise FileError(
                file,
                f"the tensor of constant '{name}' is not marked as packed {data_type}",
                got=f"{tensor.data_type}{list(tensor.shape)}",
                hint=f'Packed safetensors have "{PACKED_MARK}": "1" in their metadata.',
            )
        return from_bytes(declaration, shape, tensor.data)
    if tensor.data_type == "bfloat16" and data_type == "float32":
        if tensor.shape != shape:
            raise _mismatch(declaration, shape, tensor, file)
        return tensor.data.view(ml_dtypes.bfloat16).astype(np.float32).reshape(shape)
    if (tensor.data_type, tensor.shape) != (data_type, shape):
        raise _mismatch(declaration, shape, tensor, file)
    return from_bytes(declaration, shape, tensor.data)


def _mismatch(declaration: TensorDeclaration, shape: tuple[int, ...], tensor: StoredTensor, file: Location) -> FileError:
    return FileError(
        declaration.location,
        f"the tensor of constant '{declaration.name}' has another type or shape than declared",
        got=f"{tensor.data_type} of shape {list(tensor.shape)} in {file}",
        allowed=f"{declaration.data_type} of shape {list(shape)}",
    )


def to_bytes(array: Array) -> bytes:
    """Return an array's elements in row-major order, little-endian, with two elements of 4 bits in a byte."""
    return tensor_bytes(np.ascontiguousarray(array)).tobytes()
