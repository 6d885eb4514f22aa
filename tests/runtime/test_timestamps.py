from __future__ import annotations

import gc

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.counting import count_objects, counted, created
from tests.runtime.graphs import ROWS, network, outputs, source
from tests.support import Device
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.timestamps import FEATURE, Timestamps


@pytest.fixture(autouse=True)
def _needs_timestamps(context: wn.MLContext) -> None:
    if FEATURE not in context.caps.features:
        pytest.skip(f"{context.description} takes no timestamps")


def test_more_passes_than_one_set_of_queries_holds(context: wn.MLContext) -> None:
    device = Device.of(context.device)
    passes = 2048 + 3
    timestamps = Timestamps(device, passes)
    encoder = device.gpu.create_command_encoder()
    for i in range(passes):
        timestamps.begin_pass(encoder, i).end()
    timestamps.resolve(encoder)
    device.submit(encoder, ())
    ticks = timestamps.ticks()
    assert ticks.shape == (passes, 2)
    assert ticks.min() > 0
    # One pass ends before the next begins, also from set to set.
    assert (np.diff(ticks.ravel().view(np.int64)) >= 0).all()
    timestamps.destroy()


def test_a_pass_of_a_software_driver_lasts_from_the_end_of_the_one_before(context: wn.MLContext) -> None:
    device = Device.of(context.device)
    timestamps = Timestamps(device, 3)
    encoder = device.gpu.create_command_encoder()
    for i in range(3):
        timestamps.begin_pass(encoder, i).end()
    timestamps.resolve(encoder)
    device.submit(encoder, ())
    begin, end = timestamps.ticks().T
    assert (end[:-1] == begin[1:]).all() == device.target.costs.runtime.has_late_begins
    timestamps.destroy()


@pytest.mark.parametrize("first", [True, False])
def test_a_long_kernel_has_its_own_time(context: wn.MLContext, first: bool) -> None:
    if context.accelerated:
        pytest.skip("GPUs compute the product in about the time of the other kernel")
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": [512, 512]})
    weights = b.constant(np.ones((512, 512), np.float32))
    if first:
        y = b.softmax(b.slice(b.matmul(x, weights, label="product"), [0, 0], [8, 8]), axis=1)
    else:
        y = b.matmul(b.softmax(x, axis=1), weights, label="product")
    with b.build({"y": y}) as graph:
        profile = graph.profile({"x": np.zeros((512, 512), np.float32)}, runs=5)
    # The driver may run the product before both timestamps of its pass. No other kernel has its time, and it is not lost.
    assert profile.slowest(1).kernels[0].labels == ("product",)


def test_a_later_profile_creates_nothing_and_a_run_never_does(context: wn.MLContext) -> None:
    graph = network(context)
    a, b = source(context), outputs(context)
    with counted() as calls:
        context.compute(graph, {"x": ROWS})
    assert created(calls) == {}
    graph.profile({"x": ROWS})
    with counted() as calls:
        graph.profile({"x": ROWS}, runs=2)
        context.compute(graph, {"x": ROWS})
    assert created(calls) == {}
    # Tensors that are dispatched first need bind groups, and no more.
    with counted() as calls:
        context.dispatch(graph, {"x": a}, b)
    assert set(created(calls)) == {"wgpuDeviceCreateBindGroup"}


def test_what_timing_made_goes_with_the_graph(context: wn.MLContext) -> None:
    network(context).destroy()
    gc.collect()
    before = {kind: count_objects()[kind] for kind in ("Buffer", "QuerySet", "BindGroup")}
    graph = network(context)
    graph.profile({"x": ROWS})
    assert count_objects()["QuerySet"] == before["QuerySet"] + 1
    graph.destroy()
    del graph
    gc.collect()
    assert {kind: count_objects()[kind] for kind in before} == before


def test_a_device_with_this_feature_alone() -> None:
    gpu = adapters()[0].request_device_sync(required_features=[FEATURE])
    with wn.ml.create_context(gpu) as own:
        profile = network(own).profile({"x": ROWS})
        assert profile.gpu_ms is not None
        assert profile.gpu_ms > 0


def test_a_destroyed_device_is_told(context: wn.MLContext) -> None:
    gpu = adapters()[0].request_device_sync(required_features=[FEATURE])
    own = wn.ml.create_context(gpu)
    graph = network(own)
    gpu.destroy()
    with pytest.raises(wn.DeviceLostError):
        graph.profile({"x": ROWS})
