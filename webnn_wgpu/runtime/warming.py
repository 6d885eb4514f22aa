"""Having a driver compile kernels before they are first run.

Drivers that compile when a kernel is first dispatched do so too where it is dispatched for nothing. llvmpipe compiles one
kernel after the other on a device, but what another device has compiled it finds in its cache on disk: there kernels are
compiled on devices of their own, side by side, while the host makes the others and uploads the weights. What is not begun by
then the program's own device compiles.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

import wgpu

from ..core import cache
from ..core.errors import OperationError, WebNNError
from ..kernels.source_map import SourceMap
from ..kernels.sources import templates_digest
from ..kernels.spec import KernelSpec
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch
from .device import Device
from .messages import compiler_message
from .pipelines import Pipeline, PipelineCache
from .weights import TEXTURE_USAGE

logger = logging.getLogger("webnn_wgpu")

_FEWEST_KERNELS = 3
"""New kernels of a program from which on lanes pay: to open a device takes as long as to compile a small kernel."""

_MOST_LANES = 8
"""Devices that compile side by side: each takes memory of its own for what it compiles."""


_MARKS, _MOST_MARKS_BYTES = "compiled", 64 * 1024
"""Where it is noted which programs a driver has compiled, and how many bytes of such notes are kept: some two thousand."""


@dataclass(frozen=True)
class Use:
    """What tells two uses of a kernel apart for a driver: llvmpipe compiles it anew for some values and sizes.

    Attributes:
        uniforms: the uniform data.
        textures: binding, width and height of each texture.
    """

    uniforms: bytes = b""
    textures: tuple[tuple[int, int, int], ...] = ()


class WarmUp:
    """Has the driver compile the kernels of one program, and is done at the end of its `with` block.

    Args:
        device: where the kernels will run.
        plan: the program.
        kernels: how many of its kernels are new to this process.
        resources: returns the resources of a dispatch's uniforms and textures by binding; textures are there when the block
            ends.
    """

    def __init__(
        self, device: Device, plan: ExecutionPlan, kernels: int, resources: Callable[[PlannedDispatch], Mapping[int, Any]]
    ) -> None:
        self._device, self._plan, self._resources = device, plan, resources
        self._mark = _mark(device, plan) if kernels >= _FEWEST_KERNELS and _compiles_side_by_side(device) else ""
        # What an earlier process had compiled the driver still has, in all likelihood: lanes would cost more than they save.
        self._lanes = _Lanes(device) if self._mark and cache.read(self._mark) is None else None
        self._begun: list[tuple[Future[None] | None, Pipeline, Mapping[Use, PlannedDispatch]]] = []
        self._elsewhere: dict[KernelSpec, Future[None]] = {}

    def begin_elsewhere(self, spec: KernelSpec, dispatches: Iterable[PlannedDispatch], source: str) -> None:
        """Begin to compile a kernel that is new on a lane, if there is one, while the program's device makes its pipeline."""
        if self._lanes is not None:
            uses = tuple({_use(self._plan, planned): None for planned in dispatches})
            self._elsewhere[spec] = self._lanes.start(spec, uses, len(source))

    def start(self, kernel: Pipeline, dispatches: Iterable[PlannedDispatch]) -> None:
        """Begin to compile a kernel for what is new in its uses by dispatches."""
        uses = {_use(self._plan, planned): planned for planned in dispatches}
        new = {use: planned for use, planned in uses.items() if use not in kernel.warm}
        if not new:
            return
        kernel.warm.update(new)
        if self._lanes is not None:
            begun = self._elsewhere.pop(kernel.spec, None) or self._lanes.start(kernel.spec, tuple(new), kernel.length)
            self._begun.append((begun, kernel, new))
        elif kernel.spec.reads_texture:
            self._begun.append((None, kernel, new))
        else:
            self._dispatch_nothing(kernel, new)

    def _dispatch_nothing(self, kernel: Pipeline, uses: Mapping[Use, PlannedDispatch]) -> None:
        dispatch_nothing(PipelineCache.of(self._device), kernel, [self._resources(planned) for planned in uses.values()])

    def __enter__(self) -> WarmUp:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self._compile_the_rest()
        finally:
            if self._lanes is not None:
                self._lanes.close()
        if error is not None:
            for _, kernel, uses in self._begun:
                kernel.warm.difference_update(uses)
            return
        for compiled, kernel, uses in self._begun:
            if compiled is not None and not compiled.cancelled():
                self._dispatch_nothing(kernel, uses)
        self._device.wait()
        if self._lanes is not None:
            cache.write(self._mark, "")
            cache.prune(_MARKS, _MOST_MARKS_BYTES)

    def _compile_the_rest(self) -> None:
        """Compile what no lane has begun, the shortest first: lanes take the longest, two of which would need much memory."""
        for compiled, kernel, uses in sorted(self._begun, key=lambda begun: begun[1].length):
            if compiled is None or compiled.cancel():
                self._dispatch_nothing(kernel, uses)
                if compiled is not None:
                    self._device.wait()
                    _return_freed_memory()


@dataclass(frozen=True)
class _Job:
    """A kernel to be compiled on a lane; `length` is that of its source, as `Pipeline` has it."""

    spec: KernelSpec
    uses: Sequence[Use]
    length: int
    compiled: Future[None]


class _Lanes:
    """Threads with a device each, on which the driver compiles kernels that another device will find in its cache."""

    def __init__(self, device: Device) -> None:
        gpu = device.gpu
        self._request = partial(
            gpu.adapter.request_device_sync,
            label="webnn_wgpu compile",
            required_features=sorted(gpu.features),
            required_limits=dict(gpu.limits),
        )
        self._caps = device.caps
        self._waiting: list[_Job] = []
        self._lock = threading.Lock()
        self._idle: SimpleQueue[Device] = SimpleQueue()
        # One processor is left to the host, and to the program's device.
        self._pool = ThreadPoolExecutor(min(_processors() - 1, _MOST_LANES), "webnn_wgpu-compile")
        self._pool.submit(self._open_one)  # while the host renders the first kernel

    def start(self, spec: KernelSpec, uses: Sequence[Use], length: int) -> Future[None]:
        """Have a kernel compiled once no longer one waits, and return what tells when it is in the driver's cache."""
        job = _Job(spec, uses, length, Future())
        with self._lock:
            self._waiting.append(job)
        self._pool.submit(self._compile_longest)
        return job.compiled

    def close(self) -> None:
        """Leave what was not begun, wait for the rest, and give the memory back."""
        with self._lock:
            self._waiting.clear()
        self._pool.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().release()
        _return_freed_memory()

    def _compile_longest(self) -> None:
        """Compile the longest kernel that waits, if nobody has taken it back."""
        while (job := self._take_longest()) is not None:
            if job.compiled.set_running_or_notify_cancel():
                self._compile(job.spec, job.uses)
                job.compiled.set_result(None)
                return

    def _take_longest(self) -> _Job | None:
        with self._lock:
            longest = max(self._waiting, key=lambda job: job.length, default=None)
            if longest is not None:
                self._waiting.remove(longest)
            return longest

    def _open_one(self) -> None:
        with _logged("no device was opened ahead"):
            self._idle.put(self._open())

    def _open(self) -> Device:
        return Device(self._request(), owned=True, caps=self._caps)

    def _compile(self, spec: KernelSpec, uses: Sequence[Use]) -> None:
        with _logged("%s was not compiled ahead", spec):
            try:
                lane = self._idle.get_nowait()
            except Empty:
                lane = self._open()
            try:
                _compile_on(lane, spec, uses)
            finally:
                self._idle.put(lane)
            _return_freed_memory()


@contextmanager
def _logged(failed: str, *names: object) -> Generator[None]:
    """Note what kept a lane from compiling: the program's device will compile, and fail where that is for good."""
    try:
        yield
    except (WebNNError, wgpu.GPUError, RuntimeError) as error:
        logger.info(failed + ": %s", *names, error)


def _compile_on(lane: Device, spec: KernelSpec, uses: Sequence[Use]) -> None:
    """Have a lane's driver compile a kernel, and let go of all that it made before memory is given back."""
    cache = PipelineCache(lane)  # of its own, for what the driver has made would take memory
    dispatch_nothing(cache, cache.get(spec), [_stand_ins(lane, spec, use) for use in uses])
    lane.wait()


def _return_freed_memory() -> None:
    """Have glibc give back what was freed: what a compiler has allocated, tens of MB, it keeps for the compiler's thread.

    So what compilers on several threads need at their worst does not add up.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def dispatch_nothing(cache: PipelineCache, kernel: Pipeline, uses: Iterable[Mapping[int, Any]]) -> None:
    """Dispatch no workgroups of a kernel.

    Args:
        cache: that of the device.
        kernel: the kernel, of this cache.
        uses: for each use, the resources of some bindings; the others get a buffer that nothing is read from.
    """
    gpu = cache.device.gpu
    count = len(kernel.spec.bindings) + bool(kernel.spec.uniforms)
    with cache.device.translated("trying a kernel"):
        encoder = gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(kernel.pipeline)
        for given in uses:
            entries = [{"binding": i, "resource": given[i] if i in given else cache.nothing(i)} for i in range(count)]
            compute.set_bind_group(0, gpu.create_bind_group(layout=kernel.layout, entries=entries))
            compute.dispatch_workgroups(0, 1, 1)
        compute.end()
    cache.device.submit(encoder, ())


def try_kernel(cache: PipelineCache, kernel: Pipeline, resources: Mapping[int, Any], source: SourceMap, label: str) -> None:
    """Have the driver compile a kernel that is not the package's, which may want buffers of the very sizes it will have.

    Raises:
        OperationError: it wants larger ones.
    """
    try:
        dispatch_nothing(cache, kernel, [resources])
    except OperationError as error:
        found = compiler_message(str(error.__cause__), source)
        raise OperationError("the kernel does not fit its buffers", label=label, got=found) from error


def _stand_ins(lane: Device, spec: KernelSpec, use: Use) -> dict[int, Any]:
    """Return resources on a lane's device that a driver takes for those of a use."""
    gpu = lane.gpu
    resources: dict[int, Any] = {}
    for binding, width, height in use.textures:
        # Of the sizes it matters whether they are powers of two.
        across, down = (4 if n & (n - 1) == 0 else 3 for n in (width, height))
        texture = gpu.create_texture(size=(across, down, 1), format="rgba32float", usage=TEXTURE_USAGE)
        resources[binding] = texture.create_view()
    if use.uniforms:
        buffer = gpu.create_buffer_with_data(data=use.uniforms, usage=wgpu.BufferUsage.UNIFORM)
        resources[len(spec.bindings)] = {"buffer": buffer, "offset": 0, "size": len(use.uniforms)}
    return resources


def _use(plan: ExecutionPlan, planned: PlannedDispatch) -> Use:
    """Return the use that a dispatch makes of its kernel."""
    textures: list[tuple[int, int, int]] = []
    for i, resource in enumerate(planned.bindings):
        constant = plan.constants[int(resource.key)] if resource.kind == "constant" else None
        if constant is not None and constant.packing is not None and constant.packing.texture:
            height, width, _ = constant.packing.packed_shape(constant.type.shape)
            textures.append((i, width, height))
    return Use(bytes(plan.uniforms[planned.uniform_offset : planned.uniform_offset + planned.uniform_size]), tuple(textures))


def _mark(device: Device, plan: ExecutionPlan) -> str:
    """Return the name under which it is noted that the driver has compiled a program."""
    weights = [(use.type, use.packing) for use in plan.constants]
    program = ([d.spec for d in plan.dispatches], plan.uniforms, weights)
    return f"{_MARKS}/{cache.key_of(wgpu.__version__, templates_digest(), device.caps.to_json(), program)}"


def _compiles_side_by_side(device: Device) -> bool:
    """Whether the driver compiles when a kernel is first dispatched, and what it compiles for one device serves another."""
    switch = os.environ.get("MESA_SHADER_CACHE_DISABLE", os.environ.get("MESA_GLSL_CACHE_DISABLE", ""))
    cached = switch.lower() not in ("1", "true", "yes", "y", "on")
    return device.caps.device.startswith("llvmpipe") and cached and _processors() > 1


def _processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
