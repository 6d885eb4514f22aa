"""Every operator, for every data type, on tensors of exactly their size in the middle of a caller's buffer.

What lies around the tensors is there before and after, to the last byte, and no result depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, new_profile
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import forceable
from webnn_wgpu.runtime import bounce, program_memory, transfers
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.program_memory import ProgramMemory
from webnn_wgpu.runtime.wrapping import WrappedBuffer

from .exact import calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.kernels.operators import Call
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.kernels.spec import Binding
    from webnn_wgpu.plan.execution_plan import Resource
    from webnn_wgpu.runtime.device import Device

CALLS = calls()

OFFSET = 256
"""Where the first tensor lies in a buffer; a multiple of every device's alignment."""

POISON = np.uint32([0x7FC07FFF, 0x7F800000, 0xFFFFFFFF, 0x7C00FC00, 0xFF7FFFFF])
"""NaN, infinities and the largest numbers, as float32 and as float16."""


class Around:
    """Arrays in one buffer, each as a tensor of exactly its size, with poison around.

    Args:
        device: where the buffer is.
        arrays: what lies in the buffer; outputs begin as poison too.
        filled: whether the arrays' elements are written into it.
        room: whether kernels may read what lies behind a tensor.
    """

    def __init__(self, device: Device, arrays: Mapping[str, Array], *, filled: bool, room: bool) -> None:
        self._device, self._arrays = device, arrays
        self._offsets: dict[str, int] = {}
        end = OFFSET
        for name, array in arrays.items():
            self._offsets[name] = end
            end += -(-array.nbytes // OFFSET) * OFFSET + OFFSET
        self._content = np.resize(POISON, end // 4).view(np.uint8)
        self._inside = np.zeros(end, np.bool_)
        for name, array in arrays.items():
            place = slice(self._offsets[name], self._offsets[name] + array.nbytes)
            self._inside[place] = True
            if filled:
                self._content[place] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        usage = "STORAGE | COPY_SRC"
        self._buffer = device.gpu.create_buffer_with_data(data=self._content, usage=usage)
        self.tensors = {n: WrappedBuffer.of(device, self._buffer, at, arrays[n].nbytes) for n, at in self._offsets.items()}
        if not room:
            for tensor in self.tensors.values():
                tensor.reach_bytes = tensor.size_bytes

    def look(self) -> dict[str, bytes]:
        """Return the bytes of every tensor; raise where something around the tensors is not as it was."""
        data: Any = self._device.gpu.queue.read_buffer(self._buffer)
        found = np.frombuffer(data, np.uint8)
        changed = np.flatnonzero((found != self._content) & ~self._inside)
        last = [max(at, OFFSET) for at in map(int, changed[:4])]
        near = [max((n for n, start in self._offsets.items() if start <= at), key=self._offsets.__getitem__) for at in last]
        assert not near, f"{changed.size} bytes outside of tensors were written, the first of them near {near}"
        return {n: found[at : at + self._arrays[n].nbytes].tobytes() for n, at in self._offsets.items()}


class OpenMemory(ProgramMemory):
    """Memory whose bindings also include the bytes behind a caller's tensors: no driver's bounds checks hold kernels back.

    Bindings of a program's own kernels do not: such kernels may take the length of a binding for that of the tensor.
    """

    opened = False

    def _resource(self, binding: Binding, resource: Resource, ends: Any) -> Any:
        bound = super()._resource(binding, resource, ends)
        if self.opened and not binding.exact and isinstance(ends.get((resource.kind, str(resource.key))), WrappedBuffer):
            bound["size"] += OFFSET
        return bound


class Open(Program):
    """A program with open memory."""

    memory: OpenMemory

    def _new_memory(self) -> OpenMemory:
        return OpenMemory(self.device, self.plan)


def graph_of(of: Sequence[Call]) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of some calls side by side, each with operands and results of its own, and what to feed it."""
    sketch = Sketch()
    outputs: dict[str, int] = {}
    for call in of:
        operands = [
            None if array is None else sketch.constant(array) if i in call.constants else sketch.input(array)
            for i, array in enumerate(call.arrays())
        ]
        for i, value in enumerate(sketch.apply_all(call.name, operands, str(call), **call.attrs)):
            outputs[f"{call}:{i}"] = value
    return sketch.graph(**outputs), sketch.feeds


def check(device: Device, of: Sequence[Call], forced: dict[str, str] | None = None) -> None:
    graph, feeds = graph_of(of)
    running = Open(device, make_plan(graph, device.target, forced))
    try:
        wanted = running.start(feeds, list(graph.outputs)).result()
        for room, running.memory.opened in ((True, False), (False, False), (True, True)):
            inputs = Around(device, feeds, filled=True, room=room)
            outputs = Around(device, wanted, filled=False, room=room)
            running.dispatch(inputs.tensors, outputs.tensors)
            assert inputs.look() == {n: np.ascontiguousarray(a).tobytes() for n, a in feeds.items()}
            for name, found in outputs.look().items():
                assert found == wanted[name].tobytes(), f"{name} depends on what lies around, {room=} {running.memory.opened=}"
    finally:
        running.destroy()


@pytest.fixture(scope="module")
def own_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device of a profile that forgets the many kernels of these tests when they are done."""
    device = new_profile(request.param)
    yield device
    device.close()


@pytest.mark.parametrize("own_device", ["full", "default-limits"], indirect=True, scope="module")
@pytest.mark.parametrize("name", CALLS)
def test_every_operator(own_device: Device, name: str) -> None:
    check(own_device, CALLS[name])


# Together these profiles have what variants ask for. Neither is the full one, so that a share of these tests runs at a time.
@pytest.mark.repeats
@pytest.mark.parametrize("own_device", ["subgroup-only", "f16-only"], indirect=True, scope="module")
@pytest.mark.parametrize("name", sorted(CALLS.keys() & forceable().keys()))
def test_every_variant(own_device: Device, name: str) -> None:
    for variant in forceable()[name]:
        possible: list[Call] = []
        for call in CALLS[name]:
            try:
                make_plan(graph_of([call])[0], own_device.target, {name: variant})
            except OperationError:
                continue  # a variant that the device or the call cannot have
            possible.append(call)
        if possible:
            check(own_device, possible, {name: variant})


def test_bytes_that_are_written_around_a_tensor_are_found(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are bound tensors without the room they need are found, and copies of whole words are."""
    calls = [call for call in CALLS["neg"] if str(call) in ("neg-3x7-float32", "neg-3x7-int8")]
    check(device, calls)
    with monkeypatch.context() as patch:
        patch.setattr(transfers, "_bits_of_last_word", lambda size_bytes: 32)
        with pytest.raises(AssertionError, match=r"^3 bytes .* near \['neg-3x7-int8:0'"):
            check(device, calls)
    monkeypatch.setattr(bounce, "bound_bytes", lambda binding, resource, buffer: buffer.size_bytes)
    monkeypatch.setattr(program_memory, "bound_bytes", lambda binding, resource, buffer: buffer.size_bytes)
    with pytest.raises(AssertionError):
        check(device, calls)
