from __future__ import annotations

import threading

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, negation, pair, tensor
from tests.support import open_profile


def test_destroy_settles_lost_once(fresh: wn.MLContext) -> None:
    lost = fresh.lost
    assert lost is fresh.lost
    assert not lost.done()
    fresh.destroy()
    assert lost.done()
    assert lost.result() == wn.MLContextLostInfo("destroy() was called")
    fresh.destroy()
    assert lost.result().message == "destroy() was called"
    assert repr(fresh).endswith(", lost)")


def test_lost_wakes_another_thread(fresh: wn.MLContext) -> None:
    found: list[str] = []
    waiter = threading.Thread(target=lambda: found.append(fresh.lost.result().message))
    waiter.start()
    fresh.destroy()
    waiter.join(10)
    assert found == ["destroy() was called"]


def test_everything_of_a_lost_context_fails_as_the_text_says(fresh: wn.MLContext) -> None:
    graph, (a, b) = negation(fresh), pair(fresh)
    constant = fresh.create_constant_tensor(F32X3, X)
    builder = wn.MLGraphBuilder(fresh)
    x = builder.input("x", F32X3)
    y = builder.relu(x)
    pending = {"read": fresh.read_tensor_async(a), "run": fresh.compute_async(graph, {"x": X})}
    fresh.destroy()
    assert graph.destroyed
    assert a.destroyed
    assert constant.destroyed
    call = "recover(device)" if fresh.device is not None else "recover()"
    lost = f"the context is lost; got destroy() was called. context.{call} returns a new one"
    for call, operator in (
        (lambda: fresh.create_tensor(F32X3), "create_tensor"),
        (lambda: fresh.create_tensor("nonsense"), "create_tensor"),
        (lambda: fresh.create_constant_tensor(F32X3, X), "create_constant_tensor"),
        (lambda: wn.MLGraphBuilder(fresh), "MLGraphBuilder"),
        (fresh.create_graph_builder, "MLGraphBuilder"),
        (lambda: builder.input("", {}), "input"),
        (lambda: builder.constant("float32", 1), "constant"),
        (lambda: builder.relu(x), "relu"),
        (lambda: builder.build({}), "build"),
        (lambda: builder.build({"y": y}), "build"),
        (lambda: fresh.compute(graph, {}), "compute"),
        (lambda: fresh.dispatch(graph, {"x": a}, {"y": b}), "dispatch"),
        (lambda: fresh.create_tensor_async(F32X3).result(), "create_tensor"),
        (lambda: builder.build_async({"y": y}).result(), "build"),
    ):
        with pytest.raises(wn.InvalidStateError) as caught:
            call()
        assert str(caught.value) == f"{operator}: {lost}"
        assert caught.value.name == "InvalidStateError"
    for call in (lambda: fresh.read_tensor(a), lambda: fresh.write_tensor(a, X), lambda: builder.constant(constant)):
        with pytest.raises(TypeError, match=r"the tensor was destroyed.*The context is lost, and its tensors with it"):
            call()
    for promise in pending.values():
        with pytest.raises(wn.InvalidStateError):
            promise.result()
    assert fresh.op_support_limits()["relu"]["input"]["dataTypes"]
    assert fresh.power_preference == "default"


def test_a_context_that_is_left_is_destroyed() -> None:
    with wn.ml.create_context(backend="reference") as context:
        graph = negation(context)
    assert graph.destroyed
    assert context.lost.done()


def test_two_contexts_on_one_device_are_apart() -> None:
    gpu = open_profile("full").gpu
    with wn.ml.create_context(gpu) as first, wn.ml.create_context(gpu) as second:
        assert first.device is second.device is gpu
        mine, yours = negation(first), negation(second)
        a, b = pair(second)
        first.destroy()
        assert mine.destroyed
        assert not yours.destroyed
        second.dispatch(yours, {"x": a}, {"y": b})
        assert second.read_tensor(b).tolist() == [-1, 2, -3]


def test_graphs_are_context_managers(anywhere: wn.MLContext) -> None:
    with negation(anywhere) as graph:
        assert repr(graph) == "MLGraph(x: float32[3] -> y: float32[3])"
    assert graph.destroyed
    assert repr(graph) == "MLGraph(x: float32[3] -> y: float32[3]) destroyed"


def test_a_graph_destroyed_while_its_run_is_pending_finishes_it(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    promise = anywhere.compute_async(graph, {"x": X})
    graph.destroy()
    assert promise.result()["y"].tolist() == [-1, 2, -3]


def test_what_a_context_says_of_itself(anywhere: wn.MLContext) -> None:
    assert anywhere.device_type == ("gpu" if anywhere.accelerated else "cpu")
    assert anywhere.description in repr(anywhere)
    assert anywhere.powerPreference == "default"
    with pytest.raises(
        AttributeError, match=r"'MLContext' object has no attribute 'create_tensr'\. Did you mean create_tensor\?"
    ):
        anywhere.create_tensr  # noqa: B018 - the look-up is what is tested
    for name in ("accelerated", "lost", "power_preference"):
        with pytest.raises(AttributeError):
            setattr(anywhere, name, None)


def test_threads_share_a_context(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            for i in range(20):
                value = np.float32([number, i, 0])
                if anywhere.compute(graph, {"x": value})["y"].tolist() != (-value).tolist():
                    wrong.append((number, i))
                t = tensor(anywhere, value)
                if anywhere.read_tensor(t).tolist() != value.tolist():
                    wrong.append(("tensor", number, i))
                t.destroy()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
