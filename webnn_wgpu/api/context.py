"""`MLContext`: where graphs are built, run and fed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ..core.caps import Caps
from ..core.errors import (
    MLTypeError,
    NotSupportedError,
    WebNNError,
)
from ..ir.graph import Array
from .arrays import (
    check_apart,
    check_names,
    failing,
    fill,
    output_array,
)
from .backend import DeviceBackend
from .graph import MLGraph
from .interop import Interop
from .limits import MLOpSupportLimits, op_support_limits
from .options import camel_attribute
from .promise import MLPromise
from .recovery import Recovery
from .results import MLComputeResult, MLContextLostInfo, MLMemory
from .tensor import MLTensor
from .tensors import Tensors
from .textures import Textures

if TYPE_CHECKING:
    from .builder import MLGraphBuilder
    from .types import (
        MLPowerPreference,
        TensorData,
        WritableArray,
    )

logger = logging.getLogger("webnn_wgpu")


class MLContext(Tensors, Interop, Textures, Recovery):
    """A device (or the numpy reference) with its graphs and tensors. `ML.create_context` returns it.

    Calls from several threads are serialized. A context is a context manager: the end of a `with` block destroys it.

    Example:
        >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
        >>> graph = b.build({"y": b.relu(v)})
        >>> print(context.compute(graph, {"v": np.float32([-1, 0, 2])})["y"])
        [0. 0. 2.]

    Spec: https://www.w3.org/TR/webnn/#api-mlcontext
    """

    _builder_type: Callable[[MLContext], MLGraphBuilder] | None = None
    """What makes the context's builders, if not `MLGraphBuilder`."""

    # what it is ---------------------------------------------------------------------------------------------------

    @property
    def lost(self) -> MLPromise[MLContextLostInfo]:
        """A promise that settles, with an `MLContextLostInfo`, when the context becomes unusable."""
        return self._lost

    @property
    def power_preference(self) -> MLPowerPreference:
        """The requested power preference."""
        return self._power_preference

    @property
    def accelerated(self) -> bool:
        """Whether graphs run on hardware."""
        return self._backend.accelerated

    @property
    def device_type(self) -> Literal["gpu", "cpu"]:
        """The kind of device by the 2024 text: `gpu`, or `cpu` for software adapters and the numpy reference."""
        return "gpu" if self.accelerated else "cpu"

    @property
    def caps(self) -> Caps:
        """The features, limits, subgroup size and identity of the device."""
        return self._backend.caps

    @property
    def device(self) -> Any:
        """The `wgpu.GPUDevice` that graphs run on. None on the numpy reference."""
        return self._backend.device.gpu if isinstance(self._backend, DeviceBackend) else None

    @property
    def description(self) -> str:
        """The names of adapter, driver and backend, as one text for people."""
        return self._backend.description

    def __repr__(self) -> str:
        return f"MLContext({self.description}{', lost' if self._loss.event.is_set() else ''})"

    def op_support_limits(self) -> MLOpSupportLimits:
        """Return the data types and ranks that each operator supports on this device.

        Returns:
            A mapping with the specification's keys, also in snake_case: `preferredInputLayout`, `maxTensorByteLength`,
            `input`, `constant`, `output`, and per operator its operands, each with `dataTypes` and `rankRange`. Two more
            keys are `extensions`, with the extension operators, and `differentiable`, the list of operators with gradients.

        Example:
            >>> context.op_support_limits()["relu"]["input"]["rankRange"]["max"]
            8

        Spec: https://www.w3.org/TR/webnn/#api-mlcontext-opsupportlimits
        """
        return op_support_limits(self.caps)

    def memory(self) -> MLMemory:
        """Return the bytes that the context occupies on its device, by owner. The numpy reference counts tensors alone.

        Idle staging buffers belong to the device: all contexts on one device count the same ones.

        Returns:
            A mapping of owner to size in bytes.

        Example:
            >>> with wn.ml.create_context(context.device) as own:
            ...     tensor = own.create_tensor([1000], "float32")
            ...     own.memory()["tensors"]
            4000
        """
        with self._lock:
            executables = [graph._executable for graph in self._graphs if not graph.destroyed]
            tensors = [tensor._storage for tensor in self._tensors if tensor._storage is not None]
            borrowed = sum(storage.size_bytes for storage in tensors if storage.borrowed)
            held = {"tensors": sum(storage.size_bytes for storage in tensors) - borrowed}
            return MLMemory({**self._backend.memory(executables), **held}, borrowed)

    def backend_info(self) -> dict[str, Any]:
        """Return the description of the backend and its adapter, under pywebnn's keys.

        Returns:
            A mapping with `backend`, `device`, `adapter`, `accelerated_available`, `compiled_features` and
            `backend_available`.

        Example:
            >>> context.backend_info()["backend"]
            'webgpu'
        """
        backend = "reference" if self.device is None else "webgpu"
        return {
            "backend": backend,
            "device": self.device_type,
            "adapter": self.description,
            "accelerated_available": self.accelerated,
            "compiled_features": {backend: True},
            "backend_available": True,
        }

    def convert_to_onnx(self, graph: MLGraph, output_path: str | os.PathLike[str]) -> None:
        """Write a graph as an ONNX file, as `MLGraph.save` does for paths that end in `.onnx`. The name is pywebnn's.

        Args:
            graph: a graph of this context.
            output_path: the file to write.

        Raises:
            NotSupportedError: an operator that ONNX does not have, or the extra `onnx` is not installed.
        """
        self._check_graph(graph, "convert_to_onnx")
        import_module("webnn_wgpu.exporters.saving").save(graph, output_path, kind="onnx")

    def convert_to_coreml(self, graph: MLGraph, output_path: str | os.PathLike[str]) -> None:
        """Write a graph as a Core ML package, as `MLGraph.save` does for paths that end in `.mlpackage`. The name is pywebnn's.

        Args:
            graph: a graph of this context.
            output_path: the package to write.

        Raises:
            NotSupportedError: an operator that Core ML does not have, or the extra `coreml` is not installed.
        """
        self._check_graph(graph, "convert_to_coreml")
        import_module("webnn_wgpu.exporters.saving").save(graph, output_path, kind="coreml")

    def execute_with_coreml(self, graph: MLGraph, *_arguments: Any) -> NoReturn:
        """Raise NotSupportedError. In pywebnn the method runs a graph by Core ML, but this package runs graphs on WebGPU.

        Args:
            graph: a graph of this context.
            *_arguments: pywebnn's further arguments.

        Raises:
            NotSupportedError: always. The hint names `compute`.
        """
        raise NotSupportedError(
            "graphs do not run on Core ML", operator="execute_with_coreml", got=repr(graph), hint="Use compute."
        )

    def dispatch_with_host_tensors(
        self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]
    ) -> None:
        """Queue a run: pywebnn's name of `dispatch`, with the same errors.

        Args:
            graph: a graph of this context.
            inputs: a tensor for each input, as for `dispatch`.
            outputs: a tensor for each output, as for `dispatch`.
        """
        self.dispatch(graph, inputs, outputs)

    def dispatch_with_device_tensors(
        self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]
    ) -> None:
        """Queue a run: pywebnn's name of `dispatch`, with the same errors.

        Args:
            graph: a graph of this context.
            inputs: a tensor for each input, as for `dispatch`.
            outputs: a tensor for each output, as for `dispatch`.
        """
        self.dispatch(graph, inputs, outputs)

    def create_graph_builder(self, profile: Literal["2026", "2024"] = "2026") -> MLGraphBuilder:
        """Return a new `MLGraphBuilder` for this context. The name is pywebnn's.

        Args:
            profile: "2026", or "2024" for the rules of the April 2024 text.

        Raises:
            InvalidStateError: the context is lost.
            MLTypeError: an unknown profile.

        Example:
            >>> context.create_graph_builder().constant("float32", 2)
            MLOperand(float32[])
        """
        from .builder import MLGraphBuilder

        if self._builder_type is not None:
            return self._builder_type(self)
        return MLGraphBuilder(self, profile=profile)

    # arrays in, arrays out ----------------------------------------------------------------------------------------

    def compute(
        self,
        graph: MLGraph,
        inputs: Mapping[str, TensorData],
        outputs: Mapping[str, WritableArray | None] | None = None,
    ) -> MLComputeResult:
        """Run a graph on arrays and wait for the results.

        Args:
            graph: a graph of this context.
            inputs: an array for each input, by name, with the input's data type and number of elements. The page
                `docs/start/first-graph.md` lists all accepted types.
            outputs: arrays to fill, by name, for all or some of the graph's outputs. None returns all in new arrays.

        Returns:
            A mapping of output name to array, in the outputs' data types and shapes.

        Raises:
            MLTypeError: a missing or unknown name, a wrong data type or size, a graph of another context.
            InvalidStateError: the graph was destroyed or the context lost.
            OperationError: the device failed to run the graph.

        Example:
            >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
            >>> graph = b.build({"y": b.exp(v)})
            >>> print(context.compute(graph, {"v": [0, 0, 0]})["y"])
            [1. 1. 1.]

        Spec: https://www.w3.org/TR/2024/CRD-webnn-20240415/#api-mlcontext-compute
        """
        return self._compute(graph, inputs, outputs).result()

    def compute_async(
        self,
        graph: MLGraph,
        inputs: Mapping[str, TensorData],
        outputs: Mapping[str, WritableArray | None] | None = None,
    ) -> MLPromise[MLComputeResult]:
        """Submit a run like `compute`, and return a promise of its result.

        The application must not change the arrays before the promise settles.

        Args:
            graph: a graph of this context.
            inputs: an array for each input, as for `compute`.
            outputs: arrays to fill, as for `compute`.

        Returns:
            A promise that settles with the result of `compute`.

        Raises:
            MLTypeError, InvalidStateError, OperationError: as `compute` does, from the promise.

        Example:
            >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
            >>> graph = b.build({"y": b.abs(v)})
            >>> print(context.compute_async(graph, {"v": np.float32([-1, 0, 2])}).result()["y"])
            [1. 0. 2.]
        """
        return MLPromise[MLComputeResult].attempt(lambda: self._compute(graph, inputs, outputs))

    def _compute(self, graph: Any, inputs: Any, outputs: Any) -> MLPromise[MLComputeResult]:
        fail = failing("compute")
        arrays = self._checked_inputs(graph, inputs, "compute")
        given: dict[str, Array] = {}
        names = list(graph.outputs)
        if outputs is not None:
            check_names(graph.outputs, outputs, "output", fail, subset=True)
            names = list(outputs)
            given = {n: output_array(a, graph.outputs[n], fail, f"output '{n}'") for n, a in outputs.items() if a is not None}
            check_apart(given, fail)
        with self._guarded("compute"), self._lock:
            pending = graph._executable.start(arrays, names)

        def wait() -> MLComputeResult:
            with self._guarded("compute"):
                results = pending.result()
            self._check_alive("compute")
            for name, array in given.items():
                fill(array, results[name])
            own: Mapping[str, Any] = outputs or {}
            return MLComputeResult(inputs, {n: own[n] if n in given else a for n, a in results.items()})

        return MLPromise(wait, pending.done)

    # runs over tensors -------------------------------------------------------------------------------------------

    def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLTensor], outputs: Mapping[str, MLTensor]) -> None:
        """Queue a run of a graph over tensors and return at once.

        Args:
            graph: a graph of this context.
            inputs: a tensor for each input, with its data type and shape.
            outputs: a tensor for each output, with its data type and shape. All tensors must be different ones, except that
                an output with an alias takes the tensor of that input.

        Raises:
            MLTypeError: names, types or ownership are wrong, or one tensor is given twice.
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
        try:  # as `_guarded`, which would take longer than to record a small graph
            with self._lock:
                storages = self._storages(graph, inputs, outputs, "dispatch")
                graph._executable.dispatch(*storages)
        except WebNNError as error:
            self._failed(error, "dispatch")
            raise

    def dispatch_steps(
        self,
        graph: MLGraph,
        inputs: Mapping[str, MLTensor],
        outputs: Mapping[str, MLTensor],
        *,
        max_ms_per_submit: float = 4.0,
    ) -> Iterator[tuple[int, int]]:
        """Run a long graph over tensors in several submits, one for each step of the iterator: `for _ in ...: draw_a_frame()`.

        The first run measures each kernel in a submit of its own, and waits for it. Later runs fill each submit with kernels
        up to the bound, and do not wait. The graph refuses other runs until the last step, or until the iterator is closed.
        Until then, the contents of the outputs are undefined. Do not submit encoded runs of the same graph in between: they
        use the same memory for intermediate values.

        Args:
            graph: a graph of this context.
            inputs: a tensor for each input, as for `dispatch`.
            outputs: a tensor for each output, as for `dispatch`.
            max_ms_per_submit: the maximum total time of the kernels of one submit, in milliseconds. A kernel that takes
                longer has a submit of its own.

        Yields:
            The number of submitted kernels, and the number of all kernels.

        Raises:
            MLTypeError, MLTensorStateError, InvalidStateError: as `dispatch` does, or the bound is not positive.

        Example:
            >>> v = b.input("v", {"dataType": "float32", "shape": [3]})
            >>> graph = b.build({"y": b.softmax(b.neg(v), axis=0)})
            >>> source, result = (context.create_host_tensor([3], "float32") for _ in range(2))
            >>> list(context.dispatch_steps(graph, {"v": source}, {"y": result}, max_ms_per_submit=8))
            [(1, 2), (2, 2)]
        """
        if not max_ms_per_submit > 0:
            raise MLTypeError("max_ms_per_submit must be positive", operator="dispatch_steps", got=repr(max_ms_per_submit))
        with self._guarded("dispatch_steps"), self._lock:
            storages = self._storages(graph, inputs, outputs, "dispatch_steps")
            steps = graph._executable.steps(*storages, max_ms_per_submit)
        return self._each(steps)

    def _each(self, steps: Generator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        # Closed explicitly: a closed generator may keep its variables, as in Python 3.12, and the run would not end.
        with closing(steps):
            while True:
                with self._guarded("dispatch_steps"), self._lock:
                    step = next(steps, None)
                if step is None:
                    return
                yield step

    # end ----------------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Lose the context: `lost` settles, and all its graphs and tensors are destroyed. Further calls have no effect.

        Your own device and wrapped buffers remain.

        Spec: https://www.w3.org/TR/webnn/#dom-mlcontext-destroy
        """
        self._lose("destroy() was called")

    def __enter__(self) -> MLContext:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        powerPreference = power_preference
        deviceType = device_type
        opSupportLimits = op_support_limits
        backendInfo = backend_info
        convertToOnnx = convert_to_onnx
        convertToCoreml = convert_to_coreml
        executeWithCoreml = execute_with_coreml
        dispatchWithHostTensors = dispatch_with_host_tensors
        dispatchWithDeviceTensors = dispatch_with_device_tensors
        createGraphBuilder = create_graph_builder
        computeAsync = compute_async
        dispatchSteps = dispatch_steps
    else:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)
