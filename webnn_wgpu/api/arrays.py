"""The conversion of tensor data from callers to arrays of the declared type: the specification's buffer check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from ..core.data_types import (
    CONSTANT_TYPES,
    DATA_TYPES,
    MAX_DIMENSION,
    MAX_RANK,
    PACKED_TYPES,
    numpy_dtype,
    of_tensor_bytes,
)
from ..core.errors import MLTypeError
from ..ir.graph import Array
from ..ir.types import TensorType

Fail = Callable[..., Exception]


def to_array(data: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    """Return `data` as a C-contiguous array of the wanted type.

    Args:
        data: an array or an object with the buffer protocol, `__array__` or `__dlpack__` on the CPU. Raw bytes (`bytes`, or any
            uint8 array) are valid for every data type, uint16 for the bits of float16. The number of elements must match, but
            not the shape. Lists and plain numbers are converted if they fit.
        wanted: the type of the tensor.
        fail: returns the error to raise.
        what: the name in messages.

    Returns:
        An array that may share the caller's memory. Packed data types have one element to a byte in it.
    """
    if type(data) is np.ndarray and data.shape == wanted.shape and data.dtype == wanted.numpy and data.flags.c_contiguous:
        return data  # The general way would come to the same, at several times the cost.
    if isinstance(data, list | tuple | int | float) and not isinstance(data, bool):
        return _checked(_from_numbers(data, wanted, fail, what), wanted, fail, what)
    return _checked(as_array(data, fail, what), wanted, fail, what)


def as_array(data: Any, fail: Fail, what: str) -> Array:
    """Return the array of an object other than a list, without a copy where possible.

    Raises:
        MLTypeError: the object is no array, or its memory is not accessible to the host.
    """
    try:
        if isinstance(data, bytes | bytearray):
            return np.frombuffer(data, np.uint8)
        if hasattr(data, "__array__"):
            return np.asarray(data)
        if hasattr(data, "__dlpack__"):
            return np.from_dlpack(data)
        return np.asarray(memoryview(data))
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise fail(
            f"{what} must be tensor data in the host's memory",
            got=f"{_kind(data)} ({error})",
            allowed="a numpy array, bytes, an object with the buffer protocol, __array__ or __dlpack__, a list or a number",
        ) from None


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
            hint=f"array.astype('{dtype}') converts it",
        )
    packed = wanted.data_type in PACKED_TYPES and array.dtype == dtype
    if array.size != wanted.num_elements if packed else array.nbytes != wanted.size_bytes:
        raise fail(
            f"{what} must have exactly the tensor's bytes: Shape mismatch",
            got=f"{array.dtype}{list(array.shape)} of {array.nbytes} bytes",
            allowed=f"{wanted} of {wanted.size_bytes} bytes",
        )
    flat = np.ascontiguousarray(array).reshape(-1)
    if wanted.data_type in PACKED_TYPES and not packed:
        flat = of_tensor_bytes(flat, wanted.data_type, wanted.num_elements)
    return (flat if flat.dtype == dtype else flat.view(dtype)).reshape(wanted.shape)


def _from_numbers(data: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    try:
        found: Array = np.asarray(data)
        array: Array = np.asarray(data, dtype=wanted.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise fail(f"{what} does not fit the tensor's data type: {error}", allowed=str(wanted)) from error
    # numpy parses strings, converts None to NaN and drops fractions. Older versions wrap values out of range.
    numbers = found.dtype.kind in "biuf" or all(isinstance(n, int) for n in found.reshape(-1).tolist())
    packed = wanted.data_type in PACKED_TYPES
    exact = CONSTANT_TYPES[wanted.data_type].kind == "float" or np.array_equal(
        array.astype(np.int64) if packed else array, found
    )
    if not numbers or not exact:
        raise fail(f"{what} does not fit the tensor's data type", got=_shortened(data), allowed=str(wanted))
    return array


def _is_value(data: object) -> bool:
    return isinstance(data, list | tuple | int | float | bytes | np.generic)


def _kind(value: object) -> str:
    return type(value).__name__


def _shortened(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 80 else f"{text[:77]}..."


def output_array(given: Any, wanted: TensorType, fail: Fail, what: str) -> Array:
    """Return the memory of a caller's array as bytes, for the elements of an output.

    Args:
        given: an array of the output's data type and number of elements, or of its bytes (uint8, or uint16 for float16).
        wanted: the type of the output.
        fail: returns the error to raise.
        what: the name in messages.

    Raises:
        MLTypeError: the argument is no array of the output's type and size, is read-only, or is not C-contiguous.
    """
    if _is_value(given):
        raise fail(f"{what} must be an array to write into", got=_kind(given), allowed="numpy.ndarray")
    found = as_array(given, fail, what)
    if not found.flags.writeable or not found.flags.c_contiguous:
        raise fail(f"{what} must be writable and C-contiguous", got="a read-only or strided array")
    raw = found.dtype == np.uint8 or (found.dtype == np.uint16 and wanted.data_type == "float16")
    if not (found.dtype == wanted.numpy or raw) or found.nbytes != wanted.size_bytes:
        raise fail(
            f"{what} must have the output's data type and size", got=f"{found.dtype}{list(found.shape)}", allowed=str(wanted)
        )
    return found.reshape(-1).view(np.uint8)


def fill(memory: Array, array: Array) -> None:
    """Copy an array into memory that `output_array` returned."""
    memory[:] = array.reshape(-1).view(np.uint8)


def check_apart(outputs: Mapping[str, Array], fail: Fail) -> None:
    """Raise MLTypeError if two outputs share memory."""
    names = list(outputs)
    for i, name in enumerate(names):
        for other in names[:i]:
            # The arrays are contiguous, so that a comparison of their bounds is sufficient.
            if np.may_share_memory(outputs[name], outputs[other]):
                raise fail("two outputs share memory", got=f"'{other}' and '{name}'")


def check_names(wanted: Mapping[str, TensorType], given: Any, what: str, fail: Fail, *, subset: bool = False) -> None:
    """Raise MLTypeError unless `given` maps the names of a graph's inputs or outputs.

    Args:
        wanted: the graph's inputs or outputs.
        given: the caller's argument.
        what: "input" or "output".
        fail: returns the error to raise.
        subset: whether names may be missing.
    """
    if not isinstance(given, Mapping):
        raise fail(f"{what}s must be a mapping of name to tensor data", got=type(given).__name__)
    names: list[Any] = list(given)  # pyright: ignore[reportUnknownArgumentType] - keys are checked below
    allowed = ", ".join(wanted) or "none"
    for name in names:
        if name not in wanted:
            raise fail(f"the graph has no {what} of this name", got=repr(name), allowed=allowed)
    missing = [name for name in wanted if name not in names]
    if missing and not subset:
        raise fail(f"the graph's {what} '{missing[0]}' is missing", got=", ".join(names) or "none", allowed=allowed)


def parse_descriptor(
    descriptor: Any, fail: Fail, *, shape_required: bool = True, allowed: Collection[str] = DATA_TYPES
) -> tuple[TensorType, dict[str, bool]]:
    """Return the tensor type of a descriptor mapping, and its flags (`readable`, `writable`, `exportable_to_gpu`).

    Keys may be camelCase or snake_case. `dimensions` is the 2024 name of `shape`.

    Raises:
        MLTypeError: a key, data type or dimension is invalid.
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
    if shape is not None and dimensions is not None and _dims(shape, fail) != _dims(dimensions, fail):
        raise fail("shape and dimensions differ", got=f"shape={shape}, dimensions={dimensions}")
    shape = dimensions if shape is None else shape
    if shape is None:
        if shape_required:
            raise fail("a descriptor must have a shape", allowed="a list of sizes, [] for a scalar")
        shape = ()
    if "data_type" not in found:
        raise fail("a descriptor must have a dataType", allowed=", ".join(allowed))
    data_type = found.pop("data_type")
    return tensor_type(data_type, shape, fail, allowed), {k: bool(v) for k, v in found.items()}


def descriptor_or_shape(
    descriptor: Any, data_type: Any, shape: Any, dtype: Any, fail: Fail, *, shape_required: bool = True
) -> tuple[TensorType, dict[str, bool]]:
    """Return type and flags from a descriptor, or from shape and data type under one of their names."""
    if isinstance(descriptor, Mapping):
        if any(other is not None for other in (data_type, shape, dtype)):
            raise fail("a descriptor states shape and data type", got="a descriptor and a shape or data type")
        return parse_descriptor(descriptor, fail, shape_required=shape_required)
    if (descriptor is not None and shape is not None) or (data_type is not None and dtype is not None):
        raise fail(
            "shape and data type must be given once each",
            got="a descriptor and a shape" if shape is not None else "data_type and dtype",
        )
    return tensor_type(data_type or dtype, shape if descriptor is None else descriptor, fail), {}


def tensor_type(data_type: Any, shape: Any, fail: Fail, allowed: Collection[str] = DATA_TYPES) -> TensorType:
    """Return a checked tensor type of one of the `allowed` data types.

    Raises:
        MLTypeError: the data type is unknown, a dimension is not in 1..2^31-1, or there are too many dimensions or elements.
    """
    name = data_type if isinstance(data_type, str) else _name_of_dtype(data_type)
    if name not in allowed:
        rule = f"{name} is a data type of constants alone" if name in CONSTANT_TYPES else "unknown data type"
        raise fail(rule, got=repr(data_type), allowed=", ".join(allowed))
    dims: list[int] = []
    for dim in _dims(shape, fail):
        if not is_integer(dim) or not 0 < dim <= MAX_DIMENSION:
            raise fail("every dimension must be a valid dimension", got=f"shape={shape}", allowed=f"1..{MAX_DIMENSION}")
        dims.append(int(dim))
    found = TensorType(str(name), tuple(dims))
    if found.rank > MAX_RANK:
        raise fail("rank is not supported", got=f"{found} of rank {found.rank}", allowed=f"rank 0..{MAX_RANK}")
    if found.num_elements > MAX_DIMENSION:
        raise fail("element count must be a valid dimension", got=f"{found}", allowed=f"1..{MAX_DIMENSION} elements")
    return found


def _name_of_dtype(data_type: Any) -> str:
    named: Any = data_type  # np.float32, np.dtype("float32"). np.dtype(None) is float64.
    try:
        return "" if named is None else np.dtype(named).name
    except (TypeError, ValueError):
        return ""


def is_integer(value: object) -> bool:
    """Return whether a value is an int or a numpy integer, but no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _dims(shape: Any, fail: Fail) -> list[Any]:
    if is_integer(shape):
        return [shape]
    try:
        if not isinstance(shape, str | bytes):
            return list(shape)
    except TypeError:
        pass
    raise fail("shape must be a list of dimensions", got=repr(shape))


def type_of_array(array: Array, fail: Fail) -> TensorType:
    """Return the tensor type of an array for a constant, if WebNN has its data type."""
    if array.dtype == np.float64:  # numpy's default
        hint = "array.astype('float32') converts it"
        raise fail("unknown data type", got=repr("float64"), allowed=", ".join(CONSTANT_TYPES), hint=hint)
    return tensor_type(array.dtype.name, array.shape, fail, CONSTANT_TYPES)


def failing(operator: str, label: str = "") -> Fail:
    """Return a function that creates MLTypeErrors with the name of an operation."""

    def fail(rule: str, *, got: str = "", allowed: str = "", hint: str = "") -> MLTypeError:
        return MLTypeError(rule, operator=operator, label=label, got=got, allowed=allowed, hint=hint)

    return fail


def zeros(wanted: TensorType) -> Array:
    """Return an array of zeros of a type."""
    return np.zeros(wanted.shape, numpy_dtype(wanted.data_type))
