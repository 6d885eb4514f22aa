from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn

from .programs import TYPE, X, content, expected, network

if TYPE_CHECKING:
    import wgpu


def exportable(context: wn.MLContext) -> wn.MLTensor:
    return context.create_tensor({**TYPE, "readable": True, "writable": True, "exportableToGPU": True})


def test_rent_and_return(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    graph, x, y = network(own), exportable(own), exportable(own)
    own.write_tensor(x, X)
    own.dispatch(graph, {"x": x}, {"y": y})
    with own.export_to_gpu(y) as result:
        np.testing.assert_allclose(content(gpu, result).reshape(4, 8), expected(), rtol=1e-5)
    with own.export_to_gpu(x) as source:
        gpu.queue.write_buffer(source, 0, np.ascontiguousarray(-X))
    own.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(own.read_tensor(y), expected(-X), rtol=1e-5)


def test_meanwhile_the_context_refuses_the_tensor(own: wn.MLContext) -> None:
    graph, x, y = network(own), exportable(own), exportable(own)
    encoder = own.device.create_command_encoder()
    rent = own.exportToGPU(y)
    for name, call in {
        "dispatch": lambda: own.dispatch(graph, {"x": x}, {"y": y}),
        "encode": lambda: own.encode(graph, {"x": x}, {"y": y}, encoder),
        "read_tensor": lambda: own.read_tensor(y),
        "write_tensor": lambda: own.write_tensor(y, X),
        "export_to_gpu": lambda: own.export_to_gpu(y),
        "buffer": lambda: y.buffer,
    }.items():
        with pytest.raises(wn.InvalidStateError, match=f"{name}: the tensor is exported; got MLTensor"):
            call()
    rent.release()
    rent.release()
    assert rent.buffer is None
    own.dispatch(graph, {"x": x}, {"y": y})


def test_a_tensor_may_go_while_its_buffer_is_rented(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    x = exportable(own)
    own.write_tensor(x, X)
    with own.export_to_gpu(x) as buffer:
        x.destroy()
        own.destroy()
        assert np.array_equal(content(gpu, buffer), X.reshape(-1))


def test_what_cannot_be_exported(own: wn.MLContext, context: wn.MLContext, reference: wn.MLContext) -> None:
    constant = own.create_constant_tensor(TYPE, X)
    gone = exportable(own)
    gone.destroy()
    for tensor, kind, message in (
        (own.create_tensor(TYPE), wn.MLTypeError, "the tensor must be created with `exportable_to_gpu=True`; got MLTensor"),
        (exportable(context), wn.MLTypeError, "the tensor belongs to another context"),
        (gone, wn.MLTensorStateError, "the tensor was destroyed"),
        (constant, wn.MLTensorStateError, "a constant tensor is used through"),
    ):
        with pytest.raises(kind, match=f"export_to_gpu: {message}"):
            own.export_to_gpu(tensor)
    with pytest.raises(wn.NotSupportedError, match="export_to_gpu: the context has no WebGPU device"):
        reference.export_to_gpu(exportable(reference))


def test_a_rented_buffer_that_is_destroyed(own: wn.MLContext) -> None:
    x = exportable(own)
    with own.export_to_gpu(x) as buffer:
        buffer.destroy()
    with pytest.raises(wn.InvalidStateError, match="read_tensor: the buffer was destroyed"):
        own.read_tensor(x)
    with pytest.raises(wn.InvalidStateError, match="export_to_gpu: the buffer was destroyed"):
        own.export_to_gpu(x)
