"""`Interop`: the interface of a context to a WebGPU application with its own device, buffers and command encoders."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import MLTypeError, UnknownError
from .arrays import failing, is_integer, tensor_type
from .backend import DeviceBackend, no_device
from .context_state import ContextState
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext
    from .graph import MLGraph
    from .types import DataTypeLike, ShapeLike


class Interop(ContextState):
    """The part of `MLContext` for a caller's buffers as tensors, tensors as buffers, and graphs in a caller's encoders."""

    def wrap_buffer(self, buffer: Any, shape: ShapeLike, data_type: DataTypeLike, offset: int = 0) -> MLTensor:
        """Return a tensor over a caller's buffer.

        The tensor takes up its bytes and no byte more. No call writes the bytes around it, also where elements of 8 or 16 bits
        fill only a part of the last 32-bit word, and no result depends on them. Work of the caller and of this context over the
        buffer takes effect in the order of submits, so a run preserves earlier writes to the rest of the last word. The buffer
        stays the caller's: destroying the tensor, or the context, leaves it as it is.

        Kernels work on the buffer itself, without a copy, where the tensor's size is a multiple of 32 bytes. Tensors of other
        sizes may be copied through the graph's own memory, in the same compute pass:

        - an output that is not made of whole quads: of 16 bytes for 32-bit types, 8 for 16-bit types, 4 for 8-bit types,
        - an input that is not made of whole quads and ends less than 32 bytes before the end of the buffer.

        A copy takes about as long as an element-wise operator on the tensor. Tensors of 84 bytes to 16 MB were measured on a
        software adapter. A graph of one such operator took 1.4 to 1.8 times as long with a copied output. With a copied input
        as well, it took 1.7 to 2.6 times as long. A graph of four dense layers (63 x 255) took 1.01 times as long.

        The buffer gets two attributes, which it keeps after the tensor: `_webnn_wgpu_freed`, and a `destroy` that sets it. The
        method waits until no thread of this package submits, for at most 5 seconds, and then destroys the buffer. Later uses of
        the tensor raise InvalidStateError: a submit with a destroyed buffer ends the process inside wgpu-native. For the same
        reason a mapped buffer is refused. `wgpu.GPUBuffer.destroy(buffer)` bypasses this guard.

        Args:
            buffer: a `wgpu.GPUBuffer` of the context's device, with the usage STORAGE, which holds the tensor's bytes rounded
                up to whole 32-bit words. With COPY_SRC the tensor is readable, with COPY_DST writable.
            shape: the tensor's shape. Its elements are packed in row-major order.
            data_type: the tensor's data type.
            offset: the offset of the tensor in the buffer in bytes, a multiple of the device's
                `min-storage-buffer-offset-alignment` (256 by default).

        Raises:
            MLTypeError: the buffer is another device's, lacks STORAGE or is too small, or the offset is not aligned.
            InvalidStateError: the context is lost, or the buffer is mapped.
            NotSupportedError: the context has no device.

        Example:
            >>> own = context.device.create_buffer(size=60, usage="STORAGE|COPY_SRC")
            >>> context.wrap_buffer(own, [5, 3], "float32")
            MLTensor(shape=[5, 3], dtype=float32, readable)
        """
        self._check_alive("wrap_buffer")
        fail = failing("wrap_buffer")
        wanted = tensor_type(data_type, shape, fail)
        if not is_integer(offset):
            raise fail("offset must be an integer", got=repr(offset))
        with self._guarded("wrap_buffer"), self._lock:
            storage: Any = self._backend.wrap(buffer, wanted, int(offset))
            flags = {"readable": storage.readable, "writable": storage.writable}
            tensor = MLTensor(cast("MLContext", self), wanted, storage, flags, wrapped=True)
            self._tensors.add(tensor)
            return tensor

    def export_to_gpu(self, tensor: MLTensor) -> ExportedBuffer:
        """Export a tensor's buffer to WebGPU without a copy. The context does not use it until its release.

        The device executes earlier work of this context before the caller's submits, and the caller's submits before work after
        the release. No wait is necessary. Until the release, `dispatch`, `encode`, `read_tensor` and `write_tensor` refuse the
        tensor.

        Args:
            tensor: a tensor of this context, created with `exportable_to_gpu`.

        Returns:
            A context manager that gives the `wgpu.GPUBuffer`, with the usages STORAGE, COPY_SRC and COPY_DST. Its attribute
            `buffer` is the same buffer, and `release()` ends the export. The elements lie packed in row-major order. If you
            destroy the buffer, the tensor is
            refused from then on: see `MLTensor.buffer`.

        Raises:
            MLTypeError: the tensor belongs to another context, or was not created with `exportable_to_gpu`.
            MLTensorStateError: the tensor was destroyed, or is a constant.
            InvalidStateError: the tensor is exported already, or the device is lost.
            NotSupportedError: the context has no device.

        Example:
            >>> tensor = context.create_tensor([4], "float32", exportable_to_gpu=True)
            >>> with context.export_to_gpu(tensor) as buffer:
            ...     buffer.size >= 16
            True

        Spec: https://github.com/webmachinelearning/webnn/blob/main/mltensor-explainer.md
        """
        with self._guarded("export_to_gpu", UnknownError), self._lock:
            self._check_tensor(tensor, "export_to_gpu")
            if not tensor.exportable_to_gpu:
                raise MLTypeError(
                    "the tensor must be created with `exportable_to_gpu=True`", operator="export_to_gpu", got=repr(tensor)
                )
            if not isinstance(self._backend, DeviceBackend):
                raise no_device()
            self._backend.device.check()
            return ExportedBuffer(self, tensor)

    def encode(
        self,
        graph: MLGraph,
        inputs: Mapping[str, MLTensor],
        outputs: Mapping[str, MLTensor],
        encoder: Any = None,
        *,
        compute_pass: Any = None,
    ) -> None:
        """Record a run of a graph into a caller's command encoder. The caller submits it.

        The run takes effect with the caller's command buffer, and runs take effect one after the other. A graph may therefore
        be encoded any number of times, also several times into one encoder, although its runs share the memory of intermediate
        results. `write_tensor`, `dispatch` and `compute` submit at once: they take effect before encoded work that is not yet
        submitted. Submit it before the first step of `dispatch_steps` of the graph or after the last, not in between.

        Graph and tensors may be destroyed before the submit: their memory is freed with the command buffer. Wrapped buffers
        must be neither destroyed nor mapped before the submit. Otherwise wgpu-native ends the process.

        Args:
            graph: a graph of this context.
            inputs: a tensor for every input, as for `dispatch`.
            outputs: a tensor for every output.
            encoder: a `wgpu.GPUCommandEncoder` of the context's device without an open pass, which gets a compute pass.
            compute_pass: an open `wgpu.GPUComputePassEncoder` to record into instead. The call changes its pipeline and its
                bind group 0.

        Raises:
            MLTypeError: as in `dispatch`. Or neither or both of encoder and compute_pass are given, or they are another
                device's.
            InvalidStateError: the graph or a buffer was destroyed, the encoder has finished or has an open pass, or the pass
                has ended.
            NotSupportedError: the context has no device.

        Example:
            >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
            >>> graph = b.build({"y": b.neg(v)})
            >>> source, result = (context.create_host_tensor([3], "float32") for _ in range(2))
            >>> context.write_tensor(source, [1, 2, 3])
            >>> encoder = context.device.create_command_encoder()
            >>> context.encode(graph, {"v": source}, {"y": result}, encoder)
            >>> context.device.queue.submit([encoder.finish()])
            >>> print(context.read_tensor(result))
            [-1. -2. -3.]
        """
        if (encoder is None) == (compute_pass is None):
            raise MLTypeError(
                "either an encoder or a compute pass is needed",
                operator="encode",
                got="neither" if encoder is None else "both",
                allowed="encoder=, or compute_pass=",
            )
        with self._guarded("encode"), self._lock:
            storages = self._storages(graph, inputs, outputs, "encode")
            graph._executable.encode(*storages, encoder, compute_pass)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        wrapBuffer = wrap_buffer
        exportToGPU = export_to_gpu


class ExportedBuffer:
    """The exported buffer of a tensor, from `MLContext.export_to_gpu`.

    Attributes:
        buffer: the `wgpu.GPUBuffer`.
    """

    def __init__(self, context: Interop, tensor: MLTensor) -> None:
        tensor._storage.check()
        self.buffer: Any = tensor.buffer
        self._lock, self._tensor = context._lock, tensor
        tensor._exported = True

    def release(self) -> None:
        """End the export, so that the context may use the tensor again. Idempotent."""
        with self._lock:
            if self.buffer is not None:
                self.buffer = None
                self._tensor._exported = False

    def __enter__(self) -> Any:
        return self.buffer

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()
