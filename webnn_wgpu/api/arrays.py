"""What callers hand over as tensor data, made into arrays of the declared type: the specification's buffer check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.data_types import DATA_TYPES, MAX_DIMENSION, MAX_RANK, numpy_dtype
from ..core.errors import MLTypeError
from ..ir.graph import Array
from ..ir.types import TensorType

Fail = Callable[..., Exception]


def to_array(data: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    """Return `data` as a C-contiguous array of the wanted type.

    Args:
        data: an array or anything with the buffer protocol, `__array__` or `__dlpack__` on the CPU; raw bytes (`bytes`, or any
            uint8 array) stand for every type, uint16 for float16 bits. The shape need not agree, the number of elements must.
            Lists and plain numbers are converted.
        wanted: type of the tensor.
        fail: makes the error to raise.
        what: name for messages.

    Returns:
        An array that may share the caller's memory.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        raw = np.frombuffer(data, np.uint8) if not isinstance(data, memoryview) or data.contiguous else np.asarray(data)
        array = raw if isinstance(data, bytes | bytearray) else np.asarray(data)
    elif isinstance(data, list | tuple | int | float) and not isinstance(data, bool):
        array = _from_numbers(data, wanted, fail, what)
    elif isinstance(data, np.ndarray | np.generic) or hasattr(data, "__array__"):
        array = np.asarray(data)
    elif hasattr(data, "__dlpack__"):
        array = np.from_dlpack(data)
    else:
        try:
            array = np.asarray(memoryview(data))
        except TypeError:
            raise fail(f"{what} must be an array, bytes or a list", got=type(data).__name__, allowed=f"{wanted}") from None
    return _checked(array, wanted, fail, what)


def _checked(array: Array, wanted: TensorType, fail: Fail, what: str) -> Array:
    native = array.dtype.newbyteorder("=")
    if array.dtype != native:
        array = array.astype(native)
    dtype = wanted.numpy
    raw = array.dtype == np.uint8 or (array.dtype == np.uint16 and dtype == np.float16)
    if array.dtype != dtype and not raw:
        raise fail(
            f"{what} must have the tensor's data type",
            got=f"{array.dtype} array of shape {list(array.shape)}",
            allowed=f"{wanted.data_type}, or uint8 for raw bytes",
        )
    if array.nbytes != wanted.size_bytes:
        raise fail(
            f"{what} must have exactly the tensor's bytes: Shape mismatch",
            got=f"{array.dtype}{list(array.shape)} of {array.nbytes} bytes",
            allowed=f"{wanted} of {wanted.size_bytes} bytes",
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    return (flat if flat.dtype == dtype else flat.view(dtype)).reshape(wanted.shape)


def _from_numbers(data: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    try:
        return np.asarray(data, dtype=wanted.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise fail(f"{what} does not fit the tensor's data type: {error}", allowed=str(wanted)) from error


def output_array(array: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    """Return an array of the caller's that an output can be written into.

    Raises:
        MLTypeError: not an array of the output's type and size, read-only, or not C-contiguous.
    """
    if not isinstance(array, np.ndarray):
        raise fail(f"{what} must be a numpy array to write into", got=type(array).__name__)
    found: Array = array
    if not found.flags.writeable or not found.flags.c_contiguous:
        raise fail(f"{what} must be writable and C-contiguous", got="a read-only or strided array")
    if found.dtype != wanted.numpy or found.nbytes != wanted.size_bytes:
        raise fail(
            f"{what} must have the output's data type and size", got=f"{found.dtype}{list(found.shape)}", allowed=str(wanted)
        )
    return found


def parse_descriptor(descriptor: Any, fail: Fail, *, shape_required: bool = True) -> tuple[TensorType, dict[str, bool]]:
    """Return the type a descriptor mapping states, and its flags (`readable`, `writable`, `exportable_to_gpu`).

    Keys may be camelCase or snake_case; `dimensions` is the 2024 name of `shape`.

    Raises:
        MLTypeError: an unknown key, data type or dimension.
    """
    if not isinstance(descriptor, Mapping):
        raise fail("a descriptor must be a mapping with dataType and shape", got=type(descriptor).__name__)
    keys = {
        "dataType": "data_type",
        "data_type": "data_type",
        "type": "data_type",
        "shape": "shape",
        "dimensions": "dimensions",
        "readable": "readable",
        "writable": "writable",
        "exportableToGPU": "exportable_to_gpu",
        "exportable_to_gpu": "exportable_to_gpu",
    }
    found: dict[str, Any] = {}
    for key, value in dict[str, Any](descriptor).items():  # pyright: ignore[reportUnknownArgumentType] - any mapping
        if key not in keys:
            raise fail(f"unknown descriptor key {key!r}", allowed="dataType, shape, readable, writable, exportableToGPU")
        found[keys[key]] = value
    shape, dimensions = found.pop("shape", None), found.pop("dimensions", None)
    if shape is not None and dimensions is not None and list(shape) != list(dimensions):
        raise fail("shape and dimensions differ", got=f"shape={shape}, dimensions={dimensions}")
    shape = dimensions if shape is None else shape
    if shape is None:
        if shape_required:
            raise fail("a descriptor must have a shape")
        shape = ()
    if "data_type" not in found:
        raise fail("a descriptor must have a dataType", allowed=", ".join(DATA_TYPES))
    data_type = found.pop("data_type")
    return tensor_type(data_type, shape, fail), {k: bool(v) for k, v in found.items()}


def tensor_type(data_type: Any, shape: Any, fail: Fail) -> TensorType:
    """Return a checked tensor type.

    Raises:
        MLTypeError: unknown data type, a dimension that is not 1..2^31-1, too many dimensions or elements.
    """
    if isinstance(data_type, np.dtype | type):
        data_type = np.dtype(data_type).name
    if not isinstance(data_type, str) or data_type not in DATA_TYPES:
        raise fail("unknown data type", got=repr(data_type), allowed=", ".join(DATA_TYPES))
    try:
        items = [shape] if isinstance(shape, int) else list(shape)
    except TypeError:
        raise fail("shape must be a list of dimensions", got=repr(shape)) from None
    dims: list[int] = []
    for dim in items:
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or not 0 < dim <= MAX_DIMENSION:
            raise fail("every dimension must be a valid dimension", got=f"shape={items}", allowed=f"1..{MAX_DIMENSION}")
        dims.append(int(dim))
    found = TensorType(str(data_type), tuple(dims))
    if found.rank > MAX_RANK:
        raise fail("rank is not supported", got=f"{found} of rank {found.rank}", allowed=f"rank 0..{MAX_RANK}")
    if found.num_elements > MAX_DIMENSION:
        raise fail("element count must be a valid dimension", got=f"{found}", allowed=f"1..{MAX_DIMENSION} elements")
    return found


def type_of_array(array: Array, fail: Fail) -> TensorType:
    """Return the tensor type of an array, if it is one of WebNN's."""
    return tensor_type(array.dtype.name, array.shape, fail)


def failing(operator: str, label: str = "") -> Fail:
    """Return a maker of MLTypeErrors that name an operation."""

    def fail(rule: str, *, got: str = "", allowed: str = "", hint: str = "") -> MLTypeError:
        return MLTypeError(rule, operator=operator, label=label, got=got, allowed=allowed, hint=hint)

    return fail


def zeros(wanted: TensorType) -> Array:
    """Return an array of zeros of a type."""
    return np.zeros(wanted.shape, numpy_dtype(wanted.data_type))
