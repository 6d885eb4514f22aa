"""`MLContext`: where graphs are built, run and fed."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..core.caps import Caps
from ..core.errors import InvalidStateError, MLTensorStateError, MLTypeError
from ..ir.graph import Array, frozen_array
from ..ir.types import TensorType
from .arrays import failing, output_array, parse_descriptor, tensor_type, to_array
from .backend import Backend, DeviceBackend
from .graph import MLGraph
from .limits import MLOpSupportLimits, op_support_limits
from .options import camel_attribute
from .promise import MLPromise
from .tensor import MLTensor

logger = logging.getLogger("webnn_wgpu")


@dataclass(frozen=True)
class MLContextLostInfo:
    """Why a context became unusable."""

    message: str


class MLComputeResult(Mapping[str, Array]):
    """What `compute` returns: a mapping of output name to array that also carries `.inputs` and `.outputs`."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        self.inputs, self.outputs = dict(inputs), dict(outputs)

    def __getitem__(self, name: str) -> Array:
        return self.outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __repr__(self) -> str:
        return f"MLComputeResult({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in self.outputs.items())})"


class MLContext:
    """A device (or the numpy reference), with the graphs and tensors that live on it; made by `ML.create_context`.

    Calls from several threads are serialised. A context is a context manager; leaving it destroys it.

    Attributes:
        accelerated: whether graphs run on hardware; False on a software adapter.
        power_preference: as asked for.
        lost: promise of an `MLContextLostInfo`, settled when the context becomes unusable.
        caps: capabilities of the device.

    Example:
        >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
        >>> graph = b.build({"y": b.relu(v)})
        >>> print(context.compute(graph, {"v": np.float32([-1, 0, 2])})["y"])
        [0. 0. 2.]

    Spec: https://www.w3.org/TR/webnn/#api-mlcontext
    """

    def __init__(self, backend: Backend, *, power_preference: str = "default") -> None:
        self._backend = backend
        self._lock = backend.lock
        self.power_preference = power_preference
        self._tensors: weakref.WeakSet[MLTensor] = weakref.WeakSet()
        self._graphs: weakref.WeakSet[MLGraph] = weakref.WeakSet()
        self._lost_event = threading.Event()
        self._lost_info = MLContextLostInfo("")
        self.lost: MLPromise[MLContextLostInfo] = MLPromise(self._wait_lost, self._lost_event.is_set)

    def _wait_lost(self) -> MLContextLostInfo:
        self._lost_event.wait()
        return self._lost_info

    # what it is ---------------------------------------------------------------------------------------------------

    @property
    def accelerated(self) -> bool:
        """Whether graphs run on hardware."""
        return self._backend.accelerated

    @property
    def device_type(self) -> str:
        """The 2024 name of where graphs run: `gpu`, or `cpu` for software adapters and the numpy reference."""
        return "gpu" if self.accelerated else "cpu"

    @property
    def caps(self) -> Caps:
        """What the device can do."""
        return self._backend.caps

    @property
    def device(self) -> Any:
        """The `wgpu.GPUDevice` graphs run on; None on the numpy reference."""
        return self._backend.device.gpu if isinstance(self._backend, DeviceBackend) else None

    @property
    def description(self) -> str:
        """Adapter, driver and backend for people."""
        return self._backend.description

    def __repr__(self) -> str:
        return f"MLContext({self.description}{', lost' if self._lost_event.is_set() else ''})"

    def op_support_limits(self) -> MLOpSupportLimits:
        """Return which data types and ranks every operator supports on this device.

        Returns:
            A mapping with the specification's keys, also in snake_case: `preferredInputLayout`, `maxTensorByteLength`,
            `input`, `constant`, `output`, and per operator its operands, each with `dataTypes` and `rankRange`.

        Example:
            >>> context.op_support_limits()["relu"]["input"]["rankRange"]["max"]
            8

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-opsupportlimits
        """
        return op_support_limits(self.caps)

    def create_graph_builder(self, profile: str = "2026") -> Any:
        """Return a new `MLGraphBuilder` for this context."""
        from .builder import MLGraphBuilder

        return MLGraphBuilder(self, profile=profile)

    # arrays in, arrays out ----------------------------------------------------------------------------------------

    def compute(self, graph: MLGraph, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None) -> MLComputeResult:
        """Run a graph on arrays and wait for the results.

        Args:
            graph: a graph of this context.
            inputs: every input by name; arrays of the input's data type and number of elements (see the README for what
                else is accepted).
            outputs: arrays to fill, by name; a subset of the graph's outputs may be named. Default: all, in new arrays.

        Returns:
            A mapping of output name to array, in the outputs' data types and shapes.

        Raises:
            MLTypeError: a missing or unknown name, a wrong data type or size, a graph of another context.
            InvalidStateError: the graph was destroyed or the context lost.
            OperationError: the device failed to run the graph.

        Spec: https://www.w3.org/TR/2024/CRD-webnn-20240415/#api-mlcontext-compute
        """
        return self.compute_async(graph, inputs, outputs).result()

    def compute_async(
        self, graph: MLGraph, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None = None
    ) -> MLPromise[MLComputeResult]:
        """Submit a run like `compute` and return a promise of its result; the arrays must be left alone until then."""
        fail = failing("compute")
        executable = self._executable_of(graph, "compute")
        self._check_names(graph.inputs, inputs, "input", "compute")
        arrays = {n: to_array(inputs[n], t, fail, f"input '{n}'") for n, t in graph.inputs.items()}
        given: dict[str, Array] = {}
        names = list(graph.outputs)
        if outputs is not None:
            self._check_names(graph.outputs, outputs, "output", "compute", subset=True)
            names = list(outputs)
            given = {n: output_array(a, graph.outputs[n], fail, f"output '{n}'") for n, a in outputs.items() if a is not None}
        with self._lock:
            pending = executable.start(arrays, names)

        def wait() -> MLComputeResult:
            results: dict[str, Array] = pending.result()
            for name, array in given.items():
                array.reshape(-1)[:] = results[name].reshape(-1)
                results[name] = array
            return MLComputeResult(inputs, results)

        return MLPromise(wait, pending.done)

    def _check_names(
        self, wanted: Mapping[str, TensorType], given: Any, what: str, operator: str, *, subset: bool = False
    ) -> None:
        fail = failing(operator)
        if not isinstance(given, Mapping):
            raise fail(f"{what}s must be a mapping of name to tensor data", got=type(given).__name__)
        names: list[Any] = list(given)  # pyright: ignore[reportUnknownArgumentType] - keys are checked below
        allowed = ", ".join(wanted) or "none"
        for name in names:
            if name not in wanted:
                raise fail(f"the graph has no {what} of this name", got=repr(name), allowed=allowed)
        missing = [name for name in wanted if name not in names]
        if missing and not subset:
            raise fail(f"an {what} of the graph is missing", got=f"no {missing[0]!r}", allowed=allowed)

    # tensors ------------------------------------------------------------------------------------------------------

    def create_tensor(
        self,
        descriptor: Any,
        data_type: str | None = None,
        *,
        readable: bool | None = None,
        writable: bool | None = None,
        exportable_to_gpu: bool | None = None,
    ) -> MLTensor:
        """Allocate a zero-filled tensor on the device.

        Args:
            descriptor: mapping with `dataType` and `shape`, and optionally `readable`, `writable`, `exportableToGPU`; or the
                shape, with `data_type` as second argument.
            data_type: data type, where `descriptor` is a shape.
            readable: whether `read_tensor` may read it.
            writable: whether `write_tensor` may write it.
            exportable_to_gpu: whether its buffer may be handed to WebGPU.

        Raises:
            InvalidStateError: the context is lost.
            MLTypeError: a bad descriptor.
            OutOfMemoryError: the device cannot hold it.

        Example:
            >>> context.create_tensor([2, 2], "float32", writable=True)
            MLTensor(shape=[2, 2], dtype=float32, writable)

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-createtensor
        """
        self._check_alive("create_tensor")
        fail = failing("create_tensor")
        flags: dict[str, bool] = {}
        if isinstance(descriptor, Mapping):
            wanted, flags = parse_descriptor(descriptor, fail)
        else:
            wanted = tensor_type(data_type, descriptor, fail)
        for name, value in (("readable", readable), ("writable", writable), ("exportable_to_gpu", exportable_to_gpu)):
            if value is not None:
                flags[name] = bool(value)
        with self._lock:
            tensor = MLTensor(
                self,
                wanted,
                self._backend.allocate(wanted, "tensor"),
                readable=flags.get("readable", False),
                writable=flags.get("writable", False),
                exportable_to_gpu=flags.get("exportable_to_gpu", False),
            )
            self._tensors.add(tensor)
            return tensor

    def create_host_tensor(self, shape: Any, data_type: str) -> MLTensor:
        """Return a zero-filled tensor that may be read and written (pywebnn's name for that)."""
        return self.create_tensor(shape, data_type, readable=True, writable=True)

    def create_constant_tensor(self, descriptor: Any, data: Any) -> MLTensor:
        """Return a tensor that graphs use as a constant, through `MLGraphBuilder.constant(tensor)`.

        Args:
            descriptor: mapping with `dataType` and `shape`.
            data: the elements; copied at once.

        Raises:
            InvalidStateError: the context is lost.
            MLTypeError: a bad descriptor, or data of another type or size.

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-createconstanttensor
        """
        self._check_alive("create_constant_tensor")
        fail = failing("create_constant_tensor")
        wanted, _ = parse_descriptor(descriptor, fail)
        array = frozen_array(to_array(data, wanted, fail, "data").copy())
        tensor = MLTensor(self, wanted, None, constant_data=array)
        self._tensors.add(tensor)
        return tensor

    def write_tensor(self, tensor: MLTensor, data: Any) -> None:
        """Queue a write of a whole tensor; `data` may be reused at once.

        Raises:
            MLTypeError: a tensor of another context, or data of another type or size.
            MLTensorStateError: destroyed or not writable.

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-writetensor
        """
        self._check_tensor(tensor, "write_tensor")
        if not tensor.writable:
            raise MLTensorStateError("the tensor is not writable", operator="write_tensor", got=repr(tensor))
        array = to_array(data, tensor._type, failing("write_tensor"), "data")
        with self._lock:
            tensor._storage.write(array)

    def read_tensor(self, tensor: MLTensor, output: Any = None) -> Any:
        """Read a whole tensor, after all work queued before.

        Args:
            tensor: a readable tensor of this context.
            output: array to fill; default a new one is returned.

        Returns:
            An array of the tensor's data type and shape; None where `output` was given.

        Raises:
            MLTypeError: a tensor of another context, or an output of another type or size.
            MLTensorStateError: destroyed or not readable.
            UnknownError: the device could not hand the data back.

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-readtensor
        """
        return self.read_tensor_async(tensor, output).result()

    def read_tensor_async(self, tensor: MLTensor, output: Any = None) -> MLPromise[Any]:
        """Submit a read like `read_tensor` and return a promise of its result."""
        self._check_tensor(tensor, "read_tensor")
        if not tensor.readable:
            raise MLTensorStateError("the tensor is not readable", operator="read_tensor", got=repr(tensor))
        into = None
        if output is not None:
            into = output_array(output, tensor._type, failing("read_tensor"), "output")
        with self._lock:
            pending = self._backend.read(tensor._storage, tensor._type)

        def wait() -> Any:
            array: Array = pending.result()
            if tensor.destroyed:
                raise InvalidStateError("the tensor was destroyed while it was read", operator="read_tensor")
            if into is None:
                return array
            into.reshape(-1)[:] = array.reshape(-1)
            return None

        return MLPromise(wait, pending.done)

    def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]) -> None:
        """Queue a run of a graph over tensors and return at once.

        Args:
            graph: a graph of this context.
            inputs: a tensor for every input; data types and shapes must be equal.
            outputs: a tensor for every output. No tensor may stand twice.

        Raises:
            MLTypeError: names, types or ownership are wrong, or a tensor stands twice.
            MLTensorStateError: a tensor was destroyed.
            InvalidStateError: the graph was destroyed.

        Example:
            >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
            >>> graph = b.build({"y": b.neg(v)})
            >>> source, result = (context.create_host_tensor([3], "float32") for _ in range(2))
            >>> context.write_tensor(source, [1, 2, 3])
            >>> context.dispatch(graph, {"v": source}, {"y": result})
            >>> print(context.read_tensor(result))
            [-1. -2. -3.]

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-dispatch
        """
        executable = self._executable_of(graph, "dispatch")
        fail = failing("dispatch")
        for what, wanted, given in (("input", graph.inputs, inputs), ("output", graph.outputs, outputs)):
            self._check_names(wanted, given, what, "dispatch")
        both = [*inputs.items(), *outputs.items()]
        seen: dict[int, str] = {}
        for name, tensor in both:
            if id(tensor) in seen:
                raise fail("a tensor stands twice among inputs and outputs", got=f"'{seen[id(tensor)]}' and '{name}'")
            seen[id(tensor)] = name
        for _, tensor in both:
            self._check_tensor(tensor, "dispatch")
        for wanted, given in ((graph.inputs, inputs), (graph.outputs, outputs)):
            for name, type_ in wanted.items():
                if given[name]._type != type_:
                    raise fail(
                        f"the tensor of '{name}' must have its data type and shape", got=repr(given[name]), allowed=str(type_)
                    )
        with self._lock:
            executable.dispatch({n: t._storage for n, t in inputs.items()}, {n: t._storage for n, t in outputs.items()})

    # end ----------------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Lose the context: `lost` settles, and every graph and tensor of it is destroyed. Idempotent.

        Spec: https://www.w3.org/TR/webnn/#dom-mlcontext-destroy
        """
        self._lose("destroy() was called")

    def _lose(self, message: str) -> None:
        with self._lock:
            if self._lost_event.is_set():
                return
            self._lost_info = MLContextLostInfo(message)
            self._lost_event.set()
            for graph in list(self._graphs):
                graph.destroy()
            for tensor in list(self._tensors):
                tensor.destroy()

    def __enter__(self) -> MLContext:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def _check_alive(self, operator: str) -> None:
        if self._lost_event.is_set():
            raise InvalidStateError("the context is lost", operator=operator, got=self._lost_info.message)

    def _executable_of(self, graph: Any, operator: str) -> Any:
        fail = failing(operator)
        if not isinstance(graph, MLGraph):
            raise fail("graph must be an MLGraph", got=type(graph).__name__)
        if graph._context is not self:
            raise fail("the graph belongs to another context")
        if graph.destroyed:
            raise InvalidStateError("the graph was destroyed", operator=operator)
        return graph._executable

    def _check_tensor(self, tensor: Any, operator: str) -> None:
        if not isinstance(tensor, MLTensor):
            raise MLTypeError("tensor must be an MLTensor", operator=operator, got=type(tensor).__name__)
        if tensor._context is not self:
            raise MLTypeError("the tensor belongs to another context", operator=operator, got=repr(tensor))
        tensor._check_usable(operator)

    def _forget_tensor(self, tensor: MLTensor) -> None:
        self._tensors.discard(tensor)

    def _forget_graph(self, graph: MLGraph) -> None:
        self._graphs.discard(graph)

    def __getattr__(self, name: str) -> Any:
        return camel_attribute(self, name)
