from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.counting import count_objects
from webnn_wgpu.core.data_types import DATA_TYPES

from .programs import STORAGE, X, buffer, content, expected, network


def test_a_graph_runs_between_buffers_of_the_callers(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, source, target = network(own), buffer(gpu, X), buffer(gpu)
    x, y = own.wrap_buffer(source, [4, 8], "float32"), own.wrap_buffer(target, (4, 8), "float32")
    assert (x.buffer, y.buffer) == (source, target)
    own.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(content(gpu, target).reshape(4, 8), expected(), rtol=1e-5)
    gpu.queue.write_buffer(source, 0, np.ascontiguousarray(-X))
    own.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(own.read_tensor(y), expected(-X), rtol=1e-5)


def test_parts_of_one_buffer(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    builder = own.create_graph_builder()
    a, b = (builder.input(name, [4, 8], "float32") for name in "ab")
    graph = builder.build({"y": builder.sub(a, b)})
    inputs = np.zeros(160, np.float32)
    inputs[64:96], inputs[128:] = X.reshape(-1), 1
    both, target = buffer(gpu, inputs), buffer(gpu, np.full(128, 7, np.float32))
    parts = {"a": own.wrap_buffer(both, [4, 8], "float32", 256), "b": own.wrap_buffer(both, [4, 8], "float32", offset=512)}
    y = own.wrap_buffer(target, [4, 8], "float32", 256)
    assert [t.buffer_offset for t in (*parts.values(), y)] == [256, 512, 256]
    own.dispatch(graph, parts, {"y": y})
    assert np.array_equal(own.read_tensor(y), X - 1)
    own.write_tensor(y, X)
    assert np.array_equal(content(gpu, target, 256), X.reshape(-1))
    # What lies before and behind is as it was.
    assert set(content(gpu, target, 0, 64)) == set(content(gpu, target, 384, 32)) == {7}


def test_a_buffer_without_copies_is_neither_read_nor_written(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    tensor = own.wrap_buffer(gpu.create_buffer(size=128, usage="STORAGE"), [4, 8], "float32")
    with pytest.raises(wn.MLTensorStateError, match="Wrap a buffer with the usage COPY_SRC"):
        own.read_tensor(tensor)
    with pytest.raises(wn.MLTensorStateError, match="Wrap a buffer with the usage COPY_DST"):
        own.write_tensor(tensor, X)


@pytest.mark.parametrize("data_type", DATA_TYPES)
def test_of_every_data_type(own: wn.MLContext, gpu: wgpu.GPUDevice, data_type: str) -> None:
    builder = own.create_graph_builder()
    graph = builder.build({"y": builder.reverse(builder.input("x", [5], data_type))})
    x, y = (own.wrap_buffer(buffer(gpu, size=64), [5], data_type) for _ in range(2))
    values = np.arange(5).astype(data_type)
    own.write_tensor(x, values)
    own.dispatch(graph, {"x": x}, {"y": y})
    assert np.array_equal(own.read_tensor(y), values[::-1])


def test_flags_are_those_of_the_buffer(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    for usage, flags in (
        (wgpu.BufferUsage.STORAGE, (False, False)),
        (wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC, (True, False)),
        (wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_DST, (False, True)),
        (STORAGE, (True, True)),
    ):
        tensor = own.wrap_buffer(buffer(gpu, usage=usage), [8], "float32")
        assert (tensor.readable, tensor.writable, tensor.exportable_to_gpu) == (*flags, False)


def test_the_buffer_stays_its_owners(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    shared = buffer(gpu, X)
    first, second = (own.wrap_buffer(shared, [4, 8], "float32") for _ in range(2))
    first.destroy()
    assert np.array_equal(own.read_tensor(second), X)
    own.destroy()
    assert np.array_equal(content(gpu, shared), X.reshape(-1))
    del first, second, shared
    before = count_objects()["Buffer"]
    gc.collect()
    assert count_objects()["Buffer"] <= before


def wrong_calls(gpu: wgpu.GPUDevice) -> dict[str, tuple[tuple[Any, ...], type[Exception], str]]:
    elsewhere = wgpu.gpu.request_adapter_sync().request_device_sync()
    mapped = gpu.create_buffer(size=128, usage=STORAGE, mapped_at_creation=True)
    small, bytes_alone, good = buffer(gpu, size=96), buffer(gpu, size=5), buffer(gpu)
    uniform = gpu.create_buffer(label="lights", size=128, usage="UNIFORM | COPY_DST")
    return {
        "array": ((X, [4, 8], "float32"), TypeError, "buffer must be a wgpu.GPUBuffer; got ndarray"),
        "another device": ((buffer(elsewhere), [4, 8], "float32"), TypeError, "the buffer belongs to another device; got"),
        "no storage": (
            (uniform, [4, 8], "float32"),
            TypeError,
            "the buffer must have the usage STORAGE; got COPY_DST | UNIFORM",
        ),
        "too small": (
            (small, [5, 5], "float32"),
            TypeError,
            "the buffer must hold the tensor, rounded up to whole words of 4 bytes; got a tensor of 100 bytes at offset 0 of a"
            " buffer of 96 bytes; allowed: a buffer of at least 100 bytes",
        ),
        "no whole word": (
            (bytes_alone, [5], "uint8"),
            TypeError,
            "the buffer must hold the tensor, rounded up to whole words of 4 bytes; got a tensor of 5 bytes at offset 0 of a"
            " buffer of 5 bytes; allowed: a buffer of at least 8 bytes",
        ),
        "offset": (
            (good, [2], "float32", 8),
            TypeError,
            "the offset must be one that the device can bind; got offset=8; allowed: multiples of"
            " min-storage-buffer-offset-alignment 256",
        ),
        "negative offset": ((good, [2], "float32", -256), TypeError, "the offset must be one that the device can bind"),
        "beyond the end": ((good, [2], "float32", 256), TypeError, "the buffer must hold the tensor"),
        "no offset": ((good, [2], "float32", 0.5), TypeError, "offset must be an integer; got 0.5"),
        "data type": ((good, [2], "float8"), TypeError, "unknown data type; got 'float8'"),
        "mapped": ((mapped, [8], "float32"), wn.InvalidStateError, "the buffer is mapped; got map_state 'mapped'"),
    }


CASES = [
    "array",
    "another device",
    "no storage",
    "too small",
    "no whole word",
    "offset",
    "negative offset",
    "beyond the end",
    "no offset",
    "data type",
    "mapped",
]


@pytest.mark.parametrize("case", CASES)
def test_wrong_calls(own: wn.MLContext, gpu: wgpu.GPUDevice, case: str) -> None:
    arguments, kind, message = wrong_calls(gpu)[case]
    with pytest.raises(kind) as caught:
        own.wrap_buffer(*arguments)
    assert str(caught.value).startswith(f"wrap_buffer{'(' + repr('lights') + ')' if case == 'no storage' else ''}: {message}")


def test_every_wrong_call_is_tried(gpu: wgpu.GPUDevice) -> None:
    assert list(wrong_calls(gpu)) == CASES


def test_input_and_output_in_one_buffer(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, shared = network(own), buffer(gpu, size=512)
    x, y = own.wrap_buffer(shared, [4, 8], "float32"), own.wrap_buffer(shared, [4, 8], "float32", 256)
    with pytest.raises(wn.MLTypeError) as caught:
        own.dispatch(graph, {"x": x}, {"y": y})
    assert str(caught.value).startswith(
        "dispatch: an output must not use the buffer of an input or of another output; got input 'x' and output 'y' in one"
    )


def test_two_outputs_in_one_buffer(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    builder = own.create_graph_builder()
    x = builder.input("x", [8], "float32")
    graph = builder.build({"a": builder.neg(x), "b": builder.exp(x)})
    shared = buffer(gpu, size=512)
    a, b = own.wrap_buffer(shared, [8], "float32"), own.wrap_buffer(shared, [8], "float32", 256)
    with pytest.raises(wn.MLTypeError, match="got output 'a' and output 'b' in one GPUBuffer"):
        own.dispatch(graph, {"x": own.create_tensor([8], "float32")}, {"a": a, "b": b})


def test_a_buffer_that_its_owner_destroys_or_maps(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph = network(own)
    source = gpu.create_buffer_with_data(label="frame", data=X, usage="STORAGE|COPY_SRC")
    x, again = (own.wrap_buffer(source, [4, 8], "float32") for _ in range(2))
    y = own.create_tensor([4, 8], "float32")
    source.destroy()
    for tensor in (x, again):
        with pytest.raises(wn.InvalidStateError, match="dispatch: the buffer was destroyed; got buffer 'frame' of 128 bytes"):
            own.dispatch(graph, {"x": tensor}, {"y": y})
        with pytest.raises(wn.InvalidStateError, match="read_tensor: the buffer was destroyed"):
            own.read_tensor(tensor)
    with pytest.raises(wn.InvalidStateError, match="wrap_buffer: the buffer was destroyed"):
        own.wrap_buffer(source, [4, 8], "float32")
    assert not own.lost.done()


def test_without_a_device(reference: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    with pytest.raises(wn.NotSupportedError, match="wrap_buffer: the context has no WebGPU device; got numpy reference"):
        reference.wrap_buffer(buffer(gpu), [8], "float32")


def test_after_the_end(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    own.destroy()
    with pytest.raises(wn.InvalidStateError, match="wrap_buffer: the context is lost"):
        own.wrap_buffer(buffer(gpu), [8], "float32")
