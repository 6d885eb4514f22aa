"""Tensors of exactly their size in a program's own buffers, by every call of a context.

`test_exact_size.py` has every operator.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.kernels.large import limited
from tests.runtime.counting import count_objects, counted, created
from tests.support import PROFILES, profile_context
from webnn_wgpu import debug
from webnn_wgpu.api.backend import DeviceBackend
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.runtime import transfers
from webnn_wgpu.runtime.device import Device

from .programs import STORAGE

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array

OFFSET, BEHIND = 256, 64

POISON = 0xFF
"""What lies around tensors: NaN as float32 and as float16, -1 as integers."""

X = np.linspace(-3, 3, 21, dtype=np.float32).reshape(3, 7)
"""84 bytes: neither whole quads nor whole 32 bytes."""


class Guarded:
    """A tensor of exactly its size in a buffer of the program's own, with poison on both sides.

    Args:
        context: whose tensor.
        array: type and shape, and what the buffer holds if `filled`.
        filled: whether it does.
        behind: bytes behind the tensor's last word.
        usage: the buffer's.
    """

    def __init__(
        self, context: wn.MLContext, array: Array, *, filled: bool = True, behind: int = BEHIND, usage: Any = STORAGE
    ) -> None:
        self._gpu, self._array = context.device, array
        self._end = OFFSET + array.nbytes
        content = np.full(-(-self._end // 4) * 4 + behind, POISON, np.uint8)
        if filled:
            content[OFFSET : self._end] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.buffer = context.device.create_buffer_with_data(data=content, usage=usage)
        self.tensor = context.wrap_buffer(self.buffer, array.shape, str(array.dtype), OFFSET)

    @property
    def content(self) -> Array:
        """The tensor's elements, once it is checked that nothing around them has changed."""
        found = np.frombuffer(self._gpu.queue.read_buffer(self.buffer), np.uint8)
        assert set(found[:OFFSET]) == {POISON}
        assert set(found[self._end :]) <= {POISON}
        return found[OFFSET : self._end].view(self._array.dtype).reshape(self._array.shape)


@pytest.fixture(params=PROFILES)
def anywhere(request: pytest.FixtureRequest) -> wn.MLContext:
    return profile_context(request.param)


@pytest.fixture(params=["raw", "plain"])
def recorder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", request.param)
    return request.param


def curve(context: wn.MLContext, shape: tuple[int, ...] = X.shape) -> wn.MLGraph:
    """y = softmax(x + 1) and z = -x: two dispatches for y, one for z; all of them work on quads."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", list(shape), "float32")
    return builder.build({"y": builder.softmax(builder.add(x, builder.constant(np.float32(1))), axis=0), "z": builder.neg(x)})


def wanted(x: Array = X) -> Array:
    power = np.exp(np.float64(x))
    return np.float32(power / power.sum(axis=0))


def ends(context: wn.MLContext, **how: Any) -> dict[str, Guarded]:
    return {
        "x": Guarded(context, X, **how),
        "y": Guarded(context, X, filled=False, **how),
        "z": Guarded(context, X, filled=False, **how),
    }


def tensors(of: dict[str, Guarded]) -> tuple[dict[str, wn.MLTensor], dict[str, wn.MLTensor]]:
    return {"x": of["x"].tensor}, {name: of[name].tensor for name in "yz"}


def check(of: dict[str, Guarded], x: Array = X) -> None:
    np.testing.assert_array_equal(of["x"].content, x)
    np.testing.assert_allclose(of["y"].content, wanted(x), rtol=1e-5)
    np.testing.assert_array_equal(of["z"].content, -x)


# Writing and reading --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_type", DATA_TYPES)
def test_write_and_read(anywhere: wn.MLContext, data_type: str) -> None:
    for count in (1, 2, 3, 5, 131):
        guarded = Guarded(anywhere, np.zeros(count, data_type), filled=False)
        for values in (np.arange(count).astype(data_type), np.arange(count)[::-1].astype(data_type)):
            anywhere.write_tensor(guarded.tensor, values)
            np.testing.assert_array_equal(guarded.content, values)
            np.testing.assert_array_equal(anywhere.read_tensor(guarded.tensor), values)


def test_a_buffer_that_ends_with_the_tensor(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    for count in (1, 4, 5, 6):
        exact = gpu.create_buffer(size=-(-count // 4) * 4, usage=STORAGE)
        tensor = own.wrap_buffer(exact, [count], "uint8")
        own.write_tensor(tensor, np.arange(count, dtype=np.uint8))
        assert own.read_tensor(tensor).tolist() == list(range(count))


def test_later_writes_create_nothing(own: wn.MLContext) -> None:
    guarded = Guarded(own, np.zeros(5, np.uint8))
    own.write_tensor(guarded.tensor, np.ones(5, np.uint8))
    with counted() as calls:
        own.write_tensor(guarded.tensor, np.full(5, 2, np.uint8))
    assert created(calls) == {}
    assert guarded.content.tolist() == [2] * 5


# Runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("recorder")
@pytest.mark.parametrize("behind", [0, BEHIND])
@pytest.mark.parametrize("usage", [wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC, STORAGE])
def test_dispatch(own: wn.MLContext, usage: int, behind: int) -> None:
    graph, given = curve(own), ends(own, usage=usage, behind=behind)
    own.dispatch(graph, *tensors(given))
    check(given)


def test_without_the_usages_of_copies(own: wn.MLContext) -> None:
    """The copies of a run need the usage STORAGE alone."""
    graph, given, seen = curve(own), ends(own, usage="STORAGE", behind=0), ends(own)
    own.dispatch(graph, *tensors(given))
    copy = wn.MLGraphBuilder(own)
    second = copy.build({"y": copy.identity(copy.input("x", list(X.shape), "float32"))})
    own.dispatch(second, {"x": given["y"].tensor}, {"y": seen["y"].tensor})
    np.testing.assert_allclose(seen["y"].content, wanted(), rtol=1e-5)


def test_later_runs_create_nothing(own: wn.MLContext) -> None:
    graph, given = curve(own), ends(own, behind=0)
    held = own.memory()
    own.dispatch(graph, *tensors(given))
    assert own.memory() == held  # the graph's own inputs and outputs stand in
    with counted() as calls:
        for x in (2 * X, -X):
            own.write_tensor(given["x"].tensor, x)
            own.dispatch(graph, *tensors(given))
            check(given, x)
    assert created(calls) == {"wgpuDeviceCreateBuffer": 6}  # what `check` reads through
    np.testing.assert_allclose(own.compute(graph, {"x": X})["y"], wanted(), rtol=1e-5)
    check(given, -X)


def test_tensors_with_room_and_without(own: wn.MLContext) -> None:
    """A graph's runs over tensors of either kind do not disturb each other."""
    graph, given = curve(own), ends(own)
    x, y, z = (own.create_tensor(X.shape, "float32", readable=True, writable=True) for _ in range(3))
    own.write_tensor(x, -X)
    for _ in range(2):
        own.dispatch(graph, {"x": x}, {"y": y, "z": z})
        own.dispatch(graph, *tensors(given))
        own.dispatch(graph, {"x": given["x"].tensor}, {"y": y, "z": given["z"].tensor})
        np.testing.assert_allclose(own.read_tensor(y), wanted(), rtol=1e-5)
        check(given)


def test_everything_goes(own: wn.MLContext) -> None:
    """What stands in for tensors goes with the graph, and what writes a part of a word with the tensor."""

    def use() -> None:
        graph, given = curve(own), ends(own, behind=0)
        own.dispatch(graph, *tensors(given))
        half = Guarded(own, np.zeros(3, np.float16))
        own.write_tensor(half.tensor, np.ones(3, np.float16))
        assert half.content.tolist() == [1, 1, 1]

    use()
    gc.collect()
    before = count_objects()
    for _ in range(3):
        use()
    gc.collect()
    after = count_objects()
    assert {kind: after[kind] - n for kind, n in before.items() if after[kind] > n} == {}


DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < 21u) { x[64u + id.x] = x[64u + id.x] * 2.0; }
}
"""


class Doubler:
    """A pass of the program's own that doubles the numbers of a guarded tensor."""

    def __init__(self, gpu: wgpu.GPUDevice, of: Guarded) -> None:
        module = gpu.create_shader_module(code=DOUBLE)
        self.pipeline = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        entries: Any = [{"binding": 0, "resource": {"buffer": of.buffer}}]
        self.group = gpu.create_bind_group(layout=self.pipeline.get_bind_group_layout(0), entries=entries)

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        compute_pass.set_pipeline(self.pipeline)
        compute_pass.set_bind_group(0, self.group)
        compute_pass.dispatch_workgroups(1)


@pytest.mark.usefixtures("recorder")
@pytest.mark.parametrize("open_pass", [False, True])
def test_encode_between_own_work(own: wn.MLContext, gpu: wgpu.GPUDevice, open_pass: bool) -> None:
    graph, given = curve(own), ends(own, behind=0)
    before, after = Doubler(gpu, given["x"]), Doubler(gpu, given["z"])
    encoder = gpu.create_command_encoder()
    for _ in range(2):
        compute_pass = encoder.begin_compute_pass()
        before.record(compute_pass)
        if open_pass:
            own.encode(graph, *tensors(given), compute_pass=compute_pass)
        else:
            compute_pass.end()
            own.encode(graph, *tensors(given), encoder)
            compute_pass = encoder.begin_compute_pass()
        after.record(compute_pass)
        compute_pass.end()
    gpu.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(given["x"].content, 4 * X)
    np.testing.assert_allclose(given["y"].content, wanted(4 * X), rtol=1e-5)
    np.testing.assert_array_equal(given["z"].content, -8 * X)


def test_everything_may_be_destroyed_before_the_submit(gpu: wgpu.GPUDevice) -> None:
    context = wn.ml.create_context(gpu)
    graph, given = curve(context), ends(context, behind=0)
    encoder = gpu.create_command_encoder()
    context.encode(graph, *tensors(given), encoder)
    for thing in (graph, *(g.tensor for g in given.values()), context):
        thing.destroy()
    gpu.queue.submit([encoder.finish()])
    check(given)


@pytest.mark.usefixtures("recorder")
def test_steps(own: wn.MLContext) -> None:
    graph, other, given = curve(own), curve(own), ends(own, behind=0)
    total = len(graph.plan.dispatches)
    spare = ends(own)
    for _ in range(2):
        for done in own.dispatch_steps(graph, *tensors(given), max_ms_per_submit=1e-6):
            assert done == (done[0], total)
            # Another graph reads a tensor that this one has not finished, and gets what it gets.
            own.dispatch(other, {"x": given["y"].tensor}, {name: spare[name].tensor for name in "yz"})
        check(given)
        own.write_tensor(given["y"].tensor, np.zeros_like(X))


def test_watched(own: wn.MLContext) -> None:
    """Whoever looks at values sees those of a caller's tensors, inputs and results."""
    graph, given = curve(own), ends(own, behind=0)
    with debug.watch(graph, values=True) as watch:
        own.dispatch(graph, *tensors(given))
    assert watch.first is None, str(watch)
    check(given)


def test_a_state_in_place(own: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(own)
    cache = builder.input("cache", list(X.shape), "float32")
    new, at = builder.input("new", [1, 7], "float32"), builder.input("at", [], "int32")
    after = builder.ext.cache_update(cache, new, at, axis=0)
    graph = builder.build({"after": after, "z": builder.neg(after)}, aliases={"after": "cache"})
    state, z = Guarded(own, X, behind=0), Guarded(own, X, filled=False, behind=0)
    row, position = Guarded(own, X[:1], behind=0), Guarded(own, np.zeros((), np.int32), behind=0)
    expected = X.copy()
    for at_row in (2, 0, 1):
        own.write_tensor(position.tensor, np.int32(at_row))
        own.write_tensor(row.tensor, X[:1] + at_row)
        inputs = {"cache": state.tensor, "new": row.tensor, "at": position.tensor}
        own.dispatch(graph, inputs, {"after": state.tensor, "z": z.tensor})
        expected[at_row] = X[0] + at_row
        np.testing.assert_array_equal(state.content, expected)
        np.testing.assert_array_equal(z.content, -expected)


def test_bytes_of_a_shared_word(anywhere: wn.MLContext) -> None:
    """What others write into the rest of the last word between two runs stays there."""
    builder = wn.MLGraphBuilder(anywhere)
    graph = builder.build({"y": builder.ext.bitwise_not(builder.input("x", [5], "uint8"))})
    gpu = anywhere.device
    x, target = Guarded(anywhere, np.arange(5, dtype=np.uint8)), gpu.create_buffer(size=8, usage=STORAGE)
    y = anywhere.wrap_buffer(target, [5], "uint8")
    for others in (b"abc", b"xyz"):
        gpu.queue.write_buffer(target, 4, b"\0" + others)
        anywhere.dispatch(graph, {"x": x.tensor}, {"y": y})
        assert bytes(gpu.queue.read_buffer(target)) == bytes([255, 254, 253, 252, 251]) + others


def test_more_than_one_binding(gpu: wgpu.GPUDevice) -> None:
    """Copies are divided as kernels are."""
    caps = limited(Device.of(gpu).caps, 2048, max_buffer_size=8192)
    with wn.MLContext(DeviceBackend(Device(gpu, owned=False, caps=caps))) as small:
        builder = wn.MLGraphBuilder(small)
        graph = builder.build({"y": builder.neg(builder.input("x", [1201], "float32"))})
        x = np.arange(1201, dtype=np.float32)
        for behind in (0, BEHIND):
            source, target = Guarded(small, x, behind=behind), Guarded(small, x, filled=False, behind=behind)
            small.dispatch(graph, {"x": source.tensor}, {"y": target.tensor})
            np.testing.assert_array_equal(target.content, -x)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 255, 256, 257, 20_000, 20_001, 20_223, 20_224])
def test_copies(own: wn.MLContext, size: int) -> None:
    """Runs copy tensors of every size: by words, and large ones by vectors and the words behind them."""
    device = Device.of(own.device)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    source, target = Guarded(own, data), Guarded(own, data, filled=False)
    copies = transfers.copy_bytes(device, source.tensor._storage, target.tensor._storage, size)
    assert len(copies) == 1 + (size > transfers._VECTORS_FROM and size % 256 > 0)
    encoder = own.device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    for copy in copies:
        compute_pass.set_pipeline(copy.pipeline)
        compute_pass.set_bind_group(0, copy.bind_group)
        compute_pass.dispatch_workgroups(*copy.grid)
    compute_pass.end()
    own.device.queue.submit([encoder.finish()])
    np.testing.assert_array_equal(target.content, data)


# Other calls ----------------------------------------------------------------------------------------------------------


INVERT = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    if (i < arrayLength(&x)) { x[i] = ~x[i]; }
}
"""


def test_a_kernel_of_the_programs_own(own: wn.MLContext) -> None:
    for count in (5, 8):
        guarded = Guarded(own, np.arange(count, dtype=np.uint8))
        wn.run_wgsl(INVERT, guarded.tensor, workgroups=1)
        assert guarded.content.tolist() == [255 - i for i in range(count)]


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("behind", [0, BEHIND])
def test_textures(anywhere: wn.MLContext, data_type: str, behind: int) -> None:
    gpu = anywhere.device
    usage = "TEXTURE_BINDING | RENDER_ATTACHMENT | COPY_SRC | COPY_DST"
    for width, height, order in ((5, 3, "r"), (7, 3, "rgb"), (4, 2, "rgba"), (1, 1, "r")):
        picture = np.random.default_rng(1).integers(0, 256, (height, width, 4), np.uint8)
        source, target = (gpu.create_texture(size=(width, height), format="rgba8unorm", usage=usage) for _ in range(2))
        gpu.queue.write_texture({"texture": source}, picture, {"bytes_per_row": width * 4}, (width, height, 1))
        channels = len(order)
        expected = (np.float32(picture[..., :channels]) / 255).astype(data_type)[None]
        guarded = Guarded(anywhere, expected, filled=False, behind=behind)
        for encoder in (None, gpu.create_command_encoder()):
            how: Any = {"layout": "nhwc", "channel_order": order, "data_type": data_type, "encoder": encoder}
            assert anywhere.tensor_from_texture(source, into=guarded.tensor, **how) is guarded.tensor
            if encoder is not None:
                gpu.queue.submit([encoder.finish()])
            np.testing.assert_allclose(np.float32(guarded.content), np.float32(expected), atol=1e-3)
            anywhere.write_tensor(guarded.tensor, expected)
        anywhere.tensor_to_texture(guarded.tensor, target, layout="nhwc", mean=0.0)
        row: Any = {"bytes_per_row": width * 4}
        drawn = np.frombuffer(gpu.queue.read_texture({"texture": target}, row, (width, height, 1)), np.uint8)
        found = drawn.reshape(height, width, 4)[..., :channels]
        np.testing.assert_allclose(np.int32(found), np.int32(picture[..., :channels]), atol=1)


def test_bytes_drawn(anywhere: wn.MLContext) -> None:
    gpu = anywhere.device
    gray = np.random.default_rng(2).integers(0, 256, (3, 7), np.uint8)
    guarded = Guarded(anywhere, gray, behind=0)
    target = gpu.create_texture(size=(7, 3), format="rgba8unorm", usage="RENDER_ATTACHMENT | COPY_SRC")
    anywhere.tensor_to_texture(guarded.tensor, target)
    data = gpu.queue.read_texture({"texture": target}, {"bytes_per_row": 28}, (7, 3, 1))
    found = np.frombuffer(data, np.uint8).reshape(3, 7, 4)[..., 0]
    np.testing.assert_array_equal(found, gray)
    np.testing.assert_array_equal(guarded.content, gray)
