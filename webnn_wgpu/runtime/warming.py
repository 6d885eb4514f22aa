"""Warm-up: a driver compiles kernels before their first run.

Drivers that compile a kernel at its first dispatch do so for a dispatch of no workgroups too. On one device, llvmpipe compiles
kernels one after the other, but a device reads the kernels of other devices from the driver's cache on disk. There the package
compiles kernels on several devices side by side. The program's own device compiles the kernels that none of them has begun.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
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
from ..core.process import process_options
from ..kernels.source_map import SourceMap
from ..kernels.sources import source_of, templates_digest
from ..kernels.spec import KernelSpec
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch
from .device import Device
from .llvmpipe import processors
from .messages import compiler_message
from .pipelines import Pipeline, PipelineCache

logger = logging.getLogger("webnn_wgpu")

_FEWEST_KERNELS = 3
"""New kernels of a program from which on lanes pay: to open a device takes as long as to compile a small kernel."""

_MOST_LANES = 8
"""The maximum number of devices that compile side by side. Each one takes memory for its compiler."""


_READ_SECONDS = 0.07
"""After about as long a driver has read a long kernel, for which it takes as much memory as for all that follows."""

_MARKS, _MOST_MARKS_BYTES = "compiled", 64 * 1024
"""The cache folder of records about compiled programs, and its maximum size, which suffices for some two thousand records."""


@dataclass(frozen=True)
class Use:
    """The facts by which a driver distinguishes uses of a kernel: llvmpipe compiles it anew for some values and sizes.

    Attributes:
        uniforms: the uniform data.
        textures: the binding, format, width and height of each texture.
    """

    uniforms: bytes = b""
    textures: tuple[tuple[int, str, int, int], ...] = ()


class WarmUp:
    """Has the driver compile the kernels of one program, and is done at the end of its `with` block.

    Args:
        device: the device of the run.
        plan: the program.
        kernels: the dispatches of each of its kernels.
        uniforms: returns the uniform data of a dispatch as a resource.
    """

    def __init__(
        self,
        device: Device,
        plan: ExecutionPlan,
        kernels: Mapping[KernelSpec, Sequence[PlannedDispatch]],
        uniforms: Callable[[PlannedDispatch], Any],
    ) -> None:
        self._device, self._uniforms = device, uniforms
        self._cache = PipelineCache.of(device)
        new = sum(spec not in self._cache for spec in kernels)
        self._mark = _mark(device, plan) if new >= _FEWEST_KERNELS and _compiles_side_by_side(device) else ""
        # The driver very likely still has the kernels of an earlier process. Lanes would cost more than they save.
        self._lanes = _Lanes(device) if self._mark and cache.read(self._mark) is None else None
        # The kernels that take longest to compile are begun first.
        longest_first = sorted(kernels.items(), key=lambda used: not used[0].is_long)
        self._uses = {spec: {_use(plan, planned): planned for planned in dispatches} for spec, dispatches in longest_first}
        self._jobs: dict[KernelSpec, _Job] = {}
        self._later: list[tuple[Pipeline, Mapping[Use, PlannedDispatch]]] = []

    @property
    def on_lanes(self) -> bool:
        """Whether lanes compile, which takes much memory, rather than the program's device alone."""
        return self._lanes is not None

    @property
    def lanes_are_busy(self) -> bool:
        """Whether a lane is still compiling."""
        return any(not job.compiled.done() for job in self._jobs.values())

    def __enter__(self) -> WarmUp:
        """Let the lanes, if any exist, begin with the new kernels."""
        if self._lanes is not None:
            try:
                for spec in self._uses:
                    self._begin_elsewhere(self._lanes, spec)
            except BaseException:
                self._lanes.close()
                raise
        return self

    def _begin_elsewhere(self, lanes: _Lanes, spec: KernelSpec) -> None:
        if spec.source:
            return
        known = self._cache.get(spec).warm if spec in self._cache else ()
        uses = tuple(use for use in self._uses[spec] if use not in known)
        if uses:
            # A source that cannot be rendered is reported where its pipeline is made.
            with _logged("%s was not rendered", spec):
                self._jobs[spec] = lanes.start(spec, uses, len(source_of(spec)))

    def order(self) -> Iterator[KernelSpec]:
        """Yield the kernels in the order in which the program should make their pipelines.

        Of the kernels in the lanes, the compiled ones come first, then the longest one that no lane has begun. Kernels that a
        lane is still compiling come last: a pipeline takes memory twice while a lane has a pipeline of the same kernel.
        """
        yield from (spec for spec in self._uses if spec not in self._jobs)
        left = sorted(self._jobs.values(), key=lambda job: job.length, reverse=True)
        while left:
            compiled = next((job for job in left if job.compiled.done()), None)
            job = compiled or next((job for job in left if job.compiled.cancel()), left[0])
            left.remove(job)
            yield job.spec

    def compile(self, kernel: Pipeline) -> None:
        """Let the driver compile a kernel, of which the program now has a pipeline, for its new uses."""
        if kernel.spec.source:
            return
        uses = {use: planned for use, planned in self._uses[kernel.spec].items() if use not in kernel.warm}
        if not uses:
            return
        kernel.warm.update(uses)
        job = self._jobs.get(kernel.spec)
        if job is not None and not job.compiled.done():
            self._later.append((kernel, uses))
            return
        self._dispatch_nothing(kernel, uses)
        if job is not None and job.compiled.cancelled() and process_options().heap_trimming:
            _wait_for_compiler(self._device)
            _return_freed_memory()

    def finish_lanes(self) -> None:
        """Wait for the lanes, free their memory, and let the program's device load the kernels that they have compiled."""
        if self._lanes is not None:
            self._lanes.close()
        for kernel, uses in self._later:
            self._dispatch_nothing(kernel, uses)
        self._later.clear()

    def _dispatch_nothing(self, kernel: Pipeline, uses: Mapping[Use, PlannedDispatch]) -> None:
        resources = [_no_textures(self._cache, use) for use in uses]
        if kernel.spec.uniforms:
            for given, planned in zip(resources, uses.values(), strict=True):
                given[len(kernel.spec.bindings)] = self._uniforms(planned)
        dispatch_nothing(self._cache, kernel, resources)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            if self._lanes is not None:
                self._lanes.close()
            for kernel, uses in self._later:
                kernel.warm.difference_update(uses)
            return
        self.finish_lanes()
        self._device.wait()
        if self._lanes is not None:
            cache.write(self._mark, "")
            cache.prune(_MARKS, _MOST_MARKS_BYTES)


@dataclass(frozen=True)
class _Job:
    """A kernel to be compiled on a lane.

    Attributes:
        spec: the kernel.
        uses: the uses that the kernel is compiled for.
        length: the number of characters of its source, roughly proportional to its compile time.
        compiled: a future that completes when the driver's cache has the kernel. No lane begins a job that was canceled before.
    """

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
        self._pool = ThreadPoolExecutor(min(processors() - 1, _MOST_LANES), "webnn_wgpu-compile")
        self._pool.submit(self._open_one)  # while the host renders the first kernel

    def start(self, spec: KernelSpec, uses: Sequence[Use], length: int) -> _Job:
        """Have a kernel compiled once no longer one waits."""
        job = _Job(spec, uses, length, Future())
        with self._lock:
            self._waiting.append(job)
        self._pool.submit(self._compile_longest)
        return job

    def close(self) -> None:
        """Drop the waiting jobs, wait for the others, and free the memory."""
        with self._lock:
            self._waiting.clear()
        self._pool.shutdown(cancel_futures=True)
        if self._idle.empty():  # it was closed before
            return
        while not self._idle.empty():
            self._idle.get().release()
        _return_freed_memory()

    def _compile_longest(self) -> None:
        """Compile the longest waiting kernel, unless the program has taken it back."""
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
    """Log the error that kept a lane from compiling.

    The program's device compiles the kernel itself and raises a lasting error.
    """
    try:
        yield
    except (WebNNError, wgpu.GPUError, RuntimeError) as error:
        logger.info(failed + ": %s", *names, error)


def _compile_on(lane: Device, spec: KernelSpec, uses: Sequence[Use]) -> None:
    """Have a lane's driver compile a kernel, and let go of all that it made before memory is given back."""
    cache = PipelineCache(lane)  # A cache of its own, because the driver's compiled kernels take memory.
    kernel = cache.get(spec)
    resources = [_no_textures(cache, use) for use in uses]
    for given, use in zip(resources, uses, strict=True):
        if use.uniforms:
            buffer = lane.gpu.create_buffer_with_data(data=use.uniforms, usage=wgpu.BufferUsage.UNIFORM)
            given[len(spec.bindings)] = {"buffer": buffer, "offset": 0, "size": len(use.uniforms)}
    dispatch_nothing(cache, kernel, resources)
    _wait_for_compiler(lane)


def _no_textures(cache: PipelineCache, use: Use) -> dict[int, Any]:
    """Return textures by binding that a driver takes for those of a use."""
    # Of the sizes it matters whether they are powers of two.
    sides = {n: 4 if n & (n - 1) == 0 else 3 for _, _, *sizes in use.textures for n in sizes}
    return {i: cache.no_texture(kind, sides[width], sides[height]) for i, kind, width, height in use.textures}


def _wait_for_compiler(device: Device) -> None:
    """Wait until a device has compiled its kernels, and return freed memory to the system if the application allows that."""
    if not process_options().heap_trimming:
        device.wait()
        return
    read = threading.Timer(_READ_SECONDS, _return_freed_memory)
    read.daemon = True
    read.start()
    try:
        device.wait()
    finally:
        read.cancel()


def _return_freed_memory() -> None:
    """If the application allows it, let glibc return freed memory to the system: see `optimize_process`.

    glibc keeps the memory of a compiler, tens of MB, for the compiler's thread. The return of that memory prevents that the
    peaks of compilers on several threads add up.
    """
    if not process_options().heap_trimming:
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def dispatch_nothing(cache: PipelineCache, kernel: Pipeline, uses: Iterable[Mapping[int, Any]]) -> None:
    """Dispatch no workgroups of a kernel.

    Args:
        cache: the pipeline cache of the device.
        kernel: the kernel, of this cache.
        uses: the resources of some bindings for each use. The other bindings get a buffer that the kernel does not read.
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
    """Let the driver compile an application's own kernel, which may require buffers of its own sizes.

    Raises:
        OperationError: the source needs larger buffers.
    """
    try:
        dispatch_nothing(cache, kernel, [resources])
    except OperationError as error:
        found = compiler_message(str(error.__cause__), source)
        raise OperationError("the kernel does not fit its buffers", label=label, got=found) from error


def _use(plan: ExecutionPlan, planned: PlannedDispatch) -> Use:
    """Return the use of a kernel by a dispatch."""
    textures: list[tuple[int, str, int, int]] = []
    for i, resource in enumerate(planned.bindings):
        constant = plan.constants[int(resource.key)] if resource.kind == "constant" else None
        if constant is not None and constant.packing is not None and constant.packing.texture:
            height, width, _ = constant.packing.packed_shape(constant.type.shape)
            textures.append((i, planned.spec.bindings[i].texel_format, width, height))
    return Use(bytes(plan.uniforms[planned.uniform_offset : planned.uniform_offset + planned.uniform_size]), tuple(textures))


def _mark(device: Device, plan: ExecutionPlan) -> str:
    """Return the name under which it is noted that the driver has compiled a program."""
    weights = [(use.type, use.packing) for use in plan.constants]
    program = ([d.spec for d in plan.dispatches], plan.uniforms, weights)
    return f"{_MARKS}/{cache.key_of(wgpu.__version__, templates_digest(), device.caps.to_json(), program)}"


def _compiles_side_by_side(device: Device) -> bool:
    """Return whether the driver compiles a kernel at its first dispatch and shares compiled kernels between devices."""
    switch = os.environ.get("MESA_SHADER_CACHE_DISABLE", os.environ.get("MESA_GLSL_CACHE_DISABLE", ""))
    cached = switch.lower() not in ("1", "true", "yes", "y", "on")
    return device.caps.device.startswith("llvmpipe") and cached and processors() > 1
