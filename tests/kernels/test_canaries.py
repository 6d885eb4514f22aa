"""No kernel writes outside its output, nor lets what lies there reach a result, whatever the driver would let it do.

Every buffer of a graph lies between guard regions. Kernels are bound the region behind a tensor too: the bounds checks of a
driver then let pass what runs over the end. What runs far over it they drop, or move to the last word of the region.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.kernels.operators import Call, calls
from tests.support import new_profile, op_graph
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.kernels.element import padded_bytes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import forceable
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.program_memory import ProgramMemory
from webnn_wgpu.testing.guards import GUARD_BYTES, GuardedBuffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.kernels.spec import Binding
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.plan.execution_plan import Resource
    from webnn_wgpu.runtime.buffer import Buffer
    from webnn_wgpu.runtime.device import Device


class GuardedMemory(ProgramMemory):
    """Memory whose slots, inputs and outputs lie between guard regions."""

    def __init__(self, device: Device, plan: ExecutionPlan) -> None:
        super().__init__(device, plan)
        self.guarded: list[GuardedBuffer] = []

    def allocate(self, progress: Any) -> None:
        with self._guarding():
            super().allocate(progress)

    def allocate_ends(self) -> None:
        with self._guarding():
            super().allocate_ends()

    @contextmanager
    def _guarding(self) -> Iterator[None]:
        self._device.__dict__["create_buffer"] = self._guarded_buffer
        try:
            yield
        finally:
            del self._device.__dict__["create_buffer"]

    def _guarded_buffer(self, size_bytes: int, label: str = "") -> Buffer:
        made = GuardedBuffer(self._device, padded_bytes(size_bytes), label)
        if not label.startswith("constant"):
            self.guarded.append(made)
        return made.tensor

    def _resource(self, binding: Binding, resource: Resource, ends: Any) -> Any:
        bound = super()._resource(binding, resource, ends)
        if isinstance(bound, dict):
            # Behind a value that lies in a part of a slot there may be another: then that one is bound too.
            bound["size"] = min(bound["size"] + GUARD_BYTES, bound["buffer"].size - bound["offset"])
        return bound


class GuardedProgram(Program):
    """A program with guarded memory."""

    def _new_memory(self) -> GuardedMemory:
        return GuardedMemory(self.device, self.plan)

    def damaged(self) -> list[str]:
        """The buffers whose canaries have changed."""
        assert isinstance(self.memory, GuardedMemory)
        return [buffer.label for buffer in self.memory.guarded if buffer.read()[1]]


def check(device: Device, call: Call, forced: dict[str, str]) -> None:
    arrays = call.arrays()
    graph = op_graph(call.name, arrays, call.attrs, call.constants)
    feeds: dict[str, Array] = {str(i): a for i, a in enumerate(arrays) if a is not None and i not in call.constants}
    try:
        plan = make_plan(graph, device.target, forced)
    except OperationError:
        return  # a variant that the device or the call cannot have
    guarded, free = GuardedProgram(device, plan), Program(device, plan)
    try:
        names = list(plan.outputs)
        found, wanted = (program.start(feeds, names).result() for program in (guarded, free))
        assert guarded.damaged() == []
        for name in names:
            assert found[name].tobytes() == wanted[name].tobytes(), f"{name} depends on what lies around"
        for name, array in feeds.items():
            given = guarded.memory.ends["input", name]
            data: Any = device.gpu.queue.read_buffer(given.gpu, GUARD_BYTES, -(-array.nbytes // 4) * 4)
            assert bytes(data)[: array.nbytes] == np.ascontiguousarray(array).tobytes(), f"input {name} was written"
    finally:
        guarded.destroy()
        free.destroy()


@pytest.fixture(scope="module", params=("full", "default-limits"))
def own_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    device = new_profile(request.param)
    yield device
    device.gpu.destroy()


@pytest.mark.repeats
@pytest.mark.parametrize("call", calls(), ids=str)
def test_every_operator(own_device: Device, call: Call) -> None:
    for variant in (None, *forceable().get(call.name, ())):
        check(own_device, call, {} if variant is None else {call.name: variant})


def test_a_write_outside_changes_a_canary(own_device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that writes one quad too many is found."""
    from webnn_wgpu.kernels.spec import KernelSpec

    packed = KernelSpec.packed

    def one_more(spec: KernelSpec, uniforms: Any) -> bytes:
        names = [name for name, _ in spec.uniforms]
        return packed(spec, [v + 1 if n == "quads" else v for n, v in zip(names, uniforms, strict=True)])

    monkeypatch.setattr(KernelSpec, "packed", one_more)
    graph = op_graph("neg", [np.ones(64, np.float32)])
    program = GuardedProgram(own_device, make_plan(graph, own_device.target))
    program.start({"0": np.ones(64, np.float32)}, ["0"]).result()
    assert program.damaged() == ["output 0"]
    program.destroy()
