"""The buffers of an execution plan on the host, as the interpreter works on them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.data_types import Array, of_tensor_bytes, tensor_bytes
from ..ir.types import TensorType
from ..kernels.element import STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..plan import ExecutionPlan
from ..plan.execution_plan import PlannedDispatch, Resource
from .wgsl import dispatch
from .wgsl.memory import BufferBytes


class PlanMemory:
    """Inputs, outputs, slots, constants and uniforms of a plan. Outputs and slots are taken for unwritten at first.

    Args:
        plan: the plan.
        feeds: the inputs by name.
    """

    def __init__(self, plan: ExecutionPlan, feeds: Mapping[str, Array]) -> None:
        self._plan = plan
        self._ends: dict[tuple[str, str], BufferBytes] = {}
        for name, type_ in plan.inputs.items():
            held = _unwritten(type_.size_bytes)  # The content of the padding is undefined.
            held.fill(tensor_bytes(feeds[name]))
            self._ends["input", name] = held
        for name, type_ in plan.outputs.items():
            source = plan.aliases.get(name)
            self._ends["output", name] = self._ends["input", source] if source else _unwritten(type_.size_bytes)
        self._slots = [_unwritten(slot.size_bytes) for slot in plan.slots]
        self._constants: dict[int, BufferBytes | Array] = {}
        self._uniforms = BufferBytes.of(np.frombuffer(plan.uniforms, np.uint8))

    def resources(self, planned: PlannedDispatch) -> dict[int, dispatch.Resource]:
        """Return the resources of a dispatch by binding."""
        found = {i: self._resource(r) for i, r in enumerate(planned.bindings)}
        if planned.uniform_size:
            found[len(found)] = dispatch.BufferWindow(self._uniforms, planned.uniform_offset, planned.uniform_size)
        return found

    def take(self, position: int, found: Mapping[int, Array]) -> None:
        """Set the resources of a dispatch, by binding, to bytes that were read before it on the device."""
        written = {(r.kind, r.key) for d in self._plan.dispatches[:position] for r in _written(d)}
        for i, content in found.items():
            resource = self._plan.dispatches[position].bindings[i]
            window = self._resource(resource)
            assert isinstance(window, dispatch.BufferWindow)
            part = slice(window.offset, window.offset + content.nbytes)
            window.buffer.data[part] = content
            if window.buffer.written is not None and (resource.kind, resource.key) in written:
                window.buffer.written[part] = True

    def content(self, resource: Resource) -> Array:
        """Return the bytes of a resource that is no texture."""
        window = self._resource(resource)
        assert isinstance(window, dispatch.BufferWindow)
        return window.buffer.data[window.offset : window.offset + window.size]

    def output(self, name: str) -> Array:
        """Return an output."""
        return _elements(self._ends["output", name].data, self._plan.outputs[name])

    def _resource(self, resource: Resource) -> dispatch.Resource:
        match resource.kind:
            case "constant":
                buffer = self._constant(int(resource.key))
                if not isinstance(buffer, BufferBytes):
                    return buffer
            case "slot":
                buffer = self._slots[int(resource.key)]
            case kind:
                buffer = self._ends[kind, str(resource.key)]
        return dispatch.BufferWindow(buffer, resource.offset_bytes, resource.size_bytes, self._padding(resource))

    def _padding(self, resource: Resource) -> int:
        """Return the number of padding bytes at the end of a resource."""
        if resource.kind not in ("output", "slot"):
            return 0
        end = resource.offset_bytes + resource.size_bytes
        ends = [
            p.offset_bytes + p.size_bytes
            for p in self._plan.places.values()
            if (p.kind, p.key) == (resource.kind, resource.key)
        ]
        if resource.kind == "output":  # Its value may have another allocation: a result that equals an operand is a view of it.
            ends.append(self._plan.outputs[str(resource.key)].size_bytes)
        paddings = [end - e for e in ends if 0 <= end - e < STORAGE_ALIGNMENT_BYTES]
        # Scratch memory is no value, and has padding too.
        return max(paddings, default=STORAGE_ALIGNMENT_BYTES - 4 if resource.kind == "slot" else 0)

    def _constant(self, number: int) -> BufferBytes | Array:
        if number not in self._constants:
            use = self._plan.constants[number]
            array = self._plan.arrays[use.value]
            packed: Array = np.ascontiguousarray(tensor_bytes(array) if use.packing is None else use.packing.pack(array))
            texture = use.packing is not None and use.packing.texture
            self._constants[number] = packed if texture else BufferBytes.of(packed, padded_bytes(packed.nbytes))
        return self._constants[number]


def _written(planned: PlannedDispatch) -> list[Resource]:
    return [r for b, r in zip(planned.spec.bindings, planned.bindings, strict=True) if b.access == "write"]


def _unwritten(size_bytes: int) -> BufferBytes:
    return BufferBytes.unwritten(padded_bytes(size_bytes))


def _elements(data: Array, type_: TensorType) -> Array:
    content = data[: type_.size_bytes]
    if type_.numpy.itemsize * int(np.prod(type_.shape)) != type_.size_bytes:
        return of_tensor_bytes(content, type_.data_type, int(np.prod(type_.shape))).reshape(type_.shape)
    return content.view(type_.numpy).reshape(type_.shape).copy()
