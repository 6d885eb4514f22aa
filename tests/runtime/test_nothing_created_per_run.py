from __future__ import annotations

import gc

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.counting import CREATING, ONE_SHOT, counted, created
from tests.runtime.graphs import ROWS, network, outputs, source
from tests.runtime.native import lib


def test_the_functions_that_are_counted_exist_and_count(context: wn.MLContext) -> None:
    for kind in ("Buffer", "Texture", "BindGroup", "BindGroupLayout", "PipelineLayout", "ShaderModule", "QuerySet"):
        assert f"wgpuDeviceCreate{kind}" in CREATING
    assert "wgpuDeviceCreateComputePipeline" in CREATING
    assert all(callable(getattr(lib, name)) for name in (*CREATING, *ONE_SHOT))
    with counted() as calls:
        network(context, scale=0.5).destroy()
        tensor = context.create_tensor([1], "float32")
    assert calls["wgpuDeviceCreateBuffer"] > 5
    assert calls["wgpuDeviceCreateBindGroup"] > 3
    tensor.destroy()


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_later_runs_of_compute_create_nothing(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    first = context.compute(graph, {"x": ROWS})
    given = {"probability": np.empty((4, 32), np.float32)}
    with counted() as calls:
        for _ in range(5):
            again = context.compute(graph, {"x": ROWS})
        context.compute(graph, {"x": ROWS}, given)
        context.compute_async(graph, {"x": ROWS}).result()
    assert created(calls) == {}
    assert [calls[name] for name in ONE_SHOT] == [8, 8, 7]  # one was encoded ahead for outputs that the next run did not want
    assert np.array_equal(again["probability"], first["probability"])


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_even_the_first_run_creates_nothing(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    with counted() as calls:
        context.compute(graph, {"x": ROWS})
    assert created(calls) == {}


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_later_dispatches_create_nothing(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph, x = network(context), source(context)
    first, second = outputs(context), outputs(context)
    for results in (first, second):
        context.dispatch(graph, {"x": x}, results)
        context.read_tensor(results["columns"])
    with counted() as calls:
        for results in (first, second, first, second):  # two sets in turn, as a loop over its own results has
            context.write_tensor(x, ROWS)
            context.dispatch(graph, {"x": x}, results)
            context.read_tensor(results["columns"])
    assert created(calls) == {}
    assert calls["wgpuQueueSubmit"] == 8
    gc.collect()
