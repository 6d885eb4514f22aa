"""Objects that pywebnn has and the specification has not, so that its programs run unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.graph import Array
from .tensor import MLTensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .context import MLContext
    from .graph import MLGraph


class MLDeviceTensor:
    """A tensor with methods of its own; made by `MLContext.create_device_tensor`.

    Attributes:
        tensor: the `MLTensor` under it, for `dispatch`.
        device: "gpu", or "cpu" for software adapters and the numpy reference.
        backend: adapter, driver and backend for people.
    """

    def __init__(self, context: MLContext, tensor: MLTensor) -> None:
        self._context, self.tensor = context, tensor
        self.device, self.backend = context.device_type, context.description

    @property
    def shape(self) -> Any:
        """The dimensions."""
        return self.tensor.shape

    @property
    def data_type(self) -> Any:
        """The data type's name."""
        return self.tensor.data_type

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self.tensor.size

    def write(self, data: Any) -> None:
        """Write the whole tensor; raises like `MLContext.write_tensor`."""
        self._context.write_tensor(self.tensor, data)

    def read(self) -> Array:
        """Read the whole tensor; raises like `MLContext.read_tensor`."""
        return self._context.read_tensor(self.tensor)

    def destroy(self) -> None:
        """Free the memory; idempotent."""
        self.tensor.destroy()

    def __repr__(self) -> str:
        return f"MLDeviceTensor(shape={list(self.shape)}, dtype={self.data_type}, device={self.device})"


class AsyncMLContext:
    """A context whose tensor methods are coroutines; whatever else is asked of it, the context under it answers.

    Args:
        context: the context.

    Example:
        >>> AsyncMLContext(context).create_tensor([2], "float32")
        MLTensor(shape=[2], dtype=float32, readable, writable)
    """

    def __init__(self, context: MLContext) -> None:
        self._context = context

    def create_tensor(
        self, shape: Any, dtype: str, readable: bool = True, writable: bool = True, exportable_to_gpu: bool = False
    ) -> MLTensor:
        """Return a zero-filled tensor, readable and writable unless told otherwise."""
        return self._context.create_tensor(shape, dtype, readable, writable, exportable_to_gpu)

    async def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]) -> None:
        """Queue a run; raises like `MLContext.dispatch`."""
        self._context.dispatch(graph, inputs, outputs)

    async def read_tensor_async(self, tensor: MLTensor, output: Any = None) -> Any:
        """Read a whole tensor; raises like `MLContext.read_tensor`."""
        return await self._context.read_tensor_async(tensor, output)

    async def write_tensor_async(self, tensor: MLTensor, data: Any) -> None:
        """Queue a write of a whole tensor; raises like `MLContext.write_tensor`."""
        self._context.write_tensor(tensor, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
