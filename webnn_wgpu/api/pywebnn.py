"""Objects that pywebnn has and the specification has not, so that its programs run unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ..core.names import snake_case
from ..ir.graph import Array
from .tensor import MLTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Concatenate, ParamSpec, TypeVar

    from ..core.caps import Caps
    from .context import MLContext
    from .graph import MLGraph
    from .promise import MLPromise
    from .results import MLContextLostInfo
    from .types import DataTypeLike, MLPowerPreference, MLTensorDescriptor, ShapeLike, TensorData, WritableArray

    P = ParamSpec("P")
    R = TypeVar("R")

    def _handed_on(method: Callable[Concatenate[MLContext, P], R]) -> Callable[Concatenate[AsyncMLContext, P], R]: ...


class MLDeviceTensor(MLTensor):
    """A tensor with methods of its own, from `MLContext.create_device_tensor`. It can be read, written and dispatched.

    Example:
        >>> tensor = context.create_device_tensor(b.build({"y": b.neg(x)}), [2], "float32")
        >>> tensor.write([1, 2])
        >>> print(tensor.read())
        [1. 2.]
    """

    @property
    def device(self) -> Literal["gpu", "cpu"]:
        """The kind of its device: "gpu", or "cpu" for software adapters and the numpy reference."""
        return self._context.device_type

    @property
    def backend(self) -> str:
        """The names of adapter, driver and backend, as one text for people."""
        return self._context.description

    def write(self, data: TensorData) -> None:
        """Write the whole tensor, with the errors of `MLContext.write_tensor`.

        Args:
            data: the elements, of the tensor's data type and number.
        """
        self._context.write_tensor(self, data)

    def read(self) -> Array:
        """Return the content of the whole tensor, with the errors of `MLContext.read_tensor`."""
        return self._context.read_tensor(self)

    def __repr__(self) -> str:
        return f"MLDeviceTensor(shape={list(self.shape)}, dtype={self.data_type}, device={self.device})"


class AsyncMLContext:
    """A context whose tensor methods are coroutines. All other names are those of the context that it wraps.

    Args:
        context: the context.

    Example:
        >>> AsyncMLContext(context).create_tensor([2], "float32")
        MLTensor(shape=[2], dtype=float32, readable, writable)
    """

    def __init__(self, context: MLContext) -> None:
        self._context = context

    def create_tensor(
        self,
        shape: MLTensorDescriptor | ShapeLike,
        data_type: DataTypeLike | None = None,
        readable: bool = True,
        writable: bool = True,
        exportable_to_gpu: bool = False,
        *,
        dtype: DataTypeLike | None = None,
    ) -> MLTensor:
        """Return a zero-filled tensor, readable and writable by default. Errors are those of `MLContext.create_tensor`.

        Args:
            shape: the shape, or a descriptor.
            data_type: the data type if `shape` is no descriptor.
            readable: whether `read_tensor_async` may read the tensor.
            writable: whether `write_tensor_async` may write the tensor.
            exportable_to_gpu: whether `export_to_gpu` may hand out the buffer of the tensor.
            dtype: another name of `data_type`.
        """
        create: Callable[..., MLTensor] = self._context.create_tensor
        return create(shape, data_type, readable, writable, exportable_to_gpu, dtype=dtype)

    async def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]) -> None:
        """Queue a run, with the errors of `MLContext.dispatch`.

        Args:
            graph: a graph of the context.
            inputs: a tensor for each input, by name.
            outputs: a tensor for each output, by name.
        """
        self._context.dispatch(graph, inputs, outputs)

    @overload
    async def read_tensor_async(self, tensor: MLTensor, output: None = None) -> Array: ...
    @overload
    async def read_tensor_async(self, tensor: MLTensor, output: WritableArray) -> None: ...
    async def read_tensor_async(self, tensor: MLTensor, output: WritableArray | None = None) -> Array | None:
        """Return the content of a whole tensor, with the errors of `MLContext.read_tensor`.

        Args:
            tensor: a readable tensor of the context.
            output: an array to fill, as for `MLContext.read_tensor`.
        """
        if output is not None:
            return await self._context.read_tensor_async(tensor, output)
        return await self._context.read_tensor_async(tensor)

    async def write_tensor_async(self, tensor: MLTensor, data: TensorData) -> None:
        """Queue a write of a whole tensor, with the errors of `MLContext.write_tensor`.

        Args:
            tensor: a writable tensor of the context.
            data: the elements, of the tensor's data type and number.
        """
        self._context.write_tensor(tensor, data)

    if TYPE_CHECKING:
        # camelCase names, and the context's own methods and attributes, which `__getattr__` finds at run time.
        createTensor = create_tensor
        readTensorAsync = read_tensor_async
        writeTensorAsync = write_tensor_async

        backend_info = backendInfo = _handed_on(MLContext.backend_info)
        compute = _handed_on(MLContext.compute)
        compute_async = computeAsync = _handed_on(MLContext.compute_async)
        convert_to_coreml = convertToCoreml = _handed_on(MLContext.convert_to_coreml)
        convert_to_onnx = convertToOnnx = _handed_on(MLContext.convert_to_onnx)
        create_constant_tensor = createConstantTensor = _handed_on(MLContext.create_constant_tensor)
        create_constant_tensor_async = createConstantTensorAsync = _handed_on(MLContext.create_constant_tensor_async)
        create_device_tensor = createDeviceTensor = _handed_on(MLContext.create_device_tensor)
        create_graph_builder = createGraphBuilder = _handed_on(MLContext.create_graph_builder)
        create_host_tensor = createHostTensor = _handed_on(MLContext.create_host_tensor)
        destroy = _handed_on(MLContext.destroy)
        dispatch_steps = dispatchSteps = _handed_on(MLContext.dispatch_steps)
        dispatch_with_device_tensors = dispatchWithDeviceTensors = _handed_on(MLContext.dispatch_with_device_tensors)
        dispatch_with_host_tensors = dispatchWithHostTensors = _handed_on(MLContext.dispatch_with_host_tensors)
        encode = _handed_on(MLContext.encode)
        execute_with_coreml = executeWithCoreml = _handed_on(MLContext.execute_with_coreml)
        export_to_gpu = exportToGPU = _handed_on(MLContext.export_to_gpu)
        memory = _handed_on(MLContext.memory)
        op_support_limits = opSupportLimits = _handed_on(MLContext.op_support_limits)
        read_tensor = readTensor = _handed_on(MLContext.read_tensor)
        rebuild = _handed_on(MLContext.rebuild)
        recover = _handed_on(MLContext.recover)
        tensor_from_texture = tensorFromTexture = _handed_on(MLContext.tensor_from_texture)
        tensor_to_texture = tensorToTexture = _handed_on(MLContext.tensor_to_texture)
        wrap_buffer = wrapBuffer = _handed_on(MLContext.wrap_buffer)
        write_tensor = writeTensor = _handed_on(MLContext.write_tensor)

        def create_tensor_async(
            self,
            descriptor: MLTensorDescriptor | ShapeLike,
            data_type: DataTypeLike | None = None,
            readable: bool | None = None,
            writable: bool | None = None,
            exportable_to_gpu: bool | None = None,
            *,
            dtype: DataTypeLike | None = None,
        ) -> MLPromise[MLTensor]:
            """Return a promise of the tensor that `MLContext.create_tensor` returns for the same arguments."""
            ...

        createTensorAsync = create_tensor_async

        accelerated: bool
        caps: Caps
        description: str
        device: Any
        device_type: Literal["gpu", "cpu"]
        deviceType: Literal["gpu", "cpu"]
        lost: MLPromise[MLContextLostInfo]
        power_preference: MLPowerPreference
        powerPreference: MLPowerPreference
    else:

        def __getattr__(self, name: str) -> Any:
            own = snake_case(name)
            if own != name and hasattr(type(self), own):
                return getattr(self, own)
            return getattr(self._context, name)
