"""`MLTensor`: memory of a context that graphs read and write without going through the host."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..core.errors import MLTensorStateError
from ..ir.graph import Array
from ..ir.types import TensorType
from .operand import DataTypeName, Shape
from .options import camel_attribute

if TYPE_CHECKING:
    from .context import MLContext


class MLTensor:
    """A tensor on a context's device; made by `MLContext.create_tensor`.

    Attributes:
        data_type: data type name.
        shape: dimensions.
        readable: whether `read_tensor` may read it.
        writable: whether `write_tensor` may write it.
        constant: whether it was made by `create_constant_tensor`.
        exportable_to_gpu: whether it was made to be handed to WebGPU.

    Example:
        >>> tensor = context.create_tensor({"dataType": "float32", "shape": [2, 3], "readable": True})
        >>> tensor.size, tensor.shape
        (24, (2, 3))
        >>> tensor.destroy()

    Spec: https://www.w3.org/TR/webnn/#api-mltensor
    """

    def __init__(
        self,
        context: MLContext,
        wanted: TensorType,
        storage: Any,
        *,
        readable: bool = False,
        writable: bool = False,
        exportable_to_gpu: bool = False,
        constant_data: Array | None = None,
    ) -> None:
        self._context, self._type, self._storage = context, wanted, storage
        self._destroyed = False
        self._constant_data = constant_data
        self.readable, self.writable = readable, writable
        self.exportable_to_gpu = exportable_to_gpu
        self.constant = constant_data is not None

    @property
    def data_type(self) -> DataTypeName:
        """The data type's name."""
        return DataTypeName(self._type.data_type)

    @property
    def shape(self) -> Shape:
        """The dimensions."""
        return Shape(self._type.shape)

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self._type.size_bytes

    @property
    def destroyed(self) -> bool:
        """Whether the tensor was destroyed."""
        return self._destroyed

    @property
    def buffer(self) -> Any:
        """The `wgpu.GPUBuffer` under the tensor; None on the numpy reference.

        Raises:
            MLTensorStateError: the tensor was destroyed, or is a constant.
        """
        self._check_usable("buffer")
        return getattr(self._storage, "gpu", None)

    def destroy(self) -> None:
        """Free the memory once queued work is done; reads that are under way fail. Idempotent."""
        if not self._destroyed:
            self._destroyed = True
            self._context._forget_tensor(self)
            if self._storage is not None:
                self._storage.destroy()
            self._constant_data = None

    def _check_usable(self, operator: str) -> None:
        if self._destroyed:
            raise MLTensorStateError("the tensor was destroyed", operator=operator, got=repr(self))
        if self.constant:
            raise MLTensorStateError(
                "a constant tensor is used through MLGraphBuilder.constant only", operator=operator, got=repr(self)
            )

    def __enter__(self) -> MLTensor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        flags = "".join(f", {f}" for f in ("readable", "writable", "constant") if getattr(self, f))
        return f"MLTensor(shape={list(self.shape)}, dtype={self.data_type}{flags})"

    def __getattr__(self, name: str) -> Any:
        return camel_attribute(self, name)
