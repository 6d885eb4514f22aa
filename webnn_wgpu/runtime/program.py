"""`Program`: an execution plan with everything it needs on the device, ready to run.

All buffers, bind groups, pipelines and staging are made here, once. A run writes the inputs, records the dispatches into one
compute pass, copies the outputs into the staging buffer and submits once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError, OperationError
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch, Resource
from .device import Buffer, Device
from .pipelines import Pipeline, PipelineCache
from .recorder import Dispatch, Recorder, make_recorder
from .weights import WeightStore

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called as `progress(done, total, what)` while kernels are compiled."""

_READ_ALIGNMENT = 16
_BOUND_SETS = 16
"""Sets of tensors whose bind groups are kept: more than a decoder that swaps two caches needs."""


class BoundTensors:
    """The dispatches of a program over one set of input and output buffers."""

    def __init__(self, buffers: Mapping[tuple[str, str], Buffer], dispatches: Sequence[Dispatch]) -> None:
        self.buffers = dict(buffers)
        self.recorder: Recorder = make_recorder(dispatches)


class PendingRun:
    """A submitted run whose outputs are not read back yet."""

    def __init__(self, program: Program, names: Sequence[str], mapping: Any) -> None:
        self._program, self._names, self._mapping = program, tuple(names), mapping
        self._results: dict[str, Array] | None = None
        self._error: OperationError | None = None

    def done(self) -> bool:
        """Return whether the outputs have arrived; never waits."""
        if self._results is None and self._error is None:
            self._program.device.poll()
        return self._results is not None or self._error is not None or self._program.staging.map_state == "mapped"

    def result(self) -> dict[str, Array]:
        """Wait for the outputs and return them as new arrays.

        Raises:
            OperationError: the device failed to run the graph or to hand its results back.
        """
        if self._error is not None:
            raise self._error
        if self._results is None:
            try:
                self._mapping.sync_wait()
            except (RuntimeError, wgpu.GPUError) as error:
                self._error = OperationError(f"the outputs could not be read back: {error}", operator="compute")
                self._program.finished(self)
                raise self._error from error
            self._results = self._program.take_outputs(self._names)
            self._program.finished(self)
        return self._results


class Program:
    """A plan on a device.

    Attributes:
        device: where it runs.
        plan: what it runs.
        staging: the buffer that outputs are read back through.
    """

    def __init__(self, device: Device, plan: ExecutionPlan, progress: Progress | None = None) -> None:
        self.device, self.plan = device, plan
        self._destroyed = False
        self._pending: PendingRun | None = None
        self._bound: OrderedDict[tuple[int, ...], BoundTensors] = OrderedDict()
        store = WeightStore.of(device)
        self._weights = []
        with device.lock:
            try:
                self._allocate(store)
                self._compile(progress)
            except BaseException:
                self.destroy()
                raise

    def _allocate(self, store: WeightStore) -> None:
        plan, device = self.plan, self.device
        self._slots = [device.create_buffer(slot.size_bytes, f"slot {i}") for i, slot in enumerate(plan.slots)]
        for use in plan.constants:
            self._weights.append(store.acquire(plan.arrays[use.value], use.packing, f"constant %{use.value}"))
        ends = [("input", n, t) for n, t in plan.inputs.items()] + [("output", n, t) for n, t in plan.outputs.items()]
        self._ends = {(kind, name): device.create_buffer(t.size_bytes, f"{kind} {name}") for kind, name, t in ends}
        self._uniforms: wgpu.GPUBuffer | None = None
        if plan.uniforms:
            self._uniforms = device.gpu.create_buffer_with_data(data=plan.uniforms, usage=wgpu.BufferUsage.UNIFORM)
        self._read_offsets: dict[str, int] = {}
        total = 0
        for name in plan.outputs:
            self._read_offsets[name] = total
            size = self._ends["output", name].size_bytes
            total += -(-size // _READ_ALIGNMENT) * _READ_ALIGNMENT
        self.staging: wgpu.GPUBuffer = device.gpu.create_buffer(
            label="staging", size=max(total, 16), usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        )

    def _compile(self, progress: Progress | None) -> None:
        cache = PipelineCache.of(self.device)
        specs = list(dict.fromkeys(d.spec for d in self.plan.dispatches))
        made = {spec: cache.get(spec) for spec in specs}
        self._pipelines: dict[Any, Pipeline] = {spec: pipeline for spec, (pipeline, _) in made.items()}
        self._groups: list[wgpu.GPUBindGroup | None] = [
            None if any(r.kind in ("input", "output") for r in d.bindings) else self._bind_group(d, {})
            for d in self.plan.dispatches
        ]
        self._own = self._bind(self._ends)
        new = [spec for spec, (_, fresh) in made.items() if fresh]
        for i, spec in enumerate(new):
            if progress is not None:
                progress(i, len(new), str(spec))
            self._warm_up(spec)
        if progress is not None:
            progress(len(new), len(new), "")

    def _warm_up(self, spec: Any) -> None:
        """Make the driver compile a kernel now: many do so only when it is first dispatched, and for nothing is enough."""
        at = next(i for i, d in enumerate(self.plan.dispatches) if d.spec == spec)
        group = self._groups[at] or self._bind_group(self.plan.dispatches[at], self._ends)
        encoder = self.device.gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(self._pipelines[spec].pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(0, 1, 1)
        compute.end()
        self.device.submit(encoder, ())
        self.device.wait()

    def _bind_group(self, planned: PlannedDispatch, ends: Mapping[tuple[str, str], Buffer]) -> wgpu.GPUBindGroup:
        entries = [{"binding": i, "resource": self._resource(resource, ends)} for i, resource in enumerate(planned.bindings)]
        if planned.uniform_size:
            window = {"buffer": self._uniforms, "offset": planned.uniform_offset, "size": planned.uniform_size}
            entries.append({"binding": len(entries), "resource": window})
        layout = self._pipelines[planned.spec].layout
        return self.device.gpu.create_bind_group(label=planned.label, layout=layout, entries=entries)

    def _resource(self, resource: Resource, ends: Mapping[tuple[str, str], Buffer]) -> Any:
        if resource.kind == "constant":
            weight = self._weights[int(resource.key)]
            if weight.view is not None:
                return weight.view
            buffer, packed = weight.resource, self.plan.constants[int(resource.key)].packing is not None
            # A packed constant is bound whole: its size is the packing's business.
            size = buffer.size_bytes if packed else resource.size_bytes
        elif resource.kind == "slot":
            buffer, size = self._slots[int(resource.key)], resource.size_bytes
        else:
            buffer, size = ends[resource.kind, str(resource.key)], resource.size_bytes
        return {"buffer": buffer.gpu, "offset": resource.offset_bytes, "size": size}

    def _bind(self, ends: Mapping[tuple[str, str], Buffer]) -> BoundTensors:
        """Return the dispatches over a set of buffers; only those that touch inputs or outputs need bind groups of their own."""
        dispatches = [
            Dispatch(self._pipelines[d.spec].pipeline, group or self._bind_group(d, ends), d.grid)
            for d, group in zip(self.plan.dispatches, self._groups, strict=True)
        ]
        return BoundTensors(ends, dispatches)

    def _bound_to(self, ends: Mapping[tuple[str, str], Buffer]) -> BoundTensors:
        key = tuple(id(buffer) for buffer in ends.values())
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._bind(ends)
            if len(self._bound) > _BOUND_SETS:
                self._bound.popitem(last=False)
        else:
            self._bound.move_to_end(key)
        return found

    def start(self, inputs: Mapping[str, Array], outputs: Sequence[str]) -> PendingRun:
        """Write the inputs, submit a run, and return a handle on its outputs.

        A program has one run in flight: an earlier one is finished first.

        Raises:
            InvalidStateError: the program was destroyed.
        """
        with self.device.lock:
            self.check()
            if self._pending is not None:
                self._pending.result()
            for name, array in inputs.items():
                self._ends["input", name].write(array)
            encoder = self._record(self._own)
            for name in outputs:
                source = self._ends["output", name]
                encoder.copy_buffer_to_buffer(source.gpu, 0, self.staging, self._read_offsets[name], source.size_bytes)
            self.device.submit(encoder, self._own.buffers.values())
            self._pending = PendingRun(self, outputs, self.staging.map_async(wgpu.MapMode.READ))
            return self._pending

    def dispatch(self, inputs: Mapping[str, Buffer], outputs: Mapping[str, Buffer]) -> None:
        """Submit a run over the caller's buffers and return at once.

        Raises:
            InvalidStateError: the program or a buffer was destroyed.
        """
        ends = {("input", n): inputs[n] for n in self.plan.inputs} | {("output", n): outputs[n] for n in self.plan.outputs}
        with self.device.lock:
            self.check()
            for buffer in ends.values():
                buffer.check()
            bound = self._bound_to(ends)
            self.device.submit(self._record(bound), ends.values())

    def _record(self, bound: BoundTensors) -> wgpu.GPUCommandEncoder:
        encoder = self.device.gpu.create_command_encoder()
        compute = encoder.begin_compute_pass()
        bound.recorder.record(compute)
        compute.end()
        return encoder

    def take_outputs(self, names: Sequence[str]) -> dict[str, Array]:
        """Copy the outputs out of the mapped staging buffer and unmap it."""
        results: dict[str, Array] = {}
        with self.device.lock:
            try:
                for name in names:
                    wanted = self.plan.outputs[name]
                    window: Any = self.staging.read_mapped(
                        self._read_offsets[name], self._ends["output", name].size_bytes, copy=False
                    )
                    raw = np.frombuffer(window, np.uint8, wanted.size_bytes)
                    results[name] = raw.view(wanted.numpy).reshape(wanted.shape).copy()
            finally:
                self.staging.unmap()
        return results

    def finished(self, run: PendingRun) -> None:
        """Note that a run's outputs were taken."""
        if self._pending is run:
            self._pending = None

    def check(self) -> None:
        """Raise InvalidStateError if the program was destroyed."""
        if self._destroyed:
            raise InvalidStateError("the graph was destroyed")

    def destroy(self) -> None:
        """Free everything on the device once queued work is done; idempotent."""
        with self.device.lock:
            if self._destroyed:
                return
            if self._pending is not None:
                self._pending.result()
            self._destroyed = True
            self._bound.clear()
            for weight in self._weights:
                weight.release()
            for buffer in (*getattr(self, "_slots", ()), *getattr(self, "_ends", {}).values()):
                buffer.destroy()
            for gpu in (getattr(self, "_uniforms", None), getattr(self, "staging", None)):
                if gpu is not None:
                    gpu.destroy()
