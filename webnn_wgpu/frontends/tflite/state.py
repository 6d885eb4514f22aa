"""The variables of a model, whose elements stay on the device from run to run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from webnn_wgpu import MLContext, MLTensor

from ..common.held import Array, DType, Shape, decode, encode, held_shape, held_type
from .contents import Quantization
from .tensors import VariableKey


class Variables:
    """The variables of a model on a context.

    A run reads a variable from one tensor and writes its new elements to another. Then the two change places.

    Args:
        context: where the tensors are.
    """

    def __init__(self, context: MLContext) -> None:
        self._context = context
        self._tensors: dict[VariableKey, tuple[MLTensor, Shape, DType]] = {}
        self._declared: dict[VariableKey, tuple[Shape, DType]] = {}
        self._spare: dict[VariableKey, MLTensor] = {}

    def types(self) -> Mapping[VariableKey, tuple[Shape, DType]]:
        """Return the shapes and types of the variables that have elements, and of those that are declared."""
        return self._declared | {key: (shape, dtype) for key, (_, shape, dtype) in self._tensors.items()}

    def declare(self, key: VariableKey, shape: Shape, dtype: DType) -> None:
        """Give a variable a shape and a type without elements, for lowerings that are never run."""
        self._declared[key] = (shape, dtype)

    def __contains__(self, key: VariableKey) -> bool:
        return key in self._tensors

    def tensor(self, key: VariableKey, shape: Shape, dtype: DType, quantization: Quantization | None = None) -> MLTensor:
        """Return the tensor of a variable's elements, which are 0 before its first assignment."""
        if key not in self._tensors:
            # TFLite fills variables of 8 bits with the low byte of their zero point, others with zero bytes.
            fill = quantization.zero_point if quantization is not None and dtype == np.dtype(np.int8) else 0
            self.set(key, np.full(shape, np.int64(fill).astype(dtype), dtype))
        return self._tensors[key][0]

    def target(self, key: VariableKey, shape: Shape, dtype: DType) -> MLTensor:
        """Return the tensor for a variable's new elements."""
        spare = self._spare.pop(key, None)
        if spare is not None and tuple(spare.shape) == held_shape(shape, dtype) and spare.data_type == held_type(dtype):
            return spare
        if spare is not None:
            spare.destroy()
        return self._create(shape, dtype)

    def commit(self, key: VariableKey, tensor: MLTensor, shape: Shape, dtype: DType) -> None:
        """Make a tensor of `target` the variable's elements."""
        old = self._tensors.get(key)
        if old is not None:
            self._spare[key] = old[0]
        self._tensors[key] = (tensor, shape, dtype)

    def get(self, key: VariableKey) -> Array | None:
        """Return a variable's elements, None before its first use."""
        if key not in self._tensors:
            return None
        tensor, _, dtype = self._tensors[key]
        return decode(np.asarray(self._context.read_tensor(tensor)), dtype)

    def set(self, key: VariableKey, array: Array) -> None:
        """Give a variable elements."""
        tensor = self.target(key, array.shape, array.dtype)
        self._context.write_tensor(tensor, encode(array))
        self.commit(key, tensor, array.shape, array.dtype)

    def _create(self, shape: Shape, dtype: DType) -> MLTensor:
        return self._context.create_tensor(
            held_shape(shape, dtype),
            held_type(dtype),  # pyright: ignore[reportArgumentType]
            readable=True,
            writable=True,
        )

    def reset(self) -> None:
        """Forget all elements: the variables are 0, or without elements, at the next run."""
        for tensor in (*self._spare.values(), *(t for t, _, _ in self._tensors.values())):
            tensor.destroy()
        self._tensors.clear()
        self._spare.clear()
