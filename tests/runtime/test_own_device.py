from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.counting import counted
from tests.runtime.graphs import ROWS, expected, network
from tests.support import new_context, open_profile
from webnn_wgpu.runtime import destroying
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device, open_device


def test_default_limits_and_no_features(context: wn.MLContext) -> None:
    wanted = expected()
    for each in (context, wn.ml.create_context(open_profile("default-limits").gpu)):
        results = each.compute(network(each), {"x": ROWS})
        for name, array in wanted.items():
            np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)


def test_the_same_device_twice_shares_pipelines() -> None:
    gpu = adapters()[0].request_device_sync()
    with wn.ml.create_context(gpu) as first:
        network(first)
        with wn.ml.create_context(gpu) as second, counted() as calls:
            network(second)
        assert calls["wgpuDeviceCreateComputePipeline"] == 0
        assert not any(count for name, count in calls.items() if "CreateShaderModule" in name)
    # It is the device that keeps them, also between contexts.
    with wn.ml.create_context(gpu) as third, counted() as calls:
        third.compute(network(third), {"x": ROWS})
    assert calls["wgpuDeviceCreateComputePipeline"] == 0


def test_a_context_leaves_its_device_alone() -> None:
    gpu = adapters()[0].request_device_sync()
    wn.ml.create_context(gpu).destroy()
    buffer = gpu.create_buffer_with_data(data=b"abcd", usage="COPY_SRC")
    assert bytes(gpu.queue.read_buffer(buffer)) == b"abcd"


def test_devices_are_not_kept_for_ever() -> None:
    own = adapters()[0].request_device_sync()
    context = wn.ml.create_context(own)
    network(context)
    gone = [weakref.ref(own), weakref.ref(Device.of(own))]
    context.destroy()
    del own, context
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_a_device_opened_for_a_context_goes_with_it() -> None:
    gc.disable()
    try:
        device = open_device()
        context = wn.ml.create_context(device.gpu)
        assert Device.of(device.gpu) is device
        context.compute(network(context), {"x": ROWS})
        context.destroy()
        gone, gpu = weakref.ref(device), weakref.ref(device.gpu)
        del context, device
        assert gone() is None  # with all kernels; wgpu's own device holds on to itself until the next collection
    finally:
        gc.enable()
    gc.collect()
    assert gpu() is None


def test_contexts_that_share_a_device_opened_for_one_leave_it_to_each_other() -> None:
    with new_context() as first:
        graph, shared = network(first), Device.of(first.device)
        with wn.ml.create_context(first.device) as second, counted() as calls:
            network(second)
        assert calls["wgpuDeviceCreateComputePipeline"] == 0
        assert Device.of(first.device) is shared
        first.compute(graph, {"x": ROWS})


def test_a_device_that_its_owner_destroys(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "wgpu")
    gpu = adapters()[0].request_device_sync()
    context = wn.ml.create_context(gpu)
    graph = network(context)
    x = context.create_tensor([4, 16], "float32", readable=True, writable=True)
    pending = context.compute_async(graph, {"x": ROWS}), context.read_tensor_async(x)
    gpu.destroy()
    for call in (
        lambda: context.compute(graph, {"x": ROWS}),
        lambda: context.create_tensor([1], "float32"),
        lambda: network(context),
    ):
        with pytest.raises(wn.InvalidStateError):
            call()
    assert context.lost.done()
    assert "device is lost" in context.lost.result().message
    for promise in pending:
        with pytest.raises(wn.InvalidStateError):
            promise.result()
    graph.destroy()
    context.destroy()


@pytest.mark.parametrize("first", ["compute", "dispatch", "read", "write", "create", "build"])
def test_whatever_comes_first_notices_the_loss(caplog: pytest.LogCaptureFixture, first: str) -> None:
    caplog.set_level(logging.CRITICAL, "wgpu")
    gpu = adapters()[0].request_device_sync()
    context = wn.ml.create_context(gpu)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    y = builder.neg(x)
    other = wn.MLGraphBuilder(context)
    graph = other.build({"y": other.neg(other.input("x", {"dataType": "float32", "shape": [3]}))})
    a, b = (context.create_tensor([3], "float32", readable=True, writable=True) for _ in range(2))
    gpu.destroy()
    calls = {
        "compute": lambda: context.compute(graph, {"x": [1, 2, 3]}),
        "dispatch": lambda: context.dispatch(graph, {"x": a}, {"y": b}),
        "read": lambda: context.read_tensor(a),
        "write": lambda: context.write_tensor(a, [1, 2, 3]),
        "create": lambda: context.create_tensor([3], "float32"),
        "build": lambda: builder.build({"y": y}),
    }
    with pytest.raises(wn.DeviceLostError, match="the device is lost"):
        calls[first]()
    assert context.lost.done()
    assert graph.destroyed
    assert a.destroyed


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux counts threads there")
def test_devices_that_nobody_has_do_not_gather() -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    gc.collect()
    before = threads()
    for _ in range(40):
        wn.ml.create_context(accelerated=False).destroy()
    assert threads() < before + 40


FORKS = """
import multiprocessing, sys, warnings
import numpy as np
import webnn_wgpu as wn

warnings.simplefilter("ignore")

def work(context, graph):
    for call in (lambda: context.compute(graph, {"x": np.ones(4, np.float32)}), wn.ml.create_context):
        try:
            call()
        except wn.WebNNError as error:
            print(type(error).__name__, error, flush=True)

context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
graph = builder.build({"y": builder.relu(builder.input("x", {"dataType": "float32", "shape": [4]}))})
context.compute(graph, {"x": np.ones(4, np.float32)})
child = multiprocessing.get_context("fork").Process(target=work, args=(context, graph))
child.start()
child.join(30)
print("hangs" if child.is_alive() else "ended", context.compute(graph, {"x": np.ones(4, np.float32)})["y"])
child.kill()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_is_told() -> None:
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=120, cwd=root, check=True)
    first, second, end = run.stdout.splitlines()
    assert first.startswith("DeviceLostError compute: the process was forked")
    assert second.startswith("NotSupportedError create_context: the process was forked")
    assert end == "ended [1. 1. 1. 1.]"


def test_a_device_is_destroyed_between_two_submits_and_not_within_one(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device.of(adapters()[0].request_device_sync())
    with device.lock:
        others = threading.Thread(target=device.gpu.destroy)
        others.start()
        others.join(0.2)
        assert others.is_alive()
        assert not device.lost
    others.join()
    assert device.lost
    # A thread that never lets go keeps nobody from destroying a device.
    monkeypatch.setattr(destroying, "_TIMEOUT_S", 0.01)
    device = Device.of(adapters()[0].request_device_sync())
    with device.lock:
        others = threading.Thread(target=device.gpu.destroy)
        others.start()
        others.join()
        assert device.lost


def test_nothing_keeps_a_device_that_nobody_has() -> None:
    gpu = adapters()[0].request_device_sync()
    Device.of(gpu)
    gone = weakref.ref(gpu)
    gpu.destroy()
    del gpu
    gc.collect()
    assert gone() is None


def test_only_the_first_wrap_of_a_buffer_asks_whether_it_is_there(context: wn.MLContext) -> None:
    own = context.device.create_buffer(size=64, usage="STORAGE | COPY_SRC | COPY_DST")
    for expected_calls in (1, 0):
        with counted() as calls:
            context.wrap_buffer(own, [8], "float32")
        assert calls["wgpuDeviceCreateBindGroup"] == expected_calls
    own.destroy()
    with pytest.raises(wn.InvalidStateError, match="the buffer was destroyed"):
        context.wrap_buffer(own, [8], "float32")
