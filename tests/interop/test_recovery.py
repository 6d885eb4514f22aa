from __future__ import annotations

import gc
import logging
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.counting import count_objects
from tests.support import new_context, new_profile
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.testing import check_kernel

from .abuses import Workplace
from .faults import device_lost
from .programs import X, network

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "wgpu")


def test_after_the_loss_of_a_device_of_the_callers() -> None:
    gpu = adapters()[0].request_device_sync()
    old = wn.ml.create_context(gpu)
    graph, wanted = network(old), None
    wanted = old.compute(graph, {"x": X})["y"]
    with pytest.raises(wn.InvalidStateError, match="recover: the context is not lost"):
        old.recover()
    gpu.destroy()
    with pytest.raises(wn.DeviceLostError):
        old.compute(graph, {"x": X})
    with pytest.raises(
        wn.MLTypeError, match="recover: the context was made for a device of your own, which must be given anew"
    ):
        old.recover()
    with pytest.raises(wn.DeviceLostError, match=r"the wgpu\.GPUDevice was destroyed"):
        old.recover(gpu)
    with old.recover(adapters()[0].request_device_sync()) as new:
        again = new.rebuild(graph)
        assert np.array_equal(new.compute(again, {"x": X})["y"], wanted)
        with pytest.raises(wn.InvalidStateError):
            old.create_tensor([1], "float32")


@pytest.mark.parametrize("lose", [lambda gpu: gpu.destroy(), device_lost], ids=["by its owner", "by the driver"])
def test_recover_notices_a_loss_that_no_other_call_has(lose: Callable[[Any], None]) -> None:
    gpu = new_profile("default-limits").gpu
    old = wn.ml.create_context(gpu)
    graph = network(old)
    lose(gpu)
    with old.recover(adapters()[0].request_device_sync()) as new:
        assert old.lost.done()
        assert new.compute(new.rebuild(graph), {"x": X})["y"].shape == (4, 8)


def test_after_the_loss_of_a_device_of_our_own() -> None:
    old = new_context()
    builder = old.create_graph_builder()
    x = builder.input("x", [4], "float32")
    graph = builder.build({"y": builder.add(builder.mul(x, x), x)}, disabled_passes=["fuse_elementwise", "merge_results"])
    wanted = old.compute(graph, {"x": [1, 2, 3, 4]})["y"]
    old.device.destroy()
    with pytest.raises(wn.DeviceLostError):
        old.compute(graph, {"x": [1, 2, 3, 4]})
    new = old.recover()
    assert new.device is not old.device
    again = new.rebuild(graph)
    assert len(again.plan.dispatches) == len(graph.plan.dispatches) == 2
    assert np.array_equal(new.compute(again, {"x": [1, 2, 3, 4]})["y"], wanted)
    new.destroy()
    assert new.recover(wgpu.gpu.request_adapter_sync().request_device_sync()).rebuild(again).inputs == graph.inputs


def test_a_graph_for_another_context(own: wn.MLContext, context: wn.MLContext) -> None:
    graph = network(context)
    graph.destroy()
    again = own.rebuild(graph)
    assert own.compute(again, {"x": X})["y"].shape == (4, 8)
    with pytest.raises(wn.MLTypeError, match="rebuild: graph must be an MLGraph; got int"):
        own.rebuild(7)  # pyright: ignore[reportArgumentType] - that is what is tested
    own.destroy()
    with pytest.raises(wn.InvalidStateError, match="rebuild: the context is lost"):
        own.rebuild(again)


def test_overridden_kernels_stay_overridden(own: wn.MLContext, context: wn.MLContext) -> None:
    graph = network(context)
    name = next(iter(graph.kernels))
    right = context.compute(graph, {"x": X})["y"]
    graph.override(name, graph.kernels[name].wgsl.replace("output[q] = vec4<f32>(a,", "output[q] = vec4<f32>(a + 1.0,"))
    wanted = context.compute(graph, {"x": X})["y"]
    assert not np.array_equal(wanted, right)
    with wn.ml.create_context(context.device) as new:
        again = new.rebuild(graph)
        assert again.kernels[name].overridden
        assert np.array_equal(new.compute(again, {"x": X})["y"], wanted)
        again.restore()
        assert np.array_equal(new.compute(again, {"x": X})["y"], right)
    others = [(wn.ml.create_context(backend="reference"), "none; ")]
    # The least device has the same kernel where the adapter has no subgroups of use to it.
    if own.rebuild(graph, overrides=False).kernels[name].spec != graph.kernels[name].spec:
        others.append((own, "matmul."))
    for other, got in others:
        with pytest.raises(wn.OperationError) as raised:
            other.rebuild(graph)
        message = str(raised.value)
        assert message.startswith(f"rebuild('{name}'): a kernel that is overridden is another one on this device; got {got}")
        assert message.endswith(f"allowed: {graph.kernels[name].spec}. rebuild(graph, overrides=False) leaves the sources out")
        np.testing.assert_allclose(other.compute(other.rebuild(graph, overrides=False), {"x": X})["y"], right, rtol=1e-5)


SOURCE = "@group(0) @binding(0) var<storage, read_write> x: array<f32>; @compute @workgroup_size(1) fn main() { x[0] = 1.0; }"

CALLS: dict[str, Callable[[Workplace], Any]] = {
    "wrap_buffer": lambda w: w.context.wrap_buffer(w.own, [8], "float32"),
    "export_to_gpu": lambda w: w.context.export_to_gpu(w.y),
    "encode": lambda w: w.encode(),
    "dispatch": lambda w: w.dispatch(),
    "dispatch_steps": lambda w: list(w.context.dispatch_steps(w.graph, {"x": w.x}, {"y": w.y})),
    "compute": lambda w: w.context.compute(w.graph, {"x": X}),
    "create_tensor": lambda w: w.context.create_tensor([1], "float32"),
    "read_tensor": lambda w: w.context.read_tensor(w.y),
    "write_tensor": lambda w: w.context.write_tensor(w.y, X),
    "tensor_from_texture": lambda w: w.context.tensor_from_texture(w.texture),
    "tensor_to_texture": lambda w: w.context.tensor_to_texture(w.y, w.texture),
    "run_wgsl": lambda w: wn.run_wgsl(SOURCE, w.y, workgroups=1),
    "build": lambda w: network(w.context),
    "rebuild": lambda w: w.context.rebuild(w.graph),
    "wgsl_op": lambda w: w.context.create_graph_builder().wgsl_op(
        SOURCE, [], output_shapes=[1], output_types="float32", workgroups=1
    ),
    "override": lambda w: w.graph.override("softmax_1", w.graph.kernels["matmul_0"].wgsl),
    "check_kernel": lambda w: check_kernel(SOURCE, lambda: 1, shapes=[[]], dtypes=[[]], workgroups=1, on=[w.context]),
}
"""Every call that has to do with the device."""


@pytest.mark.parametrize(
    ("lose", "cause"),
    [(lambda gpu: gpu.destroy(), r"because the program called its destroy\(\)"), (device_lost, "Drivers give up on a device")],
    ids=["by its owner", "by the driver"],
)
@pytest.mark.parametrize("call", CALLS)
def test_whatever_comes_first_notices_the_loss(call: str, lose: Callable[[Any], None], cause: str) -> None:
    w = Workplace(new_profile("default-limits").gpu)
    lose(w.gpu)
    with pytest.raises(wn.DeviceLostError, match=rf"the device is lost.*{cause}.*context.recover\(.*\) returns"):
        CALLS[call](w)
    assert w.context.lost.done()
    if "destroy" in cause:
        assert re.search(cause, w.context.lost.result().message)
        with pytest.raises(wn.InvalidStateError, match=rf"the context is lost; got the device is lost, {cause}"):
            w.context.create_tensor([1], "float32")


def test_nothing_is_left_behind() -> None:
    gc.collect()
    before = {name: count for name, count in count_objects().items() if name in ("Buffer", "BindGroup", "ComputePipeline")}
    context = new_context()
    for _ in range(3):
        graph = network(context)
        context.destroy()
        context = context.recover()
        context.rebuild(graph).destroy()
        del graph
    context.destroy()
    gc.collect()
    after = count_objects()
    assert all(after[name] <= count for name, count in before.items())
