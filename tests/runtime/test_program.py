from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.counting import count_objects, counted, created
from tests.runtime.graphs import ROWS, network, outputs, source
from tests.runtime.native import lib, libf
from tests.support import Device
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.weights import WeightStore


def program_of(graph: wn.MLGraph) -> Program:
    assert isinstance(graph._executable, Program)
    return graph._executable


@pytest.mark.parametrize("count", range(14))
def test_what_was_allocated_is_freed_when_there_is_no_memory(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Whichever allocation of a build fails, those before it are freed."""
    device = Device.of(context.device)
    plan = network(context).plan
    assert plan is not None
    gc.collect()
    stored, made = len(WeightStore.of(device)), list[Any]()
    create = device.create_gpu_buffer

    def limited(size: int, usage: int, label: str) -> Any:
        if len(made) == count:
            raise wn.OutOfMemoryError("the device has no memory", label=label)
        made.append(create(size, usage, label))
        return made[-1]

    monkeypatch.setattr(device, "create_gpu_buffer", limited)
    before = count_objects()["Buffer"]
    try:
        Program(device, plan).destroy()
    except wn.OutOfMemoryError:
        made.clear()
    else:
        assert len(made) < count + 1  # the build needs fewer: it went through
        made.clear()
    gc.collect()
    assert len(WeightStore.of(device)) == stored
    assert count_objects()["Buffer"] == before


def test_an_interrupted_build_frees_what_it_made(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device.of(context.device)
    plan = network(context).plan
    assert plan is not None
    gc.collect()
    stored = len(WeightStore.of(device))

    def interrupted(self: Program, *_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Program, "_bind", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Program(device, plan)
    assert len(WeightStore.of(device)) == stored


def test_destroy_is_idempotent_and_final(context: wn.MLContext) -> None:
    graph = network(context)
    program = program_of(graph)
    for _ in range(2):
        program.destroy()
    with pytest.raises(wn.InvalidStateError, match="the graph was destroyed"):
        program.start({"x": ROWS}, ["columns"])
    with pytest.raises(wn.InvalidStateError, match="the graph was destroyed"):
        context.dispatch(graph, {"x": source(context)}, outputs(context))
    graph.destroy()


@pytest.mark.parametrize("which", ["slot", "input", "output"])
def test_a_destroyed_buffer_is_found_before_it_is_submitted(context: wn.MLContext, which: str) -> None:
    graph = network(context)
    program = program_of(graph)
    buffers = {
        "slot": program.memory._slots,
        "input": [program.memory.ends["input", "x"]],
        "output": [program.memory.ends["output", "columns"]],
    }
    buffers[which][0].destroy()
    with pytest.raises(wn.InvalidStateError, match="compute: the buffer was destroyed"):
        context.compute(graph, {"x": ROWS})
    if which == "slot":
        with pytest.raises(wn.InvalidStateError, match="dispatch: the buffer was destroyed"):
            context.dispatch(graph, {"x": source(context)}, outputs(context))
    assert context.compute(network(context), {"x": ROWS})["columns"].shape == (8, 4)


def test_a_run_that_nobody_waited_for(context: wn.MLContext) -> None:
    graph = network(context)
    context.compute_async(graph, {"x": ROWS})
    kept = context.compute_async(graph, {"x": ROWS * 2})
    final = context.compute(graph, {"x": ROWS})
    assert not np.array_equal(kept.result()["columns"], final["columns"]) or np.allclose(ROWS, 0)
    assert np.array_equal(context.compute(graph, {"x": ROWS})["columns"], final["columns"])


@pytest.mark.parametrize("state", ["mapped", "pending"])
def test_a_staging_buffer_that_an_interrupt_left_mapped_is_replaced(context: wn.MLContext, state: str) -> None:
    graph = network(context)
    program = program_of(graph)
    wanted = context.compute(graph, {"x": ROWS})["columns"]
    staging = program.memory.staging
    assert staging is not None
    promise: Any = staging.map_async(wgpu.MapMode.READ)
    if state == "mapped":
        promise.sync_wait()
    assert staging.map_state == state
    assert np.array_equal(context.compute(graph, {"x": ROWS})["columns"], wanted)
    assert program.memory.staging is not staging


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_interrupts_anywhere_in_a_run(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    """A KeyboardInterrupt out of any call of a run leaves the graph usable."""
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    wanted = context.compute(graph, {"x": ROWS})["columns"]
    used: Any = lib if recorder == "raw" else libf
    staging = type(program_of(graph).memory.staging)
    for owner, name in (
        (program_of(graph), "over_own"),
        (Device.of(context.device), "submit_by"),
        (used, "wgpuDeviceCreateCommandEncoder"),
        (used, "wgpuComputePassEncoderEnd"),
        (used, "wgpuCommandEncoderCopyBufferToBuffer"),
        (used, "wgpuCommandEncoderFinish"),
        (libf, "wgpuQueueSubmit"),
        (libf, "wgpuQueueWriteBuffer"),
        (libf, "wgpuBufferMapAsync") if recorder == "raw" else (staging, "map_async"),
        (staging, "read_mapped"),
        (staging, "unmap"),
    ):
        for before in (True, False):
            original: Any = getattr(owner, name)

            def interrupted(*args: Any, _original: Any = original, _before: bool = before, **kwargs: Any) -> Any:
                if not _before:
                    _original(*args, **kwargs)
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(owner, name, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    context.compute(graph, {"x": ROWS})
            assert np.array_equal(context.compute(graph, {"x": ROWS})["columns"], wanted), (name, before)


def test_tensors_that_are_dropped_are_forgotten(context: wn.MLContext) -> None:
    graph = network(context)
    program = program_of(graph)
    x = source(context)
    for _ in range(40):
        results = outputs(context)
        context.dispatch(graph, {"x": x}, results)
        assert len(program._bound) == 1
        del results
    assert len(program._bound) == 0
    kept = [outputs(context) for _ in range(40)]
    for results in kept:
        context.dispatch(graph, {"x": x}, results)
    assert len(program._bound) == 16


def test_bind_groups_between_slots_are_shared(context: wn.MLContext) -> None:
    graph, x = network(context), source(context)
    results = outputs(context)
    with counted() as calls:
        context.dispatch(graph, {"x": x}, results)
    assert graph.plan is not None
    ends = sum(any(r.kind in ("input", "output") for r in d.bindings) for d in graph.plan.dispatches)
    assert created(calls) == {"wgpuDeviceCreateBindGroup": ends}
