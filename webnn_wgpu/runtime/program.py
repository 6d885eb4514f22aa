"""`Program`: an execution plan with everything it needs on the device, ready to run.

All memory, bind groups and pipelines are made here, once. A run writes the inputs, submits the dispatches, and copies the
outputs into the staging buffer.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from functools import partial

import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError
from ..core.progress import Progress
from ..kernels.source_map import SourceMap, map_of_source
from ..kernels.spec import KernelSpec
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch
from .bounce import with_copies
from .bound import BoundSets, Ends
from .buffer import Buffer
from .clocks import ClockLoad
from .device import Device
from .encoding import check_encoder, recording
from .observing import Observer, run_node, run_observed
from .pipelines import Pipeline, PipelineCache
from .program_memory import ProgramMemory
from .readback import PendingRead
from .recorder import Copy, Dispatch, PlainRecorder, Recorder, make_recorder
from .result_memory import ResultMemory
from .steps import run_in_steps
from .timestamps import FEATURE, Timestamps
from .warming import WarmUp, try_kernel


class Program:
    """A plan on a device.

    Attributes:
        device: the device of the program.
        plan: the execution plan.
        memory: its buffers and textures.

    Raises:
        OutOfMemoryError: the device cannot hold the program. Its allocations are freed.
        OperationError: a kernel does not compile.
        DeviceLostError: the device is gone.
    """

    def __init__(self, device: Device, plan: ExecutionPlan, progress: Progress | None = None) -> None:
        self.device, self.plan = device, plan
        self.memory = self._new_memory()
        self._destroyed = False
        self._in_steps = False
        self.milliseconds: list[float] = []
        """The time of each dispatch, if it was measured."""
        self._pending: PendingRead | None = None
        self._results = ResultMemory({name: (type_.shape, type_.numpy) for name, type_ in plan.outputs.items()})
        self._bound = BoundSets()
        self.observer: Observer | None = None
        """A function that gets every value of later runs, one by one, for debugging."""
        self._pipelines: dict[KernelSpec, Pipeline] = {}
        self._overrides: dict[str, Pipeline] = {}
        self._groups: list[wgpu.GPUBindGroup | None] = []
        self._own: Recorder | None = None
        self._timing: tuple[Timestamps, list[Recorder]] | None = None
        with device.lock:
            try:
                with device.translated("making a graph"):
                    self._make(progress)
            except BaseException:
                self.destroy()
                raise

    def _new_memory(self) -> ProgramMemory:
        return ProgramMemory(self.device, self.plan)

    def over_own(self) -> Recorder:
        """Return the dispatches over the program's own buffers.

        A plan that updates tensors in place is intended for `dispatch`, and gets a second set of tensors only when it needs
        one. So does a plan whose outputs exceed the maximum size of one buffer.
        """
        if self._own is None:
            with self.device.translated("making a graph"):
                self._own = self._make_own()
        return self._own

    def _make_own(self) -> Recorder:
        self.memory.allocate_ends()
        return self._bind(self.memory.ends)

    def _make(self, progress: Progress | None) -> None:
        """Create the memory and the pipelines.

        Weights are uploaded while kernels are compiled. A small amount of weights, whose upload takes almost no time, is
        uploaded after lanes have freed their memory, or while a lane still compiles a long kernel.
        """
        plan, cache = self.plan, PipelineCache.of(self.device)
        self.memory.write_uniforms()
        uses: dict[KernelSpec, list[PlannedDispatch]] = {}
        for d in plan.dispatches:
            uses.setdefault(d.spec, []).append(d)
        with WarmUp(self.device, plan, uses, self.memory.uniform_window) as warm_up:
            early = warm_up.on_lanes and plan.constant_bytes > self.device.target.costs.runtime.soon_uploaded_bytes
            if early:
                self.memory.allocate(progress)
            for i, spec in enumerate(warm_up.order()):
                if progress is not None and spec not in cache:
                    progress(i, len(uses), str(spec))
                with self.device.running(d.label for d in uses[spec]):
                    self._pipelines[spec] = cache.get(spec, uses[spec][0])
                    warm_up.compile(self._pipelines[spec])
            if progress is not None:
                progress(len(uses), len(uses), "")
            if not early:
                if not warm_up.lanes_are_busy:
                    warm_up.finish_lanes()
                self.memory.allocate(progress)
        self._groups = [
            None if any(r.kind in ("input", "output") for r in d.bindings) else self._bind_group(d, {}) for d in plan.dispatches
        ]
        if not plan.aliases and plan.read_back()[1] <= self.device.caps.limit("max-buffer-size"):
            self._own = self._make_own()
        for d in plan.dispatches:
            if d.spec.source:
                self.over_own()
                self.try_kernel(d, self._pipelines[d.spec], map_of_source(d.spec.source, ""))

    def try_kernel(self, planned: PlannedDispatch, kernel: Pipeline, source: SourceMap) -> None:
        """Run a kernel from a caller's source once over the program's own buffers, see `warming.try_kernel`."""
        try_kernel(
            PipelineCache.of(self.device), kernel, self.memory.resources(planned, self.memory.ends), source, planned.label
        )

    def pipeline_of(self, planned: PlannedDispatch) -> Pipeline:
        """Return the plan's own kernel of a dispatch."""
        return self._pipelines[planned.spec]

    def _bind_group(self, planned: PlannedDispatch, ends: Ends) -> wgpu.GPUBindGroup:
        entries = [{"binding": i, "resource": resource} for i, resource in self.memory.resources(planned, ends).items()]
        layout = self._pipelines[planned.spec].layout
        return self.device.gpu.create_bind_group(label=planned.label, layout=layout, entries=entries)

    def _bind(self, ends: Ends) -> Recorder:
        bounces = self.memory.bounces(ends)
        dispatches = self.dispatches_over({**ends, **bounces} if bounces else ends)
        # A run that updates tensors in place is one submit, so that an interrupt cannot come between its parts.
        soon = 0 if self.plan.aliases else self.device.target.costs.runtime.soon_dispatches
        return make_recorder(with_copies(self.device, self.plan, ends, bounces, dispatches) if bounces else dispatches, soon)

    def dispatches_over(self, ends: Ends) -> list[Dispatch]:
        """Return the dispatches over a set of buffers. Only those that bind graph inputs or outputs need new bind groups."""
        return [
            Dispatch(
                pipeline=(self._overrides.get(d.label) or self._pipelines[d.spec]).pipeline,
                bind_group=group or self._bind_group(d, ends),
                grid=d.grid,
            )
            for d, group in zip(self.plan.dispatches, self._groups, strict=True)
        ]

    def override(self, label: str, source: SourceMap) -> None:
        """Have later runs use a source of the caller's for one dispatch, over the same bindings, uniforms and grid.

        Args:
            label: the dispatch.
            source: WGSL with the entry point `main`.

        Raises:
            OperationError: the source does not compile, or needs larger buffers. The installed kernel stays.
            InvalidStateError: the program was destroyed, or a run in steps has not finished.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self.check_no_steps()
            planned = next(d for d in self.plan.dispatches if d.label == label)
            pipeline = PipelineCache.of(self.device).override(planned, source)
            self.over_own()
            self.try_kernel(planned, pipeline, source)
            with self.device.translated("overriding a kernel"):
                self._install({**self._overrides, label: pipeline})

    def restore(self, labels: Collection[str]) -> None:
        """Have later runs use the plan's own kernels for these dispatches.

        Raises:
            InvalidStateError: the program was destroyed, or a run in steps has not finished.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self.check_no_steps()
            with self.device.translated("restoring a kernel"):
                self._install({label: p for label, p in self._overrides.items() if label not in labels})

    def _install(self, overrides: dict[str, Pipeline]) -> None:
        """Make recorders anew. All kernels of a spec share its layout, so that the bind groups stay."""
        self._overrides = overrides
        if self._own is not None:
            self._own = self._bind(self.memory.ends)
        self._bound.clear()
        self.milliseconds.clear()
        if self._timing is not None:
            (timestamps, _), self._timing = self._timing, None
            timestamps.destroy()

    def start(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> PendingRead:
        """Write the inputs, submit a run, and return a handle on its outputs.

        A program has one run in flight: an earlier one is finished first.

        Raises:
            InvalidStateError: the program was destroyed.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self.check_no_steps()
            own = self.over_own()
            staging = self._free_staging()
            self.memory.write(inputs)
            sources = {name: self.memory.ends["output", name] for name in outputs}
            offsets = self.memory.read_offsets
            copies = [Copy(s.gpu, s.offset_bytes, staging, offsets[n], s.size_bytes) for n, s in sources.items()]
            self._run(own, self.memory.ends, copies, staging)
            windows = {name: (offsets[name], self._results.array(name)) for name in outputs}
            self._pending = PendingRead(self.device, staging, windows)
            return self._pending

    def kernel_times(self, inputs: Mapping[str, Array]) -> Array | None:
        """Run once with a clock at each dispatch, wait, and return the device time of each dispatch in microseconds.

        Returns:
            One number for each of the plan's dispatches. None if the device was created without the feature "timestamp-query".

        Raises:
            InvalidStateError: the program was destroyed.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self.check_no_steps()
            if FEATURE not in self.device.caps.features:
                return None
            self.over_own()
            with self.device.translated("timing a graph"):
                self._timing = self._timing or self._make_timing()
                timestamps, recorders = self._timing
                self.memory.write(inputs)
                load = ClockLoad.of(self.device)
                encoder = self.device.gpu.create_command_encoder()
                if load is not None:
                    load.record(encoder)
                for i, recorder in enumerate(recorders):
                    compute = timestamps.begin_pass(encoder, i)
                    recorder.record(compute)
                    compute.end()
                timestamps.resolve(encoder)
            self.device.submit(encoder, self.memory.buffers(self.memory.ends))
            return timestamps.microseconds()

    def _make_timing(self) -> tuple[Timestamps, list[Recorder]]:
        recorders: list[Recorder] = [PlainRecorder([d]) for d in self.dispatches_over(self.memory.ends)]
        return Timestamps(self.device, len(recorders)), recorders

    def _free_staging(self) -> wgpu.GPUBuffer:
        """Return the staging buffer when it can be copied into."""
        if self._pending is not None:
            self._pending.settle()
            self._pending = None
        self.memory.replace_staging()
        assert self.memory.staging is not None
        return self.memory.staging

    def dispatch(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Submit a run over the caller's buffers and return at once.

        Raises:
            InvalidStateError: the program or a buffer was destroyed.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check_no_steps()
            recorder, ends = self.over(inputs, outputs)
            self._run(recorder, ends)

    def steps(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer], max_ms: float) -> Generator[tuple[int, int]]:
        """Submit a run over the caller's buffers part by part, see `run_in_steps`."""
        return run_in_steps(self, inputs, outputs, max_ms)

    def encode(
        self,
        inputs: Mapping[str, Buffer],
        outputs: Mapping[str, Buffer],
        encoder: wgpu.GPUCommandEncoder | None,
        compute_pass: wgpu.GPUComputePassEncoder | None,
    ) -> None:
        """Record a run over the caller's buffers into an encoder, or an open compute pass, that the caller submits.

        Raises:
            MLTypeError: the encoder or the pass belongs to another device.
            InvalidStateError: the program or a buffer was destroyed, or the encoder or pass has ended.
        """
        with self.device.lock:
            self.check_no_steps()
            recorder, ends = self.over(inputs, outputs)
            self._check_buffers(ends)
            if encoder is not None:
                check_encoder(self.device, encoder, wgpu.GPUCommandEncoder, "encoder")
                with recording("encoder", "Give the pass as `compute_pass=`"):
                    self.record(recorder, encoder)
            else:
                check_encoder(self.device, compute_pass, wgpu.GPUComputePassEncoder, "compute_pass")
                with recording("compute_pass"):
                    assert compute_pass is not None
                    compute_pass.push_debug_group("webnn_wgpu")  # C functions alone would not detect that the pass has ended
                    recorder.record(compute_pass)
                    compute_pass.pop_debug_group()
            self.memory.lend(ends)

    def over(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> tuple[Recorder, Ends]:
        """Return the dispatches over the caller's buffers, and these in the plan's order."""
        self.check()
        ends: dict[tuple[str, str], Buffer] = {}
        for name in self.plan.inputs:
            ends["input", name] = inputs[name]
        for name in self.plan.outputs:
            ends["output", name] = outputs[name]
        return self._bound.get(ends, self._bind_callers), ends

    def _bind_callers(self, ends: Ends) -> Recorder:
        self._check_buffers(ends)
        with self.device.translated("binding tensors"):
            return self._bind(ends)

    def _check_buffers(self, ends: Ends) -> None:
        for buffer in self.memory.buffers(ends):
            buffer.check()

    def _run(self, recorder: Recorder, ends: Ends, copies: Sequence[Copy] = (), staging: wgpu.GPUBuffer | None = None) -> None:
        """Submit a run and copies of its results. An observed run is already complete, so only its copies are submitted."""
        if self.observer is not None:
            run_observed(self, recorder, ends, self.observer)
            recorder = recorder.part(0, 0)
        self.submit(recorder, ends, copies, staging)

    def submit(
        self, recorder: Recorder, ends: Ends, copies: Sequence[Copy] = (), staging: wgpu.GPUBuffer | None = None
    ) -> None:
        """Submit some of the program's dispatches over some ends, and copies after them."""
        self.device.submit_by(partial(recorder.submit, self.device.gpu, copies), self.memory.buffers(ends), staging)

    def run_node(self, node: int, operands: Mapping[int, Array]) -> dict[int, Array]:
        """Run one node of the plan's graph on operands of the caller, by value, and return its results, see `run_node`.

        Raises:
            InvalidStateError: the program was destroyed, or a run in steps has not finished.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self.check_no_steps()
            return run_node(self, self.over_own(), self.memory.ends, node, operands)

    def record(self, recorder: Recorder, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record dispatches into a compute pass of an encoder."""
        compute = encoder.begin_compute_pass()
        recorder.record(compute)
        compute.end()

    def begin_steps(self) -> None:
        """Keep other runs away until `end_steps`."""
        with self.device.lock:
            self.check()
            self.check_no_steps()
            self._in_steps = True

    def end_steps(self) -> None:
        """Let others run again."""
        self._in_steps = False

    def check_no_steps(self) -> None:
        """Raise InvalidStateError if a run in steps has not finished."""
        if self._in_steps:
            raise InvalidStateError(
                "a run in steps has not finished", hint="Take its last step, or close its iterator: runs share their memory"
            )

    def check(self) -> None:
        """Raise InvalidStateError if the program was destroyed."""
        if self._destroyed:
            raise InvalidStateError("the graph was destroyed", hint="Build it again")

    def destroy(self) -> None:
        """Free everything on the device after the queued work. A run in flight keeps its results. The method is idempotent."""
        with self.device.lock:
            self._destroyed = True
            self._bound.clear()
            self._groups.clear()
            self._pipelines.clear()
            self._overrides.clear()
            if self._timing is not None:
                self._timing[0].destroy()
            self._own = self._pending = self._timing = None
            self.memory.destroy()
