"""`Tensors`, the part of `MLContext` that creates, writes and reads tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ..core.data_types import CONSTANT_TYPES
from ..core.errors import InvalidStateError, MLTensorStateError, UnknownError
from ..ir.graph import Array, frozen_array
from ..ir.types import TensorType
from .arrays import descriptor_or_shape, failing, fill, output_array, parse_descriptor, tensor_type, to_array
from .context_state import ContextState
from .graph import MLGraph
from .promise import MLPromise, promised
from .pywebnn import MLDeviceTensor
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext
    from .types import DataTypeLike, MLConstantDescriptor, MLTensorDescriptor, ShapeLike, TensorData, WritableArray

T = TypeVar("T", bound=MLTensor)


class Tensors(ContextState):
    """Tensors of a context: zero-filled ones, constants, and their contents."""

    @overload
    def create_tensor(
        self,
        descriptor: MLTensorDescriptor,
        *,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
    ) -> MLTensor: ...
    @overload
    def create_tensor(
        self,
        descriptor: ShapeLike,
        data_type: DataTypeLike,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
    ) -> MLTensor: ...
    @overload
    def create_tensor(
        self,
        descriptor: ShapeLike,
        *,
        dtype: DataTypeLike,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
    ) -> MLTensor: ...
    @overload
    def create_tensor(
        self,
        *,
        shape: ShapeLike,
        data_type: DataTypeLike | None = None,
        dtype: DataTypeLike | None = None,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
    ) -> MLTensor: ...
    def create_tensor(
        self,
        descriptor: MLTensorDescriptor | ShapeLike | None = None,
        data_type: DataTypeLike | None = None,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
        *,
        shape: ShapeLike | None = None,
        dtype: DataTypeLike | None = None,
    ) -> MLTensor:
        """Allocate a zero-filled tensor on the device.

        Args:
            descriptor: a mapping with `dataType` and `shape`, and optionally `readable`, `writable`, `exportableToGPU`. Or the
                shape, with `data_type` as second argument.
            data_type: the data type if `descriptor` is a shape.
            readable: whether `read_tensor` may read the tensor.
            writable: whether `write_tensor` may write the tensor.
            exportable_to_gpu: whether `export_to_gpu` may hand out the buffer of the tensor.
            shape: the shape, by name, instead of `descriptor`.
            dtype: another name of `data_type`.

        Returns:
            The tensor.

        Raises:
            InvalidStateError: the context is lost.
            MLTypeError: an invalid descriptor.
            OutOfMemoryError: the device has no memory for the tensor.

        Example:
            >>> context.create_tensor([2, 2], "float32", writable=True)
            MLTensor(shape=[2, 2], dtype=float32, writable)

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-createtensor
        """
        self._check_alive("create_tensor")
        fail = failing("create_tensor")
        wanted, flags = descriptor_or_shape(descriptor, data_type, shape, dtype, fail)
        for name, value in (("readable", readable), ("writable", writable), ("exportable_to_gpu", exportable_to_gpu)):
            if value is not None:
                flags[name] = bool(value)
        return self._allocate(MLTensor, wanted, flags, "create_tensor")

    def _allocate(self, kind: type[T], wanted: TensorType, flags: Mapping[str, bool], operator: str) -> T:
        with self._guarded(operator, UnknownError), self._lock:
            self._check_alive(operator)
            tensor = kind(cast("MLContext", self), wanted, self._backend.allocate(wanted, "tensor"), flags)
            self._tensors.add(tensor)
            return tensor

    create_tensor_async = promised(create_tensor)

    def create_host_tensor(self, shape: ShapeLike, data_type: DataTypeLike) -> MLTensor:
        """Return a zero-filled tensor that can be read and written. The name is pywebnn's.

        Args:
            shape: the shape.
            data_type: the data type.

        Raises:
            InvalidStateError, MLTypeError, OutOfMemoryError: as `create_tensor` does.

        Example:
            >>> context.create_host_tensor([2, 2], "int32")
            MLTensor(shape=[2, 2], dtype=int32, readable, writable)
        """
        return self.create_tensor(shape, data_type, readable=True, writable=True)

    def create_device_tensor(
        self, graph: MLGraph, shape: ShapeLike, data_type: DataTypeLike, device: str | None = None
    ) -> MLDeviceTensor:
        """Return a tensor with `read` and `write` methods of its own, for a graph of this context. The name is pywebnn's.

        Args:
            graph: a graph of this context.
            shape: the shape.
            data_type: the data type.
            device: pywebnn's name of a device. It has no effect: the tensor is on the context's device.

        Raises:
            InvalidStateError, MLTypeError, OutOfMemoryError: as `create_tensor` does, or the graph was destroyed.

        Example:
            >>> tensor = context.create_device_tensor(b.build({"y": b.neg(x)}), [2], "float32")
            >>> tensor.write([1, 2])
            >>> print(tensor.read())
            [1. 2.]
        """
        self._check_graph(graph, "create_device_tensor")
        wanted = tensor_type(data_type, shape, failing("create_device_tensor"))
        return self._allocate(MLDeviceTensor, wanted, {"readable": True, "writable": True}, "create_device_tensor")

    def create_constant_tensor(self, descriptor: MLConstantDescriptor, data: TensorData) -> MLTensor:
        """Return a tensor that graphs use as a constant, through `MLGraphBuilder.constant(tensor)`.

        Args:
            descriptor: a mapping with `dataType` and `shape`.
            data: the elements, which the call copies.

        Raises:
            InvalidStateError: the context is lost.
            MLTypeError: an invalid descriptor, or data of another type or size.

        Example:
            >>> weights = context.create_constant_tensor({"dataType": "float32", "shape": [2]}, [1, 2])
            >>> b.constant(weights)
            MLOperand(float32[2])

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-createconstanttensor
        """
        self._check_alive("create_constant_tensor")
        fail = failing("create_constant_tensor")
        wanted, _ = parse_descriptor(descriptor, fail, allowed=CONSTANT_TYPES)
        array = frozen_array(to_array(data, wanted, fail, "data").copy())
        with self._lock:
            self._check_alive("create_constant_tensor")
            tensor = MLTensor(cast("MLContext", self), wanted, None, constant_data=array)
            self._tensors.add(tensor)
            return tensor

    create_constant_tensor_async = promised(create_constant_tensor)

    def write_tensor(self, tensor: MLTensor, data: TensorData) -> None:
        """Queue a write of a whole tensor. The caller may reuse `data` immediately.

        Args:
            tensor: a writable tensor of this context.
            data: the elements, of the tensor's data type and number.

        Raises:
            MLTypeError: a tensor of another context, or data of another type or size.
            MLTensorStateError: the tensor is destroyed or not writable.

        Example:
            >>> tensor = context.create_tensor([2], "float32", readable=True, writable=True)
            >>> context.write_tensor(tensor, [1, 2])
            >>> print(context.read_tensor(tensor))
            [1. 2.]

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-writetensor
        """
        self._check_tensor(tensor, "write_tensor")
        if not tensor.writable:
            hint = "Wrap a buffer with the usage COPY_DST" if tensor._wrapped else "Create it with writable=True"
            raise MLTensorStateError("the tensor is not writable", operator="write_tensor", got=repr(tensor), hint=hint)
        array = to_array(data, tensor._type, failing("write_tensor"), "data")
        with self._guarded("write_tensor", UnknownError), self._lock:
            tensor._check_usable("write_tensor")
            tensor._storage.write(array)

    @overload
    def read_tensor(self, tensor: MLTensor, output: None = None) -> Array: ...
    @overload
    def read_tensor(self, tensor: MLTensor, output: WritableArray) -> None: ...
    def read_tensor(self, tensor: MLTensor, output: WritableArray | None = None) -> Array | None:
        """Read a whole tensor, after all work queued before.

        Args:
            tensor: a readable tensor of this context.
            output: an array to fill. The default returns a new array.

        Returns:
            An array of the tensor's data type and shape, or None if `output` is given.

        Raises:
            MLTypeError: a tensor of another context, or an output of another type or size.
            MLTensorStateError: the tensor is destroyed or not readable.
            UnknownError: the readback failed.

        Example:
            >>> tensor = context.create_tensor([2], "float32", readable=True)
            >>> print(context.read_tensor(tensor))
            [0. 0.]

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-readtensor
        """
        return self._read(tensor, output).result()

    @overload
    def read_tensor_async(self, tensor: MLTensor, output: None = None) -> MLPromise[Array]: ...
    @overload
    def read_tensor_async(self, tensor: MLTensor, output: WritableArray) -> MLPromise[None]: ...
    def read_tensor_async(self, tensor: MLTensor, output: WritableArray | None = None) -> MLPromise[Array] | MLPromise[None]:
        """Submit a read like `read_tensor`, and return a promise of its result.

        Args:
            tensor: a readable tensor of this context.
            output: an array to fill, as for `read_tensor`.

        Returns:
            A promise that settles with the result of `read_tensor`.

        Raises:
            MLTypeError, MLTensorStateError, UnknownError: as `read_tensor` does, from the promise.

        Example:
            >>> tensor = context.create_tensor([2], "float32", readable=True)
            >>> print(context.read_tensor_async(tensor).result())
            [0. 0.]

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-readtensor
        """
        return MLPromise[Any].attempt(lambda: self._read(tensor, output))

    def _read(self, tensor: MLTensor, output: WritableArray | None) -> MLPromise[Any]:
        self._check_tensor(tensor, "read_tensor")
        if not tensor.readable:
            hint = "Wrap a buffer with the usage COPY_SRC" if tensor._wrapped else "Create it with readable=True"
            raise MLTensorStateError("the tensor is not readable", operator="read_tensor", got=repr(tensor), hint=hint)
        into: Array | None = None
        if output is not None:
            into = output_array(output, tensor._type, failing("read_tensor"), "output")
        with self._guarded("read_tensor", UnknownError), self._lock:
            tensor._check_usable("read_tensor")
            pending = self._backend.read(tensor._storage, tensor._type)

        def wait() -> Any:
            with self._guarded("read_tensor", UnknownError):
                array = pending.result()["data"]
            if tensor.destroyed:
                raise InvalidStateError(
                    "the tensor was destroyed while it was read",
                    operator="read_tensor",
                    hint="Wait for the read before you destroy the tensor",
                )
            if into is None:
                return array
            fill(into, array)
            return None

        return MLPromise(wait, pending.done)

    if TYPE_CHECKING:
        # camelCase names, which `MLContext.__getattr__` finds at run time.
        createTensor = create_tensor
        createTensorAsync = create_tensor_async
        createHostTensor = create_host_tensor
        createDeviceTensor = create_device_tensor
        createConstantTensor = create_constant_tensor
        createConstantTensorAsync = create_constant_tensor_async
        writeTensor = write_tensor
        readTensor = read_tensor
        readTensorAsync = read_tensor_async
