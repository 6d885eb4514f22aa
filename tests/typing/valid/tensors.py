"""Tensors in every form of `create_tensor`; what reading one returns depends on where it is read to."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import webnn_wgpu as wn
from webnn_wgpu.typing import MLTensorDescriptor


def program(context: wn.MLContext) -> None:
    descriptor: MLTensorDescriptor = {"dataType": "float32", "shape": [2, 2], "readable": True, "writable": True}
    tensors = [
        context.create_tensor(descriptor),
        context.create_tensor([2, 2], "float32", readable=True, writable=True),
        context.create_tensor((2, 2), np.float32, True, True),
        context.create_tensor(shape=[2, 2], dtype=np.dtype("float32"), readable=True, writable=True),
        context.create_host_tensor([2, 2], "float32"),
        context.create_tensor_async([2, 2], "float32", True, True).result(),
        context.createTensorAsync(descriptor).result(),
    ]
    assert_type(tensors, list[wn.MLTensor])
    memory = np.zeros((2, 2), np.float32)
    for tensor in tensors:
        context.write_tensor(tensor, [[1, 2], [3, 4]])
        assert_type(context.read_tensor(tensor), npt.NDArray[Any])
        context.read_tensor(tensor, memory)
        assert np.asarray(tensor).sum() == memory.sum() == 10
    assert_type(context.read_tensor_async(tensors[0]), wn.MLPromise[npt.NDArray[Any]])
    assert_type(context.read_tensor_async(tensors[0], memory), wn.MLPromise[None])
    with context.create_tensor([3], "int8") as short:
        assert_type(short, wn.MLTensor)
        assert (short.size, short.nbytes, short.rank) == (3, 3, 1)
