"""The memory of a program: buffers and textures on the device, and the place of each value of the plan in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.progress import UPLOADING, Progress
from ..kernels.spec import Binding
from ..plan.execution_plan import ExecutionPlan, PlannedDispatch, Resource
from .bounce import Key, bounce_buffers, bound_bytes
from .bound import Ends
from .buffer import Buffer
from .device import Device
from .weights import Weight, WeightStore


class ProgramMemory:
    """The slots, constants and uniforms of a plan, and the program's own buffers for inputs, outputs and readback.

    Attributes:
        ends: the program's own buffers of inputs and outputs that are allocated.
        staging: the buffer for the readback of outputs. None until `allocate_ends`.
        read_offsets: output name -> offset in the staging buffer, in bytes.
        weights: the constants, which other programs may share.
    """

    def __init__(self, device: Device, plan: ExecutionPlan) -> None:
        self.ends: dict[Key, Buffer] = {}
        self.staging: wgpu.GPUBuffer | None = None
        self.read_offsets: Mapping[str, int] = {}
        self.weights: list[Weight] = []
        self._device, self._plan = device, plan
        self._slots: list[Buffer] = []
        self._uniforms: wgpu.GPUBuffer | None = None
        self._staging_bytes = 0
        self._lent = False

    def write_uniforms(self) -> None:
        """Allocate and fill the uniform buffer."""
        if self._plan.uniforms:
            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._uniforms = self._device.create_gpu_buffer(len(self._plan.uniforms), usage, "uniforms")
            self._device.queue_write(self._uniforms, 0, np.frombuffer(self._plan.uniforms, np.uint8))

    def allocate(self, progress: Progress | None) -> None:
        """Allocate the slots, and upload the constants."""
        plan, store, done = self._plan, WeightStore.of(self._device), 0
        for i, slot in enumerate(plan.slots):
            self._slots.append(self._device.create_buffer(slot.size_bytes, f"slot {i}"))
        for use in plan.constants:
            if progress is not None:
                progress(done, plan.constant_bytes, UPLOADING)
            self.weights.append(store.get(plan.arrays[use.value], use.packing, f"constant %{use.value}"))
            done += use.type.size_bytes
        if progress is not None and plan.constant_bytes:
            progress(done, plan.constant_bytes, UPLOADING)

    def allocate_ends(self) -> None:
        """Allocate the program's own buffers for all inputs and outputs, and for readback.

        Raises:
            OutOfMemoryError: the device lacks memory, or the outputs exceed the maximum size of one buffer. No buffer is
                allocated then.
        """
        self.read_offsets, self._staging_bytes = self._plan.read_back()
        self.staging = self._device.create_staging(self._staging_bytes)
        for kind, names in (("input", self._plan.inputs), ("output", self._plan.outputs)):
            for name in names:
                self.own_end((kind, name))

    def own_end(self, end: Key) -> Buffer:
        """Return the program's own buffer of an input or output. It is allocated at the first call."""
        kind, name = end
        if end not in self.ends:
            if kind == "output" and name in self._plan.aliases:
                self.ends[end] = self.own_end(("input", self._plan.aliases[name]))
            else:
                types = self._plan.inputs if kind == "input" else self._plan.outputs
                self.ends[end] = self._device.create_buffer(types[name].size_bytes, f"{kind} {name}")
        return self.ends[end]

    def replace_staging(self) -> None:
        """Allocate the staging buffer again if an interrupted call has left it mapped."""
        if self.staging is None or self.staging.map_state != "unmapped":
            self.staging = self._device.create_staging(self._staging_bytes)

    def bounces(self, ends: Ends) -> dict[Key, Buffer]:
        """Return the program's own buffers that dispatches bind in place of tensors of unsuitable sizes."""
        return bounce_buffers(self._plan, ends, self.own_end)

    def bound_ends(self, ends: Ends) -> Ends:
        """Return the buffers that the dispatches of a run over some ends bind: the ends, or bounce buffers for them."""
        return {**ends, **self.bounces(ends)}

    def resources(self, planned: PlannedDispatch, ends: Ends) -> dict[int, Any]:
        """Return the resources of the bindings of a dispatch, by number."""
        bound = zip(planned.spec.bindings, planned.bindings, strict=True)
        found = {i: self._resource(binding, resource, ends) for i, (binding, resource) in enumerate(bound)}
        return {**found, len(found): self.uniform_window(planned)} if planned.uniform_size else found

    def uniform_window(self, planned: PlannedDispatch) -> Any:
        """Return the part of the uniform buffer that a dispatch binds."""
        return {"buffer": self._uniforms, "offset": planned.uniform_offset, "size": planned.uniform_size}

    def _resource(self, binding: Binding, resource: Resource, ends: Ends) -> Any:
        if resource.kind == "constant":
            weight = self.weights[int(resource.key)]
            if weight.buffer is None:
                return weight.view
            buffer, size = weight.buffer, resource.size_bytes
        elif resource.kind == "slot":
            buffer, size = self._slots[int(resource.key)], resource.size_bytes
        else:
            buffer = ends[resource.kind, str(resource.key)]
            size = bound_bytes(binding, resource, buffer)
        return {"buffer": buffer.gpu, "offset": buffer.offset_bytes + resource.offset_bytes, "size": size}

    def buffer_of(self, place: Resource, ends: Ends) -> Buffer:
        """Return the part of a buffer that holds a value."""
        whole = self._slots[int(place.key)] if place.kind == "slot" else ends[place.kind, str(place.key)]
        return Buffer(self._device, whole.gpu, whole.offset_bytes + place.offset_bytes, -(-place.size_bytes // 4) * 4)

    def buffers(self, ends: Ends) -> tuple[Buffer, ...]:
        """Return all buffers that a run over some ends uses."""
        return (*self._slots, *ends.values())

    def write(self, inputs: Mapping[str, Array]) -> None:
        """Write arrays to the program's own buffers of inputs."""
        for name, array in inputs.items():
            self.ends["input", name].write(array)

    @property
    def held(self) -> dict[str, int]:
        """The sizes of the memory that no other program shares, in bytes by owner."""
        return {
            "slots": sum(slot.size_bytes for slot in self._slots),
            "inputs and outputs": sum(end.size_bytes for end in self.ends.values()),
            "uniforms": 0 if self._uniforms is None else self._uniforms.size,
            "staging": 0 if self.staging is None else self.staging.size,
        }

    def lend(self, ends: Ends) -> None:
        """Keep all memory of a run until the last reference to it is gone: the caller has yet to submit the run."""
        self._lent = True
        for buffer in (*self.buffers(ends), *self.ends.values()):
            buffer.lend()

    def destroy(self) -> None:
        """Free everything once queued work is done. Idempotent."""
        self.weights.clear()  # This frees the constants that no other program uses.
        self.staging = None
        for buffer in self.buffers(self.ends):
            buffer.destroy()
        self._slots.clear()
        self.ends.clear()
        if self._uniforms is not None:
            uniforms, self._uniforms = self._uniforms, None
            if not self._lent:
                uniforms.destroy()
