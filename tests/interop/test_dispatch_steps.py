from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.counting import counted
from webnn_wgpu.runtime.program import Program

from .programs import TYPE, X, expected, network

FLAGS: dict[str, Any] = {**TYPE, "readable": True, "writable": True}


def pair(context: wn.MLContext) -> tuple[wn.MLTensor, wn.MLTensor]:
    x, y = context.create_tensor(FLAGS), context.create_tensor(FLAGS)
    context.write_tensor(x, X)
    return x, y


def program_of(graph: wn.MLGraph) -> Program:
    program = graph._executable
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_as_many_at_once_as_the_bound_allows(own: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph, (x, y) = network(own), pair(own)
    total = len(graph.plan.dispatches)
    assert total == 2
    with counted() as calls:
        assert list(own.dispatch_steps(graph, {"x": x}, {"y": y})) == [(1, 2), (2, 2)]
    assert calls["wgpuQueueSubmit"] == 2
    np.testing.assert_allclose(own.read_tensor(y), expected(), rtol=1e-5)
    program = program_of(graph)
    assert len(program.milliseconds) == 2
    assert min(program.milliseconds) > 0
    for milliseconds, bound, steps in (([1, 2], 3, [(2, 2)]), ([1, 2.5], 3, [(1, 2), (2, 2)]), ([9, 9], 3, [(1, 2), (2, 2)])):
        program.milliseconds = [float(ms) for ms in milliseconds]
        own.write_tensor(y, X)
        with counted() as calls:
            assert list(own.dispatch_steps(graph, {"x": x}, {"y": y}, max_ms_per_submit=bound)) == steps
        assert calls["wgpuQueueSubmit"] == len(steps)
        np.testing.assert_allclose(own.read_tensor(y), expected(), rtol=1e-5)


def test_other_work_between_the_steps(own: wn.MLContext) -> None:
    graph, other, (x, y), (a, b) = network(own), network(own), pair(own), pair(own)
    steps = own.dispatch_steps(graph, {"x": x}, {"y": y})
    next(steps)
    own.dispatch(other, {"x": a}, {"y": b})
    np.testing.assert_allclose(own.read_tensor(b), expected(), rtol=1e-5)
    refused = "a run in steps has not finished"
    with pytest.raises(wn.InvalidStateError, match=f"dispatch: {refused}"):
        own.dispatch(graph, {"x": a}, {"y": b})
    with pytest.raises(wn.InvalidStateError, match=f"compute: {refused}"):
        own.compute(graph, {"x": X})
    with pytest.raises(wn.InvalidStateError, match=f"encode: {refused}"):
        own.encode(graph, {"x": a}, {"y": b}, own.device.create_command_encoder())
    with pytest.raises(wn.InvalidStateError, match=f"dispatch_steps: {refused}"):
        list(own.dispatch_steps(graph, {"x": a}, {"y": b}))
    assert list(steps) == [(2, 2)]
    np.testing.assert_allclose(own.read_tensor(y), expected(), rtol=1e-5)
    own.dispatch(graph, {"x": a}, {"y": b})


def test_a_run_that_is_given_up(own: wn.MLContext) -> None:
    graph, (x, y) = network(own), pair(own)
    steps = own.dispatch_steps(graph, {"x": x}, {"y": y})
    next(steps)
    del steps
    own.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(own.read_tensor(y), expected(), rtol=1e-5)
    assert program_of(graph).milliseconds == []
    steps = own.dispatch_steps(graph, {"x": x}, {"y": y})
    next(steps)
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="dispatch_steps: the graph was destroyed"):
        next(steps)


def test_a_closed_iterator_ends_its_run_though_its_variables_live_on(own: wn.MLContext) -> None:
    graph, (x, y) = network(own), pair(own)
    steps = own.dispatch_steps(graph, {"x": x}, {"y": y})
    next(steps)
    assert isinstance(steps, Generator)
    frame = steps.gi_frame  # as a debugger has it
    steps.close()
    own.dispatch(graph, {"x": x}, {"y": y})
    np.testing.assert_allclose(own.read_tensor(y), expected(), rtol=1e-5)
    assert frame is not None


def test_wrong_calls_are_refused_at_once(own: wn.MLContext, reference: wn.MLContext) -> None:
    graph, (x, y) = network(own), pair(own)
    with pytest.raises(wn.MLTypeError, match="dispatch_steps: inputs and outputs must be different"):
        own.dispatch_steps(graph, {"x": x}, {"y": x})
    for bound in (0, -1, float("nan")):
        with pytest.raises(wn.MLTypeError, match="dispatch_steps: max_ms_per_submit must be positive"):
            own.dispatch_steps(graph, {"x": x}, {"y": y}, max_ms_per_submit=bound)
    ours, (x, y) = network(reference), pair(reference)
    assert list(reference.dispatch_steps(ours, {"x": x}, {"y": y})) == [(1, 1)]
    np.testing.assert_allclose(reference.read_tensor(y), expected(), rtol=1e-5)
