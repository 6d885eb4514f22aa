from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.runtime.counting import counted
from tests.support import op_graph
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime import pipelines
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.modules import can_unbound_loops
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


def modules(calls: Counter[str]) -> tuple[int, int]:
    """Return the numbers of modules with bounded and with unbounded loops."""
    return calls["wgpuDeviceCreateShaderModule"], calls["wgpuDeviceCreateShaderModuleTrusted"]


def test_loops_of_the_packages_kernels_alone_are_unbounded(own: Device) -> None:
    spec = make_plan(op_graph("abs", [X]), own.target).dispatches[0].spec
    costs = own.target.costs
    own.target = replace(own.target, costs=replace(costs, runtime=replace(costs.runtime, unbounded_loops=True)))
    cache = PipelineCache.of(own)
    with counted() as calls:
        cache.get(spec)
    assert modules(calls) == ((0, 1) if can_unbound_loops() else (1, 0))
    with counted() as calls:
        cache.get(replace(spec, source=render(spec)))
    assert modules(calls) == (1, 0)


def test_loops_are_bounded_for_other_drivers_and_by_plain_calls(own: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    costs, runtime = own.target.costs, own.target.costs.runtime
    with counted() as calls:
        program(own, "abs").destroy()
    assert modules(calls) == (1, 0) or runtime.unbounded_loops
    own.target = replace(own.target, costs=replace(costs, runtime=replace(runtime, unbounded_loops=True)))
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", "plain")
    with counted() as calls:
        program(own, "neg").destroy()
    assert modules(calls) == (1, 0)
