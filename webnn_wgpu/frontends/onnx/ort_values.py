"""Values and bindings with onnxruntime's names, for arrays on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu import MLTypeError

from .types import Array, DType

if TYPE_CHECKING:
    from .session import InferenceSession

_TYPE_NAMES = {"float32": "float", "float64": "double", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1"}


def type_name(dtype: DType) -> str:
    """Return a data type in onnxruntime's form, such as "tensor(float)", or "" for an undeclared type."""
    if dtype.kind == "V" and not dtype.itemsize:
        return ""
    name = _TYPE_NAMES.get(dtype.name, dtype.name.replace("float8_", "float8"))
    return f"tensor({name})"


class OrtValue:
    """An array in the form of onnxruntime's tensors.

    Args:
        array: the array. The value refers to it and copies nothing.

    Example:
        >>> from webnn_wgpu.onnx import OrtValue
        >>> value = OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
        >>> value.shape(), value.data_type()
        ([2, 3], 'tensor(float)')
    """

    def __init__(self, array: Array) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """Return the value of an array. It stays on the host, regardless of the requested device.

        Args:
            array: an array or nested sequences of numbers.
            device_type: ignored.
            device_id: ignored.
        """
        return cls(np.asarray(array))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Return a value of zeros.

        Args:
            shape: the sizes.
            element_type: the data type, in any form that numpy accepts.
            device_type: ignored.
            device_id: ignored.
        """
        return cls(np.zeros(shape, element_type))

    def numpy(self) -> Array:
        """Return the array."""
        return self._array

    def shape(self) -> list[int]:
        """Return the sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Return the data type, such as "tensor(float)"."""
        return type_name(self._array.dtype)

    def element_type(self) -> Any:
        """Return the data type as a numpy type."""
        return self._array.dtype

    def device_name(self) -> str:
        """Return "cpu": values stay on the host."""
        return "cpu"

    def is_tensor(self) -> bool:
        """Return True."""
        return True

    def has_value(self) -> bool:
        """Return True."""
        return True

    def update_inplace(self, array: Any) -> None:
        """Overwrite the elements with others of the same shape and data type.

        Args:
            array: the elements.

        Raises:
            MLTypeError: another shape or data type.
        """
        given = np.asarray(array)
        if given.shape != self._array.shape or given.dtype != self._array.dtype:
            raise MLTypeError(
                "the array must be like the value",
                operator="update_inplace",
                got=f"{given.dtype}{list(given.shape)}",
                allowed=f"{self._array.dtype}{self.shape()}",
            )
        self._array = given.copy()


class IOBinding:
    """Inputs and outputs of a session that any number of runs use.

    Args:
        session: the session.

    Example:
        >>> import webnn_wgpu.onnx as ort
        >>> session = ort.InferenceSession(mlp.SerializeToString())
        >>> binding = session.io_binding()
        >>> binding.bind_cpu_input("x", np.zeros((1, 4), np.float32))
        >>> binding.bind_output("y")
        >>> session.run_with_iobinding(binding)
        >>> binding.copy_outputs_to_cpu()[0].shape
        (1, 3)
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """Bind an array to an input.

        Args:
            name: the name of the input.
            array: the array. A run reads the elements that it has at that time.
        """
        self._inputs[name] = OrtValue(np.asarray(array))

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Bind a value to an input. A run reads the elements that the value has at that time.

        Args:
            name: the name of the input.
            value: the value.
        """
        self._inputs[name] = value

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0) -> None:
        """Request an output in a new value.

        Args:
            name: the name of the output.
            device_type: ignored.
            device_id: ignored.
        """
        self._outputs[name] = None

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Request an output in an existing value.

        Args:
            name: the name of the output.
            value: a value of the output's shape and data type, which a run overwrites.
        """
        self._outputs[name] = value

    def clear_binding_inputs(self) -> None:
        """Remove all bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Remove all bound outputs."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Do nothing: values are on the host."""

    def synchronize_outputs(self) -> None:
        """Do nothing: values are on the host."""

    def get_outputs(self) -> list[OrtValue]:
        """Return the outputs of the last run, in the order they were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Return the outputs of the last run as arrays."""
        return [value.numpy() for value in self._results]

    def run(self) -> None:
        """Run the session with the bound values."""
        names = list(self._outputs) or None
        results = self._session.run(names, dict(self._inputs))
        self._results = []
        for name, array in zip(names or [o.name for o in self._session.get_outputs()], results, strict=True):
            own = self._outputs.get(name)
            if own is None:
                own = OrtValue(array)
            else:
                own.update_inplace(array)
            self._results.append(own)
