from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.interop.abuses import TOLD_AT_ONCE
from tests.runtime.counting import counted, created

from .programs import TYPE, X, buffer, content, expected, network

FLAGS: dict[str, Any] = {**TYPE, "readable": True, "writable": True}

DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = x[id.x] * 2.0; }
"""


@pytest.fixture(params=["raw", "plain"])
def recorder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", request.param)
    return request.param


class Doubler:
    """A compute pass of the program's own that doubles a buffer's numbers."""

    def __init__(self, gpu: wgpu.GPUDevice, over: wgpu.GPUBuffer) -> None:
        module = gpu.create_shader_module(code=DOUBLE)
        self.pipeline = gpu.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
        self.group = gpu.create_bind_group(
            layout=self.pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": over}}]
        )

    def record(self, compute_pass: wgpu.GPUComputePassEncoder) -> None:
        compute_pass.set_pipeline(self.pipeline)
        compute_pass.set_bind_group(0, self.group)
        compute_pass.dispatch_workgroups(1)


@pytest.mark.usefixtures("recorder")
def test_own_work_before_and_after_in_one_submit(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, source, target = network(own), buffer(gpu, X), buffer(gpu)
    x, y = own.wrap_buffer(source, [4, 8], "float32"), own.wrap_buffer(target, [4, 8], "float32")
    before, after = Doubler(gpu, source), Doubler(gpu, target)
    with counted() as calls:
        encoder = gpu.create_command_encoder()
        first = encoder.begin_compute_pass()
        before.record(first)
        first.end()
        own.encode(graph, {"x": x}, {"y": y}, encoder)
        last = encoder.begin_compute_pass()
        after.record(last)
        last.end()
        assert calls["wgpuQueueSubmit"] == 0
        gpu.queue.submit([encoder.finish()])
    np.testing.assert_allclose(content(gpu, target).reshape(4, 8), 2 * expected(2 * X), rtol=1e-5)


@pytest.mark.usefixtures("recorder")
def test_into_an_open_pass(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, source, target = network(own), buffer(gpu, X), buffer(gpu)
    x, y = own.wrap_buffer(source, [4, 8], "float32"), own.wrap_buffer(target, [4, 8], "float32")
    before, after = Doubler(gpu, source), Doubler(gpu, target)
    encoder = gpu.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    before.record(compute_pass)
    own.encode(graph, {"x": x}, {"y": y}, compute_pass=compute_pass)
    after.record(compute_pass)
    compute_pass.end()
    gpu.queue.submit([encoder.finish()])
    np.testing.assert_allclose(content(gpu, target).reshape(4, 8), 2 * expected(2 * X), rtol=1e-5)


def test_several_runs_in_one_submit(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph = network(own)
    tensors = [own.create_tensor(FLAGS) for _ in range(4)]
    encoder = gpu.create_command_encoder()
    for source, target in itertools.pairwise(tensors):
        own.encode(graph, {"x": source}, {"y": target}, encoder)
    other = gpu.create_command_encoder()
    own.encode(graph, {"x": tensors[3]}, {"y": tensors[1]}, other)
    # Writing and dispatching submit at once, hence before what is encoded.
    own.write_tensor(tensors[0], X)
    own.dispatch(graph, {"x": tensors[0]}, {"y": tensors[3]})
    np.testing.assert_allclose(own.read_tensor(tensors[3]), expected(), rtol=1e-5)
    assert own.compute(graph, {"x": X})["y"].shape == (4, 8)
    gpu.queue.submit([encoder.finish(), other.finish()])
    wanted = X
    for tensor in tensors[1:]:
        wanted = expected(wanted)
        if tensor is not tensors[1]:
            np.testing.assert_allclose(own.read_tensor(tensor), wanted, rtol=1e-4)
    np.testing.assert_allclose(own.read_tensor(tensors[1]), expected(wanted), rtol=1e-4)


def test_later_encodes_create_nothing(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, x, y = network(own), own.create_tensor(FLAGS), own.create_tensor(FLAGS)
    own.encode(graph, {"x": x}, {"y": y}, gpu.create_command_encoder())
    with counted() as calls:
        for _ in range(3):
            encoder = gpu.create_command_encoder()
            own.encode(graph, {"x": x}, {"y": y}, encoder)
            own.encode(graph, {"x": x}, {"y": y}, encoder)
            gpu.queue.submit([encoder.finish()])
    assert created(calls) == {}
    assert calls["wgpuQueueSubmit"] == 3


def test_everything_may_be_destroyed_before_the_submit(gpu: wgpu.GPUDevice) -> None:
    context = wn.ml.create_context(gpu)
    graph, target = network(context), buffer(gpu)
    x, y = context.create_tensor(FLAGS), context.wrap_buffer(target, [4, 8], "float32")
    context.write_tensor(x, X)
    encoder = gpu.create_command_encoder()
    context.encode(graph, {"x": x}, {"y": y}, encoder)
    for thing in (graph, x, y, context):
        thing.destroy()
    del graph, x, y, context
    gc.collect()
    gpu.queue.submit([encoder.finish()])
    np.testing.assert_allclose(content(gpu, target).reshape(4, 8), expected(), rtol=1e-5)


def test_wrong_encoders(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, x, y = network(own), own.create_tensor(FLAGS), own.create_tensor(FLAGS)
    elsewhere = wgpu.gpu.request_adapter_sync().request_device_sync().create_command_encoder()
    good = gpu.create_command_encoder()
    finished, locked, ending, abandoned = (gpu.create_command_encoder() for _ in range(4))
    finished.finish()
    open_pass = locked.begin_compute_pass()
    ended = ending.begin_compute_pass()
    ended.end()
    orphan = abandoned.begin_compute_pass()
    with pytest.raises(wgpu.GPUValidationError):
        abandoned.finish()
    texture = gpu.create_texture(size=(4, 4), format="rgba8unorm", usage="RENDER_ATTACHMENT")
    drawing = gpu.create_command_encoder().begin_render_pass(
        color_attachments=[{"view": texture.create_view(), "load_op": "clear", "store_op": "store"}]
    )
    for arguments, kind, message in (
        ({}, wn.MLTypeError, "either an encoder or a compute pass is needed; got neither"),
        (
            {"encoder": good, "compute_pass": open_pass},
            wn.MLTypeError,
            "either an encoder or a compute pass is needed; got both",
        ),
        ({"encoder": gpu.queue}, wn.MLTypeError, "encoder must be a wgpu.GPUCommandEncoder; got GPUQueue"),
        (
            {"encoder": open_pass},
            wn.MLTypeError,
            "encoder must be a wgpu.GPUCommandEncoder; got GPUComputePassEncoder. Give it as `compute_pass=`",
        ),
        ({"compute_pass": drawing}, wn.MLTypeError, "compute_pass must be a wgpu.GPUComputePassEncoder; got GPURenderPass"),
        ({"encoder": elsewhere}, wn.MLTypeError, "encoder belongs to another device"),
        (
            {"encoder": finished},
            wn.InvalidStateError,
            r"encoder must accept commands; got one that has finished: [^.]*\. Create another one$",
        ),
        (
            {"encoder": locked},
            wn.InvalidStateError,
            "encoder must accept commands; got one that has an open pass: .*Give the pass as `compute_pass=`.*another one$",
        ),
        (
            {"compute_pass": ended},
            wn.InvalidStateError,
            "compute_pass must accept commands; got one that has ended: .*Begin another one$",
        ),
    ):
        if arguments == {"encoder": locked} and not TOLD_AT_ONCE:
            continue
        with pytest.raises(kind, match=f"encode: {message}") as refused:
            own.encode(graph, {"x": x}, {"y": y}, **arguments)
        assert "\\n" not in str(refused.value)
        assert "Caused by" not in str(refused.value)
    own.encode(graph, {"x": x}, {"y": y}, compute_pass=orphan)
    with pytest.raises(wgpu.GPUValidationError):  # its owner hears of it
        orphan.end()
    own.encode(graph, {"x": x}, {"y": y}, good)
    gpu.queue.submit([good.finish()])


def test_what_dispatch_refuses_encode_refuses(own: wn.MLContext, reference: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, x, y = network(own), own.create_tensor(FLAGS), own.create_tensor(FLAGS)
    encoder = gpu.create_command_encoder()
    with pytest.raises(wn.MLTypeError, match="encode: inputs and outputs must be different tensors"):
        own.encode(graph, {"x": x}, {"y": x}, encoder)
    with pytest.raises(wn.MLTypeError, match="encode: the graph's output 'y' is missing"):
        own.encode(graph, {"x": x}, {}, encoder)
    y.buffer.destroy()
    with pytest.raises(wn.InvalidStateError, match="encode: the buffer was destroyed"):
        own.encode(graph, {"x": x}, {"y": y}, encoder)
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="encode: the graph was destroyed"):
        own.encode(graph, {"x": x}, {"y": y}, encoder)
    ours = network(reference)
    x, y = reference.create_tensor(FLAGS), reference.create_tensor(FLAGS)
    with pytest.raises(wn.NotSupportedError, match="encode: the context has no WebGPU device"):
        reference.encode(ours, {"x": x}, {"y": y}, encoder)
    gpu.queue.submit([encoder.finish()])  # the encoder is as good as new
