from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.runtime.counting import counted
from tests.support import op_graph
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime import pipelines
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.pipelines import PipelineCache
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

X = np.zeros(4, np.float32)


@pytest.fixture
def own() -> Iterator[Device]:
    device = Device.of(adapters()[0].request_device_sync(), owned=True)
    yield device
    device.close()


def program(device: Device, name: str) -> Program:
    """Compile a graph of one operator, which has a kernel of its own."""
    return Program(device, make_plan(op_graph(name, [X]), device.target))


def test_the_newest_pipelines_outlive_their_graphs(own: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "KEPT", 2)
    for name in ("abs", "neg", "abs", "sin"):
        program(own, name).destroy()
    assert len(PipelineCache.of(own)) == 2
    with counted() as calls:
        program(own, "abs").destroy()
        program(own, "sin").destroy()
    assert calls["wgpuDeviceCreateComputePipeline"] == 0
    with counted() as calls:
        program(own, "neg").destroy()
    assert calls["wgpuDeviceCreateComputePipeline"] == 1


def test_pipelines_in_use_are_found_however_old_they_are(own: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "KEPT", 1)
    old = program(own, "abs")
    program(own, "neg").destroy()
    with counted() as calls:
        program(own, "abs").destroy()
    assert calls["wgpuDeviceCreateComputePipeline"] == 0
    program(own, "neg").destroy()
    old.destroy()
    assert len(PipelineCache.of(own)) == 1
