"""What a WebGPU program has: buffers with something in them, and a graph to run between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import wgpu

import webnn_wgpu as wn

TYPE = {"dataType": "float32", "shape": [4, 8]}
X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
WEIGHTS = np.sin(np.arange(64, dtype=np.float32)).reshape(8, 8)

STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


def network(context: wn.MLContext) -> wn.MLGraph:
    """y = softmax(x @ weights), which has an intermediate result, weights and sizes as uniforms."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", TYPE)
    return builder.build({"y": builder.softmax(builder.matmul(x, builder.constant(WEIGHTS)), axis=1)})


def expected(x: Any = X) -> Any:
    """What the network gives."""
    power = np.exp(np.float64(x) @ WEIGHTS)
    return np.float32(power / power.sum(axis=1, keepdims=True))


def buffer(gpu: wgpu.GPUDevice, data: Any = None, size: int = 128, usage: int = STORAGE) -> wgpu.GPUBuffer:
    """A buffer of the program's own."""
    if data is None:
        return gpu.create_buffer(size=size, usage=usage)
    return gpu.create_buffer_with_data(data=data, usage=usage)


def content(gpu: wgpu.GPUDevice, of: wgpu.GPUBuffer, offset: int = 0, count: int = 32) -> Any:
    """The float32 numbers in a buffer."""
    data: Any = gpu.queue.read_buffer(of, offset, count * 4)
    return np.frombuffer(data, np.float32)
