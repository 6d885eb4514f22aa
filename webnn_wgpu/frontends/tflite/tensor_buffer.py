"""`TensorBuffer`: LiteRT's name for the memory of an input or an output of a compiled model."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..common.held import Array
from .details import InterpreterRuntimeError, InterpreterValueError

TYPES = frozenset(
    np.dtype(t)
    for t in (
        *("float32", "float16", "int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8", "bool", "complex64"),
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    )
)
"""The data types of elements that buffers are written from and read as."""


class TensorBuffer:
    """The elements of an input or an output, in the memory of the host.

    `CompiledModel` creates buffers, and `create_from_host_memory` makes one of an array.

    Args:
        array: the elements. The buffer uses the array's memory.

    Example:
        >>> from webnn_wgpu.tflite import TensorBuffer
        >>> buffer = TensorBuffer.create_from_host_memory(np.zeros((2, 2), np.float32))
        >>> buffer.write(np.float32([1, 2]))
        >>> buffer.read(3, np.float32)
        array([1., 2., 0.], dtype=float32)
    """

    def __init__(self, array: Array) -> None:
        self._array: Array | None = array

    @classmethod
    def create_from_host_memory(cls, data_array: Array) -> TensorBuffer:
        """Return a 1-D buffer over the memory of an array.

        Args:
            data_array: a C-contiguous array of any shape.

        Raises:
            ValueError: no array, another data type, or elements that are not next to each other.
        """
        _check(data_array)
        if not data_array.flags.c_contiguous:
            raise InterpreterValueError("data_array must be C-contiguous for zero-copy host-memory binding")
        return cls(data_array.reshape(-1))

    @property
    def array(self) -> Array:
        """The elements, without a copy.

        Raises:
            ValueError: the buffer is destroyed.
        """
        if self._array is None:
            raise InterpreterValueError("TensorBuffer has been destroyed")
        return self._array

    def write(self, data_array: Array) -> None:
        """Copy the bytes of an array to the beginning of the buffer.

        Args:
            data_array: an array of any shape, with at most as many bytes as the buffer.

        Raises:
            ValueError: no array, or another data type.
            RuntimeError: the array has more bytes than the buffer.
        """
        _check(data_array)
        data: Array = np.ascontiguousarray(data_array).reshape(-1).view(np.uint8)
        held = self._bytes()
        if data.size > held.size:
            raise InterpreterRuntimeError(
                f"WriteTensorBuffer: the source has {data.size} bytes, more than the {held.size} of the tensor buffer"
            )
        held[: data.size] = data

    def read(self, num_elements: int, output_dtype: Any) -> Array:
        """Return a copy of the first elements, 1-D.

        Args:
            num_elements: the number of elements.
            output_dtype: the data type as which the buffer's bytes are read.

        Raises:
            ValueError: another data type.
            RuntimeError: the buffer has fewer bytes.
        """
        dtype = _dtype_of(output_dtype)
        held, needed = self._bytes(), num_elements * dtype.itemsize
        if not 0 <= needed <= held.size:
            raise InterpreterRuntimeError(
                f"ReadTensorToBuffer: {num_elements} elements of {dtype} take more than the {held.size} bytes of the buffer"
            )
        return held[:needed].copy().view(dtype)

    def get_tensor_details(self) -> dict[str, Any]:
        """Return the name of the data type and the shape."""
        return {"dtype": self.array.dtype.name, "shape": list(self.array.shape)}

    def destroy(self) -> None:
        """Release the memory. The buffer cannot be used afterwards."""
        self._array = None

    def _bytes(self) -> Array:
        return self.array.reshape(-1).view(np.uint8)


def _check(array: object) -> None:
    if not isinstance(array, np.ndarray):
        raise InterpreterValueError("data_array must be a NumPy array")
    _dtype_of(array.dtype)  # pyright: ignore[reportUnknownMemberType] - an array of any type


def _dtype_of(dtype: Any) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise InterpreterValueError(f"Unsupported dtype: {dtype}") from error
    if found not in TYPES:
        raise InterpreterValueError(f"Unsupported dtype: {dtype}")
    return found
