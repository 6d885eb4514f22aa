"""`Program`: an execution plan with everything it needs on the device, ready to run.

All buffers, bind groups, pipelines and staging are made here, once. A run writes the inputs, records the dispatches into one
compute pass, copies the outputs into the staging buffer and submits once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError
from ..core.progress import UPLOADING, Progress
from ..kernels.source_map import SourceMap, map_of_source
from ..kernels.spec import Binding, KernelSpec
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch, Resource
from .bounce import Key, bounce_buffers, bound_bytes, with_copies
from .bound import BoundSets, Ends
from .buffer import Buffer
from .device import Device
from .encoding import check_encoder, recording
from .observing import Observer, run_node, run_observed
from .pipelines import Pipeline, PipelineCache
from .readback import PendingRead
from .recorder import Copy, Dispatch, PlainRecorder, Recorder, make_recorder
from .steps import run_in_steps
from .timestamps import FEATURE, Timestamps
from .warming import WarmUp, try_kernel
from .weights import Weight, WeightStore


class Program:
    """A plan on a device.

    Attributes:
        device: where it runs.
        plan: what it runs.

    Raises:
        OutOfMemoryError: the device cannot hold it; what was allocated is freed.
        OperationError: a kernel does not compile.
        DeviceLostError: the device is gone.
    """

    def __init__(self, device: Device, plan: ExecutionPlan, progress: Progress | None = None) -> None:
        self.device, self.plan = device, plan
        self._destroyed = False
        self._lent = False
        self._in_steps = False
        self.milliseconds: list[float] = []
        """How long each dispatch takes, where that was measured."""
        self._pending: PendingRead | None = None
        self._bound = BoundSets()
        self.observer: Observer | None = None
        """What is shown every value of later runs, one by one; for looking into a graph."""
        self._slots: list[Buffer] = []
        self._ends: dict[tuple[str, str], Buffer] = {}
        self._weights: list[Weight] = []
        self._uniforms: wgpu.GPUBuffer | None = None
        self._staging: wgpu.GPUBuffer | None = None
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

    def _allocate(self, progress: Progress | None) -> None:
        plan, device = self.plan, self.device
        for i, slot in enumerate(plan.slots):
            self._slots.append(device.create_buffer(slot.size_bytes, f"slot {i}"))
        self._upload(progress)

    def _over_own(self) -> Recorder:
        """Return the dispatches over buffers of the program's own.

        A plan that updates tensors in place is made for `dispatch`, and gets a second set of them only when it needs one. So
        is one whose outputs fit into no buffer together.
        """
        if self._own is None:
            with self.device.translated("making a graph"):
                self._own = self._make_own()
        return self._own

    def _make_own(self) -> Recorder:
        """Make buffers of the graph's ends and staging.

        Raises:
            OutOfMemoryError: among others where the outputs together do not fit into one buffer; nothing was allocated then.
        """
        plan, device = self.plan, self.device
        self._read_offsets, self._staging_bytes = plan.read_back()
        self._staging = device.create_staging(self._staging_bytes)
        for kind, names in (("input", plan.inputs), ("output", plan.outputs)):
            for name in names:
                self._own_end((kind, name))
        return self._bind(self._ends)

    def _own_end(self, end: Key) -> Buffer:
        """Return the program's own buffer of an input or output. It is made where there is none yet."""
        kind, name = end
        if end not in self._ends:
            if kind == "output" and name in self.plan.aliases:
                self._ends[end] = self._own_end(("input", self.plan.aliases[name]))
            else:
                types = self.plan.inputs if kind == "input" else self.plan.outputs
                self._ends[end] = self.device.create_buffer(types[name].size_bytes, f"{kind} {name}")
        return self._ends[end]

    def _upload(self, progress: Progress | None) -> None:
        store, done, total = WeightStore.of(self.device), 0, self.plan.constant_bytes
        for use in self.plan.constants:
            if progress is not None:
                progress(done, total, UPLOADING)
            self._weights.append(store.get(self.plan.arrays[use.value], use.packing, f"constant %{use.value}"))
            done += use.type.size_bytes
        if progress is not None and total:
            progress(done, total, UPLOADING)

    def _make(self, progress: Progress | None) -> None:
        """Make everything.

        Weights are uploaded while kernels are compiled; few of them, which takes no time, when lanes have given memory back, or
        while one is still at a long kernel.
        """
        plan, cache = self.plan, PipelineCache.of(self.device)
        if plan.uniforms:
            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._uniforms = self.device.create_gpu_buffer(len(plan.uniforms), usage, "uniforms")
            self.device.gpu.queue.write_buffer(self._uniforms, 0, plan.uniforms)
        uses: dict[KernelSpec, list[PlannedDispatch]] = {}
        for d in plan.dispatches:
            uses.setdefault(d.spec, []).append(d)
        with WarmUp(self.device, plan, uses, self._uniform_window) as warm_up:
            early = warm_up.on_lanes and plan.constant_bytes > self.device.target.costs.runtime.soon_uploaded_bytes
            if early:
                self._allocate(progress)
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
                self._allocate(progress)
        self._groups = [
            None if any(r.kind in ("input", "output") for r in d.bindings) else self._bind_group(d, {}) for d in plan.dispatches
        ]
        if not plan.aliases and plan.read_back()[1] <= self.device.caps.limit("max-buffer-size"):
            self._own = self._make_own()
        for d in plan.dispatches:
            if d.spec.source:
                self._over_own()
                self._try_kernel(d, self._pipelines[d.spec], map_of_source(d.spec.source, ""))

    def _try_kernel(self, planned: PlannedDispatch, kernel: Pipeline, source: SourceMap) -> None:
        try_kernel(PipelineCache.of(self.device), kernel, self.resources(planned, self._ends), source, planned.label)

    def resources(self, planned: PlannedDispatch, ends: Ends) -> dict[int, Any]:
        """Return what the bindings of a dispatch are bound to."""
        bound = zip(planned.spec.bindings, planned.bindings, strict=True)
        found = {i: self._resource(binding, resource, ends) for i, (binding, resource) in enumerate(bound)}
        return {**found, len(found): self._uniform_window(planned)} if planned.uniform_size else found

    def _uniform_window(self, planned: PlannedDispatch) -> Any:
        return {"buffer": self._uniforms, "offset": planned.uniform_offset, "size": planned.uniform_size}

    def _bind_group(self, planned: PlannedDispatch, ends: Ends) -> wgpu.GPUBindGroup:
        entries = [{"binding": i, "resource": resource} for i, resource in self.resources(planned, ends).items()]
        layout = self._pipelines[planned.spec].layout
        return self.device.gpu.create_bind_group(label=planned.label, layout=layout, entries=entries)

    def _resource(self, binding: Binding, resource: Resource, ends: Ends) -> Any:
        if resource.kind == "constant":
            weight = self._weights[int(resource.key)]
            if weight.buffer is None:
                return weight.view
            buffer, size = weight.buffer, resource.size_bytes
        elif resource.kind == "slot":
            buffer, size = self._slots[int(resource.key)], resource.size_bytes
        else:
            buffer = ends[resource.kind, str(resource.key)]
            size = bound_bytes(binding, resource, buffer)
        return {"buffer": buffer.gpu, "offset": buffer.offset_bytes + resource.offset_bytes, "size": size}

    def _bind(self, ends: Ends) -> Recorder:
        bounces = bounce_buffers(self.plan, ends, self._own_end)
        dispatches = self._dispatches({**ends, **bounces} if bounces else ends)
        return make_recorder(with_copies(self.device, self.plan, ends, bounces, dispatches) if bounces else dispatches)

    def bound_ends(self, ends: Ends) -> Ends:
        """Return what the dispatches of a run over some ends are bound to: these, or memory of the program's own for them."""
        return {**ends, **bounce_buffers(self.plan, ends, self._own_end)}

    def _dispatches(self, ends: Ends) -> list[Dispatch]:
        """Return the dispatches over a set of buffers; only what touches inputs or outputs needs bind groups of its own."""
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
            OperationError: it does not compile, or wants larger buffers; what was installed stays.
            InvalidStateError: the program was destroyed, or a run in steps has not finished.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self._check_no_steps()
            planned = next(d for d in self.plan.dispatches if d.label == label)
            pipeline = PipelineCache.of(self.device).override(planned, source)
            self._over_own()
            self._try_kernel(planned, pipeline, source)
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
            self._check_no_steps()
            with self.device.translated("restoring a kernel"):
                self._install({label: p for label, p in self._overrides.items() if label not in labels})

    def _install(self, overrides: dict[str, Pipeline]) -> None:
        """Make recorders anew. All kernels of a spec share its layout, so that the bind groups stay."""
        self._overrides = overrides
        if self._own is not None:
            self._own = self._bind(self._ends)
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
            self._check_no_steps()
            own = self._over_own()
            staging = self._free_staging()
            self._write(inputs)
            sources = {name: self._ends["output", name] for name in outputs}
            copies = [Copy(s.gpu, s.offset_bytes, staging, self._read_offsets[n], s.size_bytes) for n, s in sources.items()]
            self._run(own, self._ends, copies, staging)
            types = {name: self.plan.outputs[name] for name in outputs}
            windows = {n: (self._read_offsets[n], np.empty(t.shape, t.numpy)) for n, t in types.items()}
            self._pending = PendingRead(self.device, staging, windows)
            return self._pending

    def _write(self, inputs: Mapping[str, Array]) -> None:
        for name, array in inputs.items():
            self._ends["input", name].write(array)

    def kernel_times(self, inputs: Mapping[str, Array]) -> Array | None:
        """Run once with a clock at each dispatch, wait, and return what each took on the device, in microseconds.

        Returns:
            One number for each of the plan's dispatches; None if the device was made without the feature "timestamp-query".

        Raises:
            InvalidStateError: the program was destroyed.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self._check_no_steps()
            if FEATURE not in self.device.caps.features:
                return None
            self._over_own()
            with self.device.translated("timing a graph"):
                self._timing = self._timing or self._make_timing()
                timestamps, recorders = self._timing
                self._write(inputs)
                encoder = self.device.gpu.create_command_encoder()
                for i, recorder in enumerate(recorders):
                    compute = timestamps.begin_pass(encoder, i)
                    recorder.record(compute)
                    compute.end()
                timestamps.resolve(encoder)
            self.device.submit(encoder, self.buffers(self._ends))
            return timestamps.microseconds()

    def _make_timing(self) -> tuple[Timestamps, list[Recorder]]:
        recorders: list[Recorder] = [PlainRecorder([d]) for d in self._dispatches(self._ends)]
        return Timestamps(self.device, len(recorders)), recorders

    def _free_staging(self) -> wgpu.GPUBuffer:
        """Return the staging buffer when it can be copied into."""
        if self._pending is not None:
            self._pending.settle()
            self._pending = None
        if self._staging is None or self._staging.map_state != "unmapped":
            # A call was interrupted between mapping and unmapping: what it left is of no use any more.
            self._staging = self.device.create_staging(self._staging_bytes)
        return self._staging

    def dispatch(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Submit a run over the caller's buffers and return at once.

        Raises:
            InvalidStateError: the program or a buffer was destroyed.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self._check_no_steps()
            recorder, ends = self.over(inputs, outputs)
            self._run(recorder, ends)

    def steps(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer], max_ms: float) -> Iterator[tuple[int, int]]:
        """Submit a run over the caller's buffers part by part; see `run_in_steps`."""
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
            MLTypeError: the encoder or the pass is none of the device.
            InvalidStateError: the program or a buffer was destroyed, or nothing can be recorded there.
        """
        with self.device.lock:
            self._check_no_steps()
            recorder, ends = self.over(inputs, outputs)
            self._check_buffers(ends)
            if encoder is not None:
                check_encoder(self.device, encoder, wgpu.GPUCommandEncoder, "encoder")
                with recording("encoder", "it has finished, or has an open pass"):
                    self.record(recorder, encoder)
            else:
                check_encoder(self.device, compute_pass, wgpu.GPUComputePassEncoder, "compute_pass")
                with recording("compute_pass", "it has ended"):
                    assert compute_pass is not None
                    compute_pass.push_debug_group("webnn_wgpu")  # C functions alone would not tell that the pass has ended
                    recorder.record(compute_pass)
                    compute_pass.pop_debug_group()
            # What the caller has yet to submit must find everything: from now on nothing is freed but by letting go of it.
            self._lent = True
            for buffer in (*self.buffers(ends), *self._ends.values()):
                buffer.lend()

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
        for buffer in self.buffers(ends):
            buffer.check()

    def _run(self, recorder: Recorder, ends: Ends, copies: Sequence[Copy] = (), staging: wgpu.GPUBuffer | None = None) -> None:
        """Submit a run, and copies of what it makes; of one that is observed, and so is over by then, the copies alone."""
        if self.observer is not None:
            run_observed(self, recorder, ends, self.observer)
            recorder = recorder.part(0, 0)
        self.submit(recorder, ends, copies, staging)

    def submit(
        self, recorder: Recorder, ends: Ends, copies: Sequence[Copy] = (), staging: wgpu.GPUBuffer | None = None
    ) -> None:
        """Submit some of the program's dispatches over some ends, and copies after them."""
        self.device.submit_by(partial(recorder.submit, self.device.gpu, copies), self.buffers(ends), staging)

    def buffers(self, ends: Ends) -> tuple[Buffer, ...]:
        """Return all buffers that a run over some ends uses."""
        return (*self._slots, *ends.values())

    def run_node(self, node: int, operands: Mapping[int, Array]) -> dict[int, Array]:
        """Run one node of the plan's graph on operands of the caller's, by value, and return its results; see `run_node`.

        Raises:
            InvalidStateError: the program was destroyed, or a run in steps has not finished.
            DeviceLostError: the device is gone.
        """
        with self.device.lock:
            self.check()
            self._check_no_steps()
            return run_node(self, self._over_own(), self._ends, node, operands)

    def buffer_of(self, place: Resource, ends: Ends) -> Buffer:
        """Return the part of a buffer that a value lies in."""
        whole = self._slots[int(place.key)] if place.kind == "slot" else ends[place.kind, str(place.key)]
        return Buffer(self.device, whole.gpu, whole.offset_bytes + place.offset_bytes, -(-place.size_bytes // 4) * 4)

    def record(self, recorder: Recorder, encoder: wgpu.GPUCommandEncoder) -> None:
        """Record dispatches into a compute pass of an encoder."""
        compute = encoder.begin_compute_pass()
        recorder.record(compute)
        compute.end()

    def begin_steps(self) -> None:
        """Keep other runs away until `end_steps`."""
        with self.device.lock:
            self.check()
            self._check_no_steps()
            self._in_steps = True

    def end_steps(self) -> None:
        """Let others run again."""
        self._in_steps = False

    def _check_no_steps(self) -> None:
        if self._in_steps:
            raise InvalidStateError(
                "a run in steps has not finished", hint="Take its last step, or close its iterator: runs share their memory"
            )

    @property
    def weights(self) -> tuple[Weight, ...]:
        """The constants it uses, which others may share."""
        return tuple(self._weights)

    @property
    def held(self) -> dict[str, int]:
        """What it holds for itself, in bytes by owner."""
        return {
            "slots": sum(slot.size_bytes for slot in self._slots),
            "inputs and outputs": sum(end.size_bytes for end in self._ends.values()),
            "uniforms": 0 if self._uniforms is None else self._uniforms.size,
            "staging": 0 if self._staging is None else self._staging.size,
        }

    def check(self) -> None:
        """Raise InvalidStateError if the program was destroyed."""
        if self._destroyed:
            raise InvalidStateError("the graph was destroyed")

    def destroy(self) -> None:
        """Free everything on the device once queued work is done; a run in flight keeps its results. Idempotent."""
        with self.device.lock:
            self._destroyed = True
            self._bound.clear()
            self._groups.clear()
            self._pipelines.clear()
            self._overrides.clear()
            self._weights.clear()  # what no other program uses goes now
            if self._timing is not None:
                self._timing[0].destroy()
            self._own = self._staging = self._pending = self._timing = None
            for buffer in self.buffers(self._ends):
                buffer.destroy()
            self._slots.clear()
            self._ends.clear()
            if self._uniforms is not None:
                uniforms, self._uniforms = self._uniforms, None
                if not self._lent:
                    uniforms.destroy()
