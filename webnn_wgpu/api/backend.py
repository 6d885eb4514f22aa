"""The backends that run a context's graphs: a WebGPU device, or the numpy reference if there is no adapter."""

from __future__ import annotations

import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..core.caps import Caps
from ..core.data_types import DATA_TYPES
from ..core.errors import InvalidStateError, NotSupportedError
from ..core.settings import forced_variants
from ..costs import Target
from ..ir.graph import Array, Graph
from ..ir.types import TensorType
from ..kernels.source_map import SourceMap
from ..kernels.spec import Grid, KernelSpec
from ..kernels.tuning import Sources, Tuning, tuning_files, tuning_for
from ..passes import PassReport, run_passes
from ..plan import ExecutionPlan, make_plan
from ..reference import interpret
from ..runtime.buffer import Buffer
from ..runtime.device import Device
from ..runtime.observing import Observer
from ..runtime.own_kernels import RunArgument, run_kernel
from ..runtime.pipelines import PipelineCache
from ..runtime.program import Program
from ..runtime.readback import StagingPool
from ..runtime.textures import TextureKernels, check_texture
from ..runtime.wrapping import WrappedBuffer
from .arrays import zeros
from .progress import Progress

ON_A_DEVICE = "Use a context with a WebGPU device, as wn.ml.create_context() returns it"
"""The next step after an error of an operation that the numpy reference does not have."""


class Pending(Protocol):
    """A submitted run or read, with arrays by name as result."""

    def done(self) -> bool:
        """Return whether the result is available, without waiting."""
        ...

    def result(self) -> dict[str, Array]:
        """Wait for the result and return it."""
        ...


class Storage(Protocol):
    """Memory of one tensor.

    Attributes:
        borrowed: whether the memory is a part of a caller's buffer.
        offset_bytes: the offset of the tensor in its buffer, in bytes.
    """

    borrowed: bool
    offset_bytes: int

    @property
    def size_bytes(self) -> int:
        """The size of the memory in bytes."""
        ...

    @property
    def memory(self) -> Any:
        """The whole memory that contains the tensor."""
        ...

    def write(self, data: Array) -> None:
        """Queue a write of the whole tensor."""
        ...

    def hand_out(self) -> Any:
        """Return the `wgpu.GPUBuffer` for the caller, if there is one."""
        ...

    def destroy(self) -> None:
        """Free the memory once queued work is done."""
        ...


class Executable(Protocol):
    """A compiled graph.

    Attributes:
        observer: the observer of every value of later runs by `start` and `dispatch`, or None.
    """

    observer: Observer | None

    def start(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> Pending:
        """Submit a run with arrays."""
        ...

    def dispatch(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Submit a run with storages."""
        ...

    def steps(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], max_ms: float) -> Generator[tuple[int, int]]:
        """Submit a run with storages, one run step after another."""
        ...

    def encode(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], encoder: Any, compute_pass: Any) -> None:
        """Record a run with storages into a caller's command encoder or compute pass."""
        ...

    def kernel_times(self, inputs: Mapping[str, Array]) -> Array | None:
        """Run once and return the microseconds of each kernel on the device, or None without timestamps."""
        ...

    def override(self, label: str, source: SourceMap) -> None:
        """Replace the source of a dispatch of the plan for later runs."""
        ...

    def restore(self, labels: Collection[str]) -> None:
        """Restore the plan's own kernels of these dispatches for later runs."""
        ...

    def destroy(self) -> None:
        """Free everything."""
        ...


class Backend(Protocol):
    """The interface of a context to the backend of its graphs."""

    lock: Any
    accelerated: bool
    caps: Caps
    target: Target
    description: str

    def compile(
        self, graph: Graph, disabled_passes: Collection[str], progress: Progress | None, tuning: Sources
    ) -> tuple[Executable, ExecutionPlan | None, tuple[PassReport, ...]]:
        """Compile a source graph."""
        ...

    def install(self, plan: ExecutionPlan, progress: Progress | None) -> Executable:
        """Create all objects of a plan on the device."""
        ...

    def plan(
        self, graph: Graph, disabled_passes: Collection[str], tuning: Sources
    ) -> tuple[ExecutionPlan | None, tuple[PassReport, ...]]:
        """Return the plan of `compile` and the reports of the passes, without creating objects on the device."""
        ...

    def compile_kernel(self, spec: KernelSpec) -> None:
        """Compile one kernel for later graphs."""
        ...

    def run_kernel(self, source: str, arguments: Sequence[RunArgument], grid: Grid) -> Pending | None:
        """Submit a run of one kernel. Return the pending arrays that it writes, or None if it writes none."""
        ...

    def allocate(self, wanted: TensorType, label: str) -> Storage:
        """Return zero-filled memory of a tensor."""
        ...

    def wrap(self, buffer: Any, wanted: TensorType, offset: int) -> Storage:
        """Return memory of a tensor in a part of a caller's buffer."""
        ...

    def read(self, storage: Any, wanted: TensorType) -> Pending:
        """Submit a read of a tensor. Its result is the array, under the name "data"."""
        ...

    def memory(self, executables: Sequence[Any]) -> dict[str, int]:
        """Return the memory of compiled graphs, in bytes by owner."""
        ...

    def close(self) -> None:
        """Free the objects that a lost context no longer needs."""
        ...


class DeviceBackend:
    """The backend that runs graphs as compute shaders on a device."""

    def __init__(self, device: Device, tuning: Sources = ()) -> None:
        self.device, self.lock, self.caps, self.target = device, device.lock, device.caps, device.target
        self.tuning = tuning
        with device.lock:
            device.users += 1
        self.accelerated = not device.caps.is_software
        self.description = device.description

    def compile(
        self, graph: Graph, disabled_passes: Collection[str], progress: Progress | None, tuning: Sources
    ) -> tuple[Program, ExecutionPlan, tuple[PassReport, ...]]:
        """Run the passes, plan, and create all objects on the device."""
        plan, reports = self.plan(graph, disabled_passes, tuning)
        return self.install(plan, progress), plan, reports

    def install(self, plan: ExecutionPlan, progress: Progress | None) -> Program:
        """Create all objects of a plan on the device."""
        return Program(self.device, plan, progress)

    def plan(
        self, graph: Graph, disabled_passes: Collection[str], tuning: Sources
    ) -> tuple[ExecutionPlan, tuple[PassReport, ...]]:
        """Run the passes and plan."""
        optimized, reports = run_passes(graph, self.target, disabled_passes)
        return make_plan(optimized, self.target, forced_variants(), self.measured(tuning)), reports

    def measured(self, tuning: Sources) -> Tuning | None:
        """Return the tuning of kernel variants: from the sources, the context's, the user's files, and the package's.

        Files are not read if the graphs are compiled for an explicitly requested kind of device.
        """
        if tuning is None or self.tuning is None:
            return None
        files = [] if self.target.forced else tuning_files(self.caps)
        return tuning_for(self.caps, [*tuning, *self.tuning, *files])

    @property
    def textures(self) -> TextureKernels:
        """The kernels that read and draw textures."""
        return TextureKernels.of(self.device)

    def check_texture(self, texture: Any, usage: str) -> tuple[int, int]:
        """Return height and width of a texture of the device, after a check of its usage."""
        return check_texture(self.device, texture, usage)

    def compile_kernel(self, spec: KernelSpec) -> None:
        """Create the pipeline of a kernel."""
        with self.device.translated("compiling a kernel"):
            PipelineCache.of(self.device).get(spec)

    def run_kernel(self, source: str, arguments: Sequence[RunArgument], grid: Grid) -> Pending | None:
        """Submit a run of one kernel."""
        return run_kernel(self.device, source, arguments, grid)

    def allocate(self, wanted: TensorType, label: str) -> Buffer:
        """Return a zero-filled buffer."""
        return self.device.create_buffer(wanted.size_bytes, label)

    def wrap(self, buffer: Any, wanted: TensorType, offset: int) -> WrappedBuffer:
        """Return a part of a caller's buffer."""
        return WrappedBuffer.of(self.device, buffer, offset, wanted.size_bytes)

    def read(self, storage: Buffer, wanted: TensorType) -> Pending:
        """Submit a copy of a buffer to a staging buffer."""
        return StagingPool.of(self.device).read(storage, np.empty(wanted.shape, wanted.numpy))

    def memory(self, executables: Sequence[Program]) -> dict[str, int]:
        """Return the memory of programs on the device, in bytes by owner. Shared weights count once."""
        weights = {id(weight): weight.size_bytes for program in executables for weight in program.memory.weights}
        held = {"weights": sum(weights.values()), "slots": 0, "inputs and outputs": 0, "uniforms": 0}
        held["staging"] = StagingPool.of(self.device).size_bytes
        for program in executables:
            for owner, size in program.memory.held.items():
                held[owner] += size
        return held

    def close(self) -> None:
        """Free the compiled kernels of a device that was opened for contexts, if this was its last context."""
        self.device.close()


class HostStorage:
    """A tensor in the host's memory."""

    borrowed = False
    offset_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The size of the array in bytes."""
        return self.array.nbytes

    @property
    def memory(self) -> HostStorage:
        """Itself."""
        return self

    def __init__(self, array: Array) -> None:
        self.array = array

    def write(self, data: Array) -> None:
        """Copy `data` into the tensor."""
        self.array = data.copy()

    def hand_out(self) -> None:
        """Return None: there is no buffer."""

    def destroy(self) -> None:
        """Free the memory."""
        self.array = np.zeros(0, self.array.dtype)


class Finished:
    """A run or read that is complete at its submit."""

    def __init__(self, value: dict[str, Array]) -> None:
        self._value = value

    def done(self) -> bool:
        """Return True."""
        return True

    def result(self) -> dict[str, Array]:
        """Return the result."""
        return dict(self._value)


class ReferenceExecutable:
    """A graph that the interpreter runs."""

    def __init__(self, graph: Graph) -> None:
        self._graph: Graph | None = graph
        self.observer: Observer | None = None

    def start(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> Finished:
        """Run the graph now."""
        if self._graph is None:
            raise InvalidStateError("the graph was destroyed", hint="Build it again")
        results = interpret(self._graph, inputs, self.observer)
        return Finished({name: results[name].copy() for name in outputs})

    def dispatch(self, inputs: Mapping[str, HostStorage], outputs: Mapping[str, HostStorage]) -> None:
        """Run the graph now, over host tensors."""
        results = self.start({name: storage.array for name, storage in inputs.items()}, list(outputs)).result()
        for name, storage in outputs.items():
            storage.array = results[name]

    def steps(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], max_ms: float) -> Generator[tuple[int, int]]:
        """Run the graph in one step."""
        self.dispatch(inputs, outputs)
        yield 1, 1

    def encode(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], encoder: Any, compute_pass: Any) -> None:
        """Raise NotSupportedError: there is no device to record for."""
        raise no_device()

    def kernel_times(self, inputs: Mapping[str, Array]) -> None:
        """Return None: there are no kernels."""

    def override(self, label: str, source: SourceMap) -> None:
        """Raise NotSupportedError: there are no kernels."""
        raise NotSupportedError("the numpy reference has no kernels", label=label, hint=ON_A_DEVICE)

    def restore(self, labels: Collection[str]) -> None:
        """Do nothing: there are no kernels."""

    def destroy(self) -> None:
        """Free the graph."""
        self._graph = None


class ReferenceBackend:
    """The backend that runs graphs in numpy: the oracle, and the fallback of a host without any adapter."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.accelerated = False
        self.caps = Caps(features=frozenset(("shader-f16", "shader-int64")), adapter_type="CPU", device="numpy reference")
        self.target = Target.of(self.caps)
        self.description = "numpy reference"

    def compile(
        self, graph: Graph, disabled_passes: Collection[str], progress: Progress | None, tuning: Sources
    ) -> tuple[ReferenceExecutable, None, tuple[PassReport, ...]]:
        """Run the passes. The interpreter has no plan."""
        optimized, reports = run_passes(graph, self.target, disabled_passes)
        return ReferenceExecutable(optimized), None, reports

    def install(self, plan: ExecutionPlan, progress: Progress | None) -> Executable:
        """Raise NotSupportedError: there is no device for the plan's kernels."""
        raise no_device()

    def plan(self, graph: Graph, disabled_passes: Collection[str], tuning: Sources) -> tuple[None, tuple[PassReport, ...]]:
        """Run the passes. There is no plan to return."""
        return None, run_passes(graph, self.target, disabled_passes)[1]

    def compile_kernel(self, spec: KernelSpec) -> None:
        """Do nothing: there is no device."""

    def run_kernel(self, source: str, arguments: Sequence[RunArgument], grid: Grid) -> Pending | None:
        """Raise NotSupportedError: there is no device to run it."""
        raise no_device()

    def allocate(self, wanted: TensorType, label: str) -> HostStorage:
        """Return a zero-filled host tensor."""
        assert wanted.data_type in DATA_TYPES
        return HostStorage(zeros(wanted))

    def wrap(self, buffer: Any, wanted: TensorType, offset: int) -> HostStorage:
        """Raise NotSupportedError: there is no device with buffers."""
        raise no_device()

    def read(self, storage: HostStorage, wanted: TensorType) -> Finished:
        """Return a copy of the tensor."""
        return Finished({"data": storage.array.copy()})

    def memory(self, executables: Sequence[Any]) -> dict[str, int]:
        """Return an empty mapping: graphs have no memory on a device."""
        return {}

    def close(self) -> None:
        """Do nothing: the host has no objects to free."""


def no_device() -> NotSupportedError:
    """Return the error of an operation that requires a device."""
    return NotSupportedError("the context has no WebGPU device", got="numpy reference", hint=ON_A_DEVICE)
