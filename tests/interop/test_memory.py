from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn

from .programs import TYPE, WEIGHTS, X, buffer, network

if TYPE_CHECKING:
    import wgpu


def test_by_owner(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    empty = own.memory()
    assert (empty.total - empty["staging"], empty.borrowed) == (0, 0)
    graph, twin = network(own), network(own)
    tensor = own.create_tensor(TYPE)
    wrapped = own.wrap_buffer(buffer(gpu), [4, 8], "float32")
    held = own.memory()
    assert held["slots"] == 2 * graph.plan.slot_bytes > 0
    assert held["inputs and outputs"] == 2 * 2 * X.nbytes
    assert held["uniforms"] == 2 * len(graph.plan.uniforms)
    assert held["staging"] - empty["staging"] == 2 * X.nbytes
    assert held["weights"] == WEIGHTS.nbytes  # both graphs share them
    assert held["tensors"] == tensor.nbytes
    assert held.borrowed == X.nbytes
    assert held.total == sum(held.values())
    lines = str(held).splitlines()
    assert [line.split("  ")[0] for line in lines] == [*held, "total", "borrowed"]
    assert lines[0].endswith(f" {WEIGHTS.nbytes:,}")
    twin.destroy()
    assert own.memory()["slots"] == graph.plan.slot_bytes
    tensor.destroy()
    wrapped.destroy()
    assert (own.memory()["tensors"], own.memory().borrowed) == (0, 0)
    own.read_tensor(own.create_host_tensor([2000], "float32"))
    assert own.memory()["staging"] >= 8000
    own.destroy()
    held = own.memory()
    assert held.total == held["staging"]


def test_on_the_reference(reference: wn.MLContext) -> None:
    tensor = reference.create_tensor(TYPE)
    assert dict(reference.memory()) == {"tensors": tensor.nbytes}
    tensor.destroy()
    assert reference.memory().total == 0


def test_tensors_are_arrays_where_they_may_be_read(own: wn.MLContext) -> None:
    tensor = own.create_host_tensor([4, 8], "float32")
    own.write_tensor(tensor, X)
    assert np.array_equal(np.asarray(tensor), X)
    assert np.asarray(tensor, np.float64).dtype == np.float64
    assert np.array_equal(np.from_dlpack(tensor), X)
    assert np.array_equal(np.add(tensor, 1), X + 1)
    graph = network(own)
    assert own.compute(graph, {"x": tensor})["y"].shape == (4, 8)
    with pytest.raises(ValueError, match="an array of a tensor is a copy"):
        tensor.__array__(copy=False)
    with pytest.raises(wn.MLTensorStateError, match="read_tensor: the tensor is not readable"):
        np.asarray(own.create_tensor(TYPE))
