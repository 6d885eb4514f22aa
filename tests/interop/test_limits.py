"""What a device cannot hold is refused before anything is allocated, and what it can hold in parts runs in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.kernels.large import limited
from tests.runtime.counting import CREATING, counted
from webnn_wgpu.api.backend import DeviceBackend
from webnn_wgpu.runtime.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import wgpu

MOST = 4096
"""Bytes of a buffer on the small device; a binding takes half of it."""


@pytest.fixture
def small(gpu: wgpu.GPUDevice) -> Iterator[wn.MLContext]:
    """A context that believes its device to be small."""
    caps = limited(Device.of(gpu).caps, MOST // 2, max_buffer_size=MOST)
    with wn.MLContext(DeviceBackend(Device(gpu, owned=False, caps=caps))) as context:
        yield context


def build_large_intermediate(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    wide = builder.expand(builder.input("x", [1, 16], "float32"), [100, 16], label="wide")
    builder.build({"y": builder.softmax(builder.matmul(wide, builder.transpose(wide)), 1)})


def build_indivisible(context: wn.MLContext) -> None:
    builder = context.create_graph_builder()
    builder.build({"y": builder.arg_max(builder.input("x", [700], "float32"), 0, label="wide")})


def make_tensor(context: wn.MLContext) -> None:
    context.create_tensor([1025], "float32")


def make_picture(context: wn.MLContext, size: tuple[int, int] = (64, 64)) -> None:
    texture = context.device.create_texture(size=(8, 8), format="rgba8unorm", usage="TEXTURE_BINDING")
    with counted() as calls:
        try:
            context.tensor_from_texture(texture, size=size)
        finally:
            assert not any(calls[name] for name in CREATING)


def make_picture_of_two_bindings(context: wn.MLContext) -> None:
    make_picture(context, (12, 16))


@pytest.mark.parametrize(
    ("attempt", "rule", "allowed"),
    [
        (build_large_intermediate, r"build\('wide'\)|expand\('wide'\): a tensor is larger than the device can hold", "4096"),
        (build_indivisible, r"arg_max\('wide'\): a tensor is larger than the device can bind", "2048"),
        (make_tensor, "create_tensor", "4096"),
        (make_picture, "tensor_from_texture", "4096"),
        (make_picture_of_two_bindings, "tensor_from_texture: the tensor is larger than the device can bind", "2048"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_nothing_is_allocated_for_what_does_not_fit(
    small: wn.MLContext, attempt: Callable[[wn.MLContext], None], rule: str, allowed: str
) -> None:
    before = small.memory().total
    with counted() as calls, pytest.raises(wn.OutOfMemoryError, match=rule) as raised:
        attempt(small)
    assert allowed in raised.value.allowed
    assert "wgpuDeviceCreateBuffer" not in calls
    assert small.memory().total == before
    assert not small.lost.done()


def test_a_graph_that_fits_in_parts_runs_in_parts(small: wn.MLContext) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((32, 31), np.float32), rng.standard_normal((31, 32), np.float32)
    builder = small.create_graph_builder()
    product = builder.matmul(builder.input("x", [32, 31], "float32"), builder.constant(w))
    graph = builder.build({"y": builder.softmax(product, 1)})
    assert graph.plan is not None
    assert max(b.size_bytes for d in graph.plan.dispatches for b in d.bindings) <= MOST // 2 < x.nbytes
    power = np.exp(np.float64(x) @ w)
    found = small.compute(graph, {"x": x})["y"]
    np.testing.assert_allclose(found, power / power.sum(axis=1, keepdims=True), rtol=1e-5)


def test_outputs_that_fit_into_no_buffer_together(small: wn.MLContext) -> None:
    """They are there for `dispatch`; `compute`, which reads them through one buffer, says so."""
    builder = small.create_graph_builder()
    x = builder.input("x", [700], "float32")
    graph = builder.build({"y": builder.neg(x), "z": builder.abs(x)})
    given = np.arange(-350, 350, dtype=np.float32)
    tensors: Any = [small.create_tensor([700], "float32", readable=True, writable=True) for _ in range(3)]
    small.write_tensor(tensors[0], given)
    small.dispatch(graph, {"x": tensors[0]}, {"y": tensors[1], "z": tensors[2]})
    np.testing.assert_array_equal(small.read_tensor(tensors[1]), -given)
    np.testing.assert_array_equal(small.read_tensor(tensors[2]), np.abs(given))
    for _ in range(2):
        with pytest.raises(wn.OutOfMemoryError, match=r"compute\('what is read back'\).* got 5632 bytes; .* 4096"):
            small.compute(graph, {"x": given})


def test_a_tensor_larger_than_a_binding_is_not_drawn(small: wn.MLContext) -> None:
    tensor = small.create_tensor([24, 24], "float32")
    texture = small.device.create_texture(size=(8, 8), format="rgba8unorm", usage="RENDER_ATTACHMENT")
    with (
        counted() as calls,
        pytest.raises(wn.OutOfMemoryError, match=r"^tensor_to_texture: .*; got float32\[24, 24\], 2304 bytes"),
    ):
        small.tensor_to_texture(tensor, texture)
    assert not any(calls[name] for name in CREATING)
