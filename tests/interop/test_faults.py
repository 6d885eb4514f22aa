from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from tests.support import new_profile, with_repository
from webnn_wgpu.runtime import device

from .faults import KINDS, device_lost, failing
from .programs import X, buffer, network

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "wgpu")


def test_whatever_fails_is_told_in_the_specifications_words(repository: Path) -> None:
    """Each fifteenth call fails, in a process of its own: what is not told could end it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.faults", "--every", "15"],
        cwd=repository,
        env=with_repository(repository),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    injected = {kind: int(count) for kind, count in re.findall(r"^(.+): (\d+) \(", done.stdout, re.MULTILINE)}
    assert injected.keys() == KINDS.keys()
    assert min(injected.values()) >= 1
    assert sum(injected.values()) > 20
    assert done.stdout.endswith("alive\n")


@pytest.mark.parametrize(("wait", "label"), [(2, "matmul_0"), (4, "softmax_1")])
def test_steps_name_the_kernel_that_the_driver_gave_up_on(wait: int, label: str) -> None:
    gpu = new_profile("default-limits").gpu
    context = wn.ml.create_context(gpu)
    graph = network(context)
    x, y = (context.create_tensor([4, 8], "float32") for _ in range(2))
    # Before and after each kernel is waited for; the driver gives up while the second or the fourth time lasts.
    with failing(gpu, "over-long kernel", wait), pytest.raises(wn.DeviceLostError) as raised:
        for _ in context.dispatch_steps(graph, {"x": x}, {"y": y}):
            pass
    assert (raised.value.operator, raised.value.label) == ("dispatch_steps", label)
    assert context.lost.done()


def test_a_run_that_is_lost_says_what_names_the_kernel() -> None:
    gpu = new_profile("default-limits").gpu
    context = wn.ml.create_context(gpu)
    promise = context.compute_async(network(context), {"x": X})
    device_lost(gpu)
    with pytest.raises(wn.DeviceLostError, match="`dispatch_steps` divides a run, and names such a kernel"):
        promise.result()
    assert context.lost.result().message == "the device is lost: the data is too"


@pytest.mark.parametrize("tested", [True, False], ids=["C functions", "public API"])
def test_the_device_is_asked_before_what_would_end_the_process(tested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "tested_wgpu", lambda: tested)
    gpu = new_profile("default-limits").gpu
    found = device.Device.of(gpu)
    found.check()
    assert not found.lost
    device_lost(gpu)
    assert not found.lost  # nobody has been told
    with pytest.raises(wn.DeviceLostError):
        found.check()
    assert found.lost
    with pytest.raises(wn.DeviceLostError):
        wn.ml.create_context(gpu)


@pytest.mark.parametrize("profile", ["default-limits", "full"])
def test_no_context_on_a_device_that_is_gone(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")  # that which makes a context look at the device
    info = new_profile(profile).gpu
    gpu = info.adapter.request_device_sync(required_features=sorted(info.features))
    device_lost(gpu)
    with pytest.raises(wn.DeviceLostError, match="the device is lost"):
        wn.ml.create_context(gpu)


def test_every_context_of_the_device_notices() -> None:
    gpu = new_profile("default-limits").gpu
    contexts = [wn.ml.create_context(gpu) for _ in range(2)]
    x: Any = [context.create_tensor([8], "float32", readable=True) for context in contexts]
    own = buffer(gpu)
    device_lost(gpu)
    for context, tensor in zip(contexts, x, strict=True):
        assert not context.lost.done()
        with pytest.raises(wn.DeviceLostError):
            context.read_tensor(tensor)
        assert context.lost.done()
    with pytest.raises(wn.DeviceLostError):
        wn.run_wgsl("@compute @workgroup_size(1) fn main() {}", workgroups=1, context=wn.ml.create_context(gpu))
    assert own.size == 128


@pytest.mark.parametrize(("at", "label"), [(1, "front"), (2, "front"), (3, "back"), (4, "back")])
@pytest.mark.parametrize("kind", ["no pipeline", "device lost"])
def test_a_kernel_that_cannot_be_made_is_named(kind: str, at: int, label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    act, _, error = KINDS[kind]
    monkeypatch.setitem(KINDS, kind, (act, KINDS["no pipeline"][1], error))
    gpu = new_profile("default-limits").gpu
    context = wn.ml.create_context(gpu)
    builder = context.create_graph_builder()
    x = builder.input("x", [4, 8], "float32")
    y = builder.softmax(builder.tan(x, label="front"), axis=1, label="back")
    with failing(gpu, kind, at), pytest.raises(error) as raised:
        builder.build({"y": y})
    assert (raised.value.operator, raised.value.label) == ("build", label)
    assert context.lost.done() == (kind == "device lost")
