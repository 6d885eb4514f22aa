"""Objects that pywebnn has and the specification has not, so that its programs run unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.graph import Array
from .tensor import MLTensor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .context import MLContext
    from .graph import MLGraph


class MLDeviceTensor(MLTensor):
    """A tensor with methods of its own; made by `MLContext.create_device_tensor`. It may be read, written and dispatched."""

    @property
    def device(self) -> str:
        """Where it is: "gpu", or "cpu" for software adapters and the numpy reference."""
        return self._context.device_type

    @property
    def backend(self) -> str:
        """Adapter, driver and backend for people."""
        return self._context.description

    def write(self, data: Any) -> None:
        """Write the whole tensor; raises like `MLContext.write_tensor`."""
        self._context.write_tensor(self, data)

    def read(self) -> Array:
        """Read the whole tensor; raises like `MLContext.read_tensor`."""
        return self._context.read_tensor(self)

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
        self,
        shape: Any,
        data_type: str | None = None,
        readable: bool = True,
        writable: bool = True,
        exportable_to_gpu: bool = False,
        *,
        dtype: str | None = None,
    ) -> MLTensor:
        """Return a zero-filled tensor, readable and writable unless told otherwise."""
        return self._context.create_tensor(shape, data_type, readable, writable, exportable_to_gpu, dtype=dtype)

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
