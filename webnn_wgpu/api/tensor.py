"""`MLTensor`: memory of a context that graphs read and write without going through the host."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidStateError, MLTensorStateError
from ..display.html import facts_html, type_facts
from ..ir.graph import Array
from ..ir.types import TensorType
from .operand import DataTypeName, Shape
from .options import camel_attribute

if TYPE_CHECKING:
    import numpy.typing as npt

    from .context import MLContext


class MLTensor:
    """A tensor on a context's device, from `MLContext.create_tensor`.

    Its attributes are read-only. It is a context manager, whose exit destroys the tensor.

    Example:
        >>> tensor = context.create_tensor({"dataType": "float32", "shape": [2, 3], "readable": True})
        >>> tensor.shape, tensor.size, tensor.nbytes
        ((2, 3), 6, 24)
        >>> tensor.destroy()

    Spec: https://www.w3.org/TR/webnn/#api-mltensor
    """

    def __init__(
        self,
        context: MLContext,
        wanted: TensorType,
        storage: Any,
        flags: Mapping[str, bool] | None = None,
        *,
        constant_data: Array | None = None,
        wrapped: bool = False,
    ) -> None:
        self._context, self._type = context, wanted
        self._storage: Any = storage
        self._destroyed = False
        self._constant_data = constant_data
        self._flags = {"readable": False, "writable": False, "exportable_to_gpu": False, **(flags or {})}
        self._constant = constant_data is not None
        self._wrapped = wrapped
        self._exported = False

    @property
    def readable(self) -> bool:
        """Whether `read_tensor` may read it."""
        return self._flags["readable"]

    @property
    def writable(self) -> bool:
        """Whether `write_tensor` may write it."""
        return self._flags["writable"]

    @property
    def constant(self) -> bool:
        """Whether it was made by `create_constant_tensor`."""
        return self._constant

    @property
    def exportable_to_gpu(self) -> bool:
        """Whether it was made to be handed to WebGPU."""
        return self._flags["exportable_to_gpu"]

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
        """Number of elements, as in numpy and pywebnn."""
        return self._type.num_elements

    @property
    def nbytes(self) -> int:
        """Bytes of the packed elements, as in numpy."""
        return self._type.size_bytes

    @property
    def destroyed(self) -> bool:
        """Whether the tensor was destroyed."""
        return self._destroyed

    @property
    def rank(self) -> int:
        """The number of dimensions, 0 for a scalar."""
        return self._type.rank

    @property
    def buffer(self) -> Any:
        """The `wgpu.GPUBuffer` of the tensor, for the caller's own kernels. None on the numpy reference.

        The tensor's elements lie in it packed in row-major order, from byte `buffer_offset` on. In a buffer of the context's
        own, runs may change the bytes behind them, up to the next multiple of 32. Once handed out, such a buffer is not
        destroyed with the tensor but freed with the last reference to it. Its `destroy` first waits until no thread of this
        package submits, for at most 5 seconds. Later uses of the tensor raise InvalidStateError.

        Raises:
            MLTensorStateError: the tensor was destroyed, or is a constant.
        """
        self._check_usable("buffer")
        return self._storage.hand_out()

    @property
    def buffer_offset(self) -> int:
        """The offset of the tensor in `buffer`, in bytes: 0, or the offset of `wrap_buffer`.

        Raises:
            MLTensorStateError: the tensor was destroyed, or is a constant.
        """
        self._check_usable("buffer_offset")
        return self._storage.offset_bytes

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Read the tensor, as `MLContext.read_tensor` does: `np.asarray(tensor)`.

        Raises:
            MLTensorStateError: destroyed, a constant, or not readable.
            ValueError: `copy=False`: the tensor is in the memory of the device.
        """
        if copy is False:
            raise ValueError("an array of a tensor is a copy, because the tensor is in the memory of the device")
        array = self._context.read_tensor(self)
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """Read the tensor and hand the array on: `torch.from_dlpack(tensor)`, `np.from_dlpack(tensor)`."""
        return self.__array__().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return where `__dlpack__` puts the elements: into the host's memory."""
        return (1, 0)

    def destroy(self) -> None:
        """Free the memory after the queued work. Pending reads fail. Further calls have no effect.

        Spec: https://www.w3.org/TR/webnn/#dom-mltensor-destroy
        """
        with self._context._lock:
            if not self._destroyed:
                self._destroyed = True
                if self._storage is not None:
                    self._storage.destroy()
                self._storage = self._constant_data = None

    def _destruction(self, operator: str) -> MLTensorStateError:
        """Return the error of calls on a tensor that was destroyed, perhaps with its context."""
        hint = "The context is lost, and its tensors with it" if self._context.lost.done() else ""
        return MLTensorStateError("the tensor was destroyed", operator=operator, got=repr(self), hint=hint)

    def _check_usable(self, operator: str) -> None:
        if self._exported:
            raise InvalidStateError(
                "the tensor is exported", operator=operator, got=repr(self), hint="It can be used again once it was released"
            )
        if self._destroyed:
            raise self._destruction(operator)
        if self._constant:
            raise MLTensorStateError(
                "a constant tensor is used through MLGraphBuilder.constant only", operator=operator, got=repr(self)
            )

    def __enter__(self) -> MLTensor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def _repr_html_(self) -> str:
        flags = [f.replace("_", " ") for f in ("readable", "writable", "constant", "exportable_to_gpu") if getattr(self, f)]
        facts = {**type_facts(self._type), "may be": ", ".join(flags), "on": self._context.description}
        return facts_html("MLTensor" + (", destroyed" if self._destroyed else ""), facts)

    def __repr__(self) -> str:
        flags = "".join(f", {f}" for f in ("readable", "writable", "constant") if getattr(self, f))
        return f"MLTensor(shape={list(self.shape)}, dtype={self.data_type}{flags})"

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        dataType = data_type
        exportableToGPU = exportable_to_gpu
        bufferOffset = buffer_offset
    else:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)
