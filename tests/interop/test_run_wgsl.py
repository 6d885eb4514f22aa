from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn

from .programs import X, buffer, content

SCALE = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = y[id.x] + x[id.x] * FACTOR; }
}
"""

TWO = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(1) fn main() { a[0] = a[0] + 1u; b[2] = arrayLength(&b); }
"""


def test_arrays_come_back_as_new_ones() -> None:
    before = np.float32([10, 20, 30])
    result = wn.run_wgsl(SCALE, np.float32([1, 2, 3]), before, workgroups=1, constants={"FACTOR": 2})
    assert result.tolist() == [12, 24, 36]
    assert before.tolist() == [10, 20, 30]
    a, b = wn.run_wgsl(TWO, np.uint32([[7, 8]]), np.zeros(3, np.uint32), workgroups=(1, 1, 1))
    assert (a.tolist(), b.tolist()) == ([[8, 8]], [0, 0, 3])
    small, _ = wn.run_wgsl(TWO, np.uint8([255, 0, 1]), np.zeros(3, np.uint32), workgroups=1)
    assert small.tolist() == [0, 1, 1]


def test_buffers_are_worked_on_where_they_are(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    source, target = buffer(gpu, X), buffer(gpu)
    assert wn.run_wgsl(SCALE, source, target, workgroups=1, constants={"FACTOR": 3}) is None
    assert np.array_equal(content(gpu, target), 3 * X.reshape(-1))
    tensor = own.create_tensor([4, 8], "float32", readable=True)
    own_buffer = own.wrap_buffer(source, [4, 8], "float32")
    wn.run_wgsl(SCALE, own_buffer, tensor, workgroups=1, constants={"FACTOR": 2})
    assert np.array_equal(own.read_tensor(tensor), 2 * X)
    mixed = wn.run_wgsl(SCALE, tensor, np.ones(32, np.float32), workgroups=1, constants={"FACTOR": 1}, context=own)
    assert np.array_equal(mixed, 1 + 2 * X.reshape(-1))


def test_wrong_calls(own: wn.MLContext, reference: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    gone, mapped = own.create_tensor([4], "float32"), gpu.create_buffer(size=64, usage="STORAGE", mapped_at_creation=True)
    gone.destroy()
    elsewhere = wgpu.gpu.request_adapter_sync().request_device_sync()
    shared, x = buffer(gpu), np.ones(4, np.float32)
    options: dict[str, Any] = {"workgroups": 1, "constants": {"FACTOR": 1}, "context": own, "label": "mine"}
    for arguments, changed, kind, message in (
        ((x,), {}, wn.MLTypeError, "the shader must declare a storage buffer for every argument; got x, y; allowed: 1 buffers"),
        ((x, [1, 2]), {}, wn.MLTypeError, "argument 1 must be tensor data in the host's memory; got list"),
        ((x, np.ones(0, np.float32)), {}, wn.MLTypeError, "every dimension must be a valid dimension; got y: "),
        ((x, np.ones(4, complex)), {}, wn.MLTypeError, "a buffer must get an array of numbers; got y: complex128"),
        ((x, np.ones(4)), {}, wn.MLTypeError, r"the data type must be .* got y: float64; allowed: float32, .*np.float32\(y\)"),
        ((x, np.arange(4)), {}, wn.MLTypeError, r"the data type must be .* got y: int64; allowed: float32, for array<f32>"),
        ((x, gone), {}, wn.MLTensorStateError, "the tensor was destroyed"),
        ((x, mapped), {}, wn.InvalidStateError, "the buffer is mapped"),
        ((x, buffer(elsewhere)), {}, wn.MLTypeError, "the buffer belongs to another device"),
        ((x, buffer(gpu, usage=wgpu.BufferUsage.COPY_DST)), {}, wn.MLTypeError, "the buffer must have the usage STORAGE"),
        ((shared, shared), {}, wn.MLTypeError, "a buffer that is written must not be bound twice; got 'x' and 'y'"),
        ((x, x), {"constants": {}}, wn.OperationError, "the shader does not compile: line 5, .* identifier: `FACTOR`"),
        ((x, x), {"workgroups": ()}, wn.MLTypeError, "workgroups must be one to three positive integers"),
        ((x, x), {"context": reference}, wn.NotSupportedError, "the context has no WebGPU device"),
    ):
        with pytest.raises(kind, match=rf"run_wgsl(\('mine'\))?: {message}"):
            wn.run_wgsl(SCALE, *arguments, **{**options, **changed})
    typed = SCALE.replace("array<f32>", "array<T>")
    with pytest.raises(wn.MLTypeError, match="unknown data type; got x: 'float64'; allowed: float32, "):
        wn.run_wgsl(typed, np.ones(4), x, **options)
    with pytest.raises(
        wn.OperationError, match=r"`T` is the data type of an array, .* `alias T = f32;` declares it for others\. Its"
    ):
        wn.run_wgsl(typed, shared, buffer(gpu), **options)
    fixed = SCALE.replace("y: array<f32>", "y: array<f32, 8>")
    with pytest.raises(wn.OperationError, match="size 16 where the shader expects 32"):
        wn.run_wgsl(fixed, x, x, **options)
    assert wn.run_wgsl(SCALE, x, x, **options).tolist() == [2, 2, 2, 2]


def test_the_context_that_it_opened_may_be_lost() -> None:
    x = np.ones(4, np.float32)
    options: dict[str, Any] = {"workgroups": 1, "constants": {"FACTOR": 1}}
    wn.run_wgsl(SCALE, x, x, **options)
    from webnn_wgpu.api import own_kernels

    own_kernels._default[0].destroy()
    assert wn.run_wgsl(SCALE, x, x, **options).tolist() == [2, 2, 2, 2]
