"""Host and device at work at the same time: encoders that are recorded before their run is asked for, and divided runs."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network, outputs, source
from tests.runtime.native import lib, libf
from tests.support import Device, new_profile
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.recorder import submits

RECORDERS = pytest.mark.parametrize("recorder", ["raw", "plain"])


@contextmanager
def order() -> Generator[list[str]]:
    """Collect the encodings and the submits of the block, in their order."""
    found: list[str] = []
    kept: list[tuple[Any, str, Any]] = []

    def watch(door: Any, name: str, what: str) -> None:
        original = getattr(door, name)
        kept.append((door, name, original))

        def call(*args: Any) -> Any:
            found.append(what)
            return original(*args)

        setattr(door, name, call)

    watch(lib, "wgpuDeviceCreateCommandEncoder", "encode")
    watch(libf, "wgpuDeviceCreateCommandEncoder", "encode")
    watch(libf, "wgpuQueueSubmit", "submit")
    try:
        yield found
    finally:
        for door, name, original in kept:
            setattr(door, name, original)


@RECORDERS
def test_the_next_run_is_recorded_after_the_submit_of_this_one(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str
) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    runs: list[list[str]] = []
    for _ in range(4):
        with order() as calls:
            context.compute(graph, {"x": ROWS})
        runs.append(calls)
    # A graph that runs once is encoded once.
    assert runs == [["encode", "submit"], ["encode", "submit", "encode"], ["submit", "encode"], ["submit", "encode"]]


def test_each_set_of_tensors_has_its_next_run_recorded(context: wn.MLContext) -> None:
    graph, x = network(context), source(context)
    first, second = outputs(context), outputs(context)
    for results in (first, second, first, second):
        context.dispatch(graph, {"x": x}, results)
    with order() as calls:
        for results in (first, second, first):
            context.dispatch(graph, {"x": x}, results)
    assert calls == ["submit", "encode"] * 3
    wanted = context.compute(graph, {"x": ROWS})
    for results in (first, second):
        assert all(np.array_equal(context.read_tensor(tensor), wanted[name]) for name, tensor in results.items())


@RECORDERS
def test_runs_that_were_recorded_ahead_have_the_same_results(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str
) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    for i in range(5):
        found = context.compute(graph, {"x": ROWS * i})
        once = context.compute(network(context), {"x": ROWS * i})  # its first run: nothing is ahead
        assert all(np.array_equal(found[name], once[name]) for name in once)


def test_other_outputs_than_those_of_the_run_before(context: wn.MLContext) -> None:
    graph = network(context)
    wanted = context.compute(graph, {"x": ROWS})
    for names in (["columns"], ["columns"], ["columns"], ["probability"], ["columns", "probability"], ["columns"]):
        for scale in (2, 1):
            found = context.compute(graph, {"x": ROWS * scale}, dict.fromkeys(names))
        assert list(found) == names
        assert all(np.array_equal(found[name], wanted[name]) for name in names)


@RECORDERS
def test_state_that_runs_update_in_place(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    b = wn.MLGraphBuilder(context)
    state, step = (b.input(name, {"dataType": "float32", "shape": [5, 7]}) for name in ("state", "step"))
    moved = b.add(b.mul(state, b.constant(np.float32(0.5))), step)
    graph = b.build({"state+": moved, "sum": b.reduce_sum(b.softmax(state, 1), axes=[1])}, aliases={"state+": "state"})
    tensors = {name: context.create_host_tensor([5, 7], "float32") for name in ("state", "step")}
    total = context.create_tensor([5], "float32", readable=True)
    expected = np.zeros((5, 7), np.float32)
    context.write_tensor(tensors["state"], expected)
    for i in range(6):
        given = np.full((5, 7), i, np.float32)
        context.write_tensor(tensors["step"], given)
        context.dispatch(graph, tensors, {"state+": tensors["state"], "sum": total})
        expected = expected * np.float32(0.5) + given
        assert np.array_equal(context.read_tensor(tensors["state"]), expected)


def test_a_destroyed_buffer_is_found_before_what_was_recorded_over_it_is_submitted(context: wn.MLContext) -> None:
    graph, results = network(context), outputs(context)
    own = context.device.create_buffer(size=ROWS.nbytes, usage="STORAGE | COPY_DST | COPY_SRC")
    x = context.wrap_buffer(own, list(ROWS.shape), "float32")
    for _ in range(3):
        context.dispatch(graph, {"x": x}, results)
    own.destroy()
    with pytest.raises(wn.InvalidStateError, match="the buffer was destroyed"):
        context.dispatch(graph, {"x": x}, results)
    context.dispatch(graph, {"x": source(context)}, results)
    assert np.array_equal(context.read_tensor(results["columns"]), context.compute(graph, {"x": ROWS})["columns"])


def test_an_override_is_no_part_of_what_was_recorded_before(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    graph = b.build({"y": b.neg(b.input("x", {"dataType": "float32", "shape": [4, 16]}))})
    for _ in range(3):
        assert np.array_equal(context.compute(graph, {"x": ROWS})["y"], -ROWS)
    graph.override("neg_0", graph.kernels["neg_0"].wgsl.replace("-(x0)", "x0 + x0"))
    for _ in range(3):
        assert np.array_equal(context.compute(graph, {"x": ROWS})["y"], ROWS + ROWS)
    graph.restore()
    assert np.array_equal(context.compute(graph, {"x": ROWS})["y"], -ROWS)


@pytest.mark.parametrize("call", ["compute", "dispatch"])
def test_a_device_that_is_lost_after_a_run_was_recorded_ahead(caplog: pytest.LogCaptureFixture, call: str) -> None:
    """The submit of a command buffer of a lost device would end the process."""
    caplog.set_level(logging.CRITICAL, "wgpu")
    gpu = new_profile("default-limits").gpu
    context = wn.ml.create_context(gpu)
    graph, x, results = network(context), source(context), outputs(context)
    runs = {
        "compute": lambda: context.compute(graph, {"x": ROWS}),
        "dispatch": lambda: context.dispatch(graph, {"x": x}, results),
    }
    for _ in range(3):
        runs[call]()
    lost: Any = gpu
    libf.wgpuDeviceDestroy(lost._internal)
    with pytest.raises(wn.DeviceLostError):
        runs[call]()


def test_a_failure_to_encode_ahead_is_none_of_the_run_that_was_submitted(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = network(context)
    wanted = context.compute(graph, {"x": ROWS})["columns"]
    program = graph._executable
    assert isinstance(program, Program)
    recorder: Any = program.over_own()
    encoded, calls = recorder._recorded, list[int]()

    def failing(*args: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == 2:
            raise wgpu.GPUInternalError("The driver says no.")
        return encoded(*args)

    monkeypatch.setattr(recorder, "_recorded", failing)
    for _ in range(3):
        assert np.array_equal(context.compute(graph, {"x": ROWS})["columns"], wanted)
    assert len(calls) == 5  # two, two, and one: the last run was encoded by the one before


def chain(context: wn.MLContext, steps: int = 6) -> wn.MLGraph:
    """A graph of two dispatches for each step."""
    b = wn.MLGraphBuilder(context)
    y = b.input("x", {"dataType": "float32", "shape": [4, 16]})
    for _ in range(steps):
        y = b.softmax(b.matmul(y, b.constant(np.eye(16, dtype=np.float32) * np.float32(3))), 1)
    graph = b.build({"y": y, "z": b.neg(y)})
    assert graph.plan is not None
    assert len(graph.plan.dispatches) >= 2 * steps
    return graph


def divide(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, soon: int) -> None:
    """Have runs of graphs that are built later begin with the submit of some dispatches."""
    device = Device.of(context.device)
    costs = device.target.costs
    runtime = replace(costs.runtime, soon_dispatches=soon)
    monkeypatch.setattr(device, "target", replace(device.target, costs=replace(costs, runtime=runtime)))


def test_costs_say_whether_runs_are_divided() -> None:
    on_hardware = Target.of(Caps(adapter_type="DiscreteGPU")).costs.runtime.soon_dispatches
    assert len(submits(100, on_hardware)) == 2
    assert len(submits(10, on_hardware)) == 1
    assert len(submits(100, Target.of(Caps(adapter_type="CPU")).costs.runtime.soon_dispatches)) == 1


@RECORDERS
@pytest.mark.parametrize("soon", [1, 4])
def test_divided_runs_have_the_same_results(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str, soon: int
) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    whole = chain(context)
    divide(context, monkeypatch, soon)
    divided = chain(context)
    runs: list[list[str]] = []
    x, results = source(context), {n: context.create_tensor([4, 16], "float32", readable=True) for n in "yz"}
    for i in range(1, 5):
        wanted = context.compute(whole, {"x": ROWS * i})
        with order() as calls:
            found = context.compute(divided, {"x": ROWS * i})
        runs.append(calls)
        context.write_tensor(x, ROWS * i)
        context.dispatch(divided, {"x": x}, results)
        for name in wanted:
            assert np.array_equal(found[name], wanted[name])
            assert np.array_equal(context.read_tensor(results[name]), wanted[name])
    alternately, ahead = ["encode", "submit"] * 2, ["encode"] * 2
    # Before an encoder is ahead, the first dispatches are submitted before the others are recorded.
    assert runs == [alternately, alternately + ahead, ["submit"] * 2 + ahead, ["submit"] * 2 + ahead]


def test_runs_that_update_tensors_are_not_divided(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    divide(context, monkeypatch, 1)
    b = wn.MLGraphBuilder(context)
    y = state = b.input("state", {"dataType": "float32", "shape": [4, 16]})
    for _ in range(6):
        y = b.softmax(b.matmul(y, b.constant(np.eye(16, dtype=np.float32))), 1)
    graph = b.build({"state+": y, "sum": b.reduce_sum(state)}, aliases={"state+": "state"})
    tensor = context.create_host_tensor([4, 16], "float32")
    total = context.create_tensor([], "float32", readable=True)
    context.write_tensor(tensor, ROWS)
    with order() as calls:
        context.dispatch(graph, {"state": tensor}, {"state+": tensor, "sum": total})
    assert calls == ["encode", "submit"]
    np.testing.assert_allclose(context.read_tensor(total), ROWS.sum(), rtol=1e-5)


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_between_the_submits_of_a_run(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    divide(context, monkeypatch, 2)
    graph = chain(context)
    wanted = context.compute(graph, {"x": ROWS})["y"]
    submit, calls = libf.wgpuQueueSubmit, list[int]()

    def interrupted(*args: Any) -> None:
        submit(*args)
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt

    for _ in range(2):
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(libf, "wgpuQueueSubmit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                context.compute(graph, {"x": ROWS * 2})
        for _ in range(3):
            assert np.array_equal(context.compute(graph, {"x": ROWS})["y"], wanted)
