from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest
import trio

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, negation, pair
from webnn_wgpu.api.promise import MLPromise


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine without any event loop."""
    try:
        while True:
            assert coroutine.send(None) is None
    except StopIteration as stop:
        return stop.value


async def everything(context: wn.MLContext) -> list[Any]:
    builder = wn.MLGraphBuilder(context)
    graph = await builder.build_async({"y": builder.neg(builder.input("x", F32X3))})
    result = await context.compute_async(graph, {"x": X})
    a = await context.create_tensor_async({**F32X3, "writable": True})
    b = await context.create_tensor_async({**F32X3, "readable": True})
    context.write_tensor(a, result["y"])
    context.dispatch(graph, {"x": a}, {"y": b})
    constant = await context.create_constant_tensor_async(F32X3, X)
    return [result["y"].tolist(), (await context.read_tensor_async(b)).tolist(), constant.constant]


def test_under_trio(anywhere: wn.MLContext) -> None:
    ran: list[str] = []

    async def both() -> None:
        async def other() -> None:
            await trio.sleep(0)
            ran.append("other")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            promise = wn.MLPromise[str].in_background(lambda: time.sleep(0.05) or "slow")
            ran.append(await promise)
            assert await everything(anywhere) == [[-1, 2, -3], [1, -2, 3], True]

    trio.run(both)
    assert ran == ["other", "slow"]


def test_under_asyncio(anywhere: wn.MLContext) -> None:
    for _ in range(2):  # a second loop: nothing may hang on to the first
        assert asyncio.run(everything(anywhere)) == [[-1, 2, -3], [1, -2, 3], True]


def test_without_an_event_loop(anywhere: wn.MLContext) -> None:
    assert drive(everything(anywhere)) == [[-1, 2, -3], [1, -2, 3], True]


def test_others_run_while_a_coroutine_waits() -> None:
    release = threading.Event()
    promise = MLPromise[int].in_background(lambda: release.wait(30) and 7)

    async def other() -> str:
        release.set()
        return "ran"

    async def both() -> list[Any]:
        return list(await asyncio.gather(_result(promise), other()))

    assert asyncio.run(both()) == [7, "ran"]


async def _result(promise: MLPromise[Any]) -> Any:
    return await promise


def test_contexts_in_the_background() -> None:
    async def make() -> wn.MLContext:
        return await wn.ml.create_context_async(backend="reference")

    assert asyncio.run(make()).description == "numpy reference"


def test_errors_arrive_when_the_promise_is_asked(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    promises = [
        anywhere.compute_async(graph, {}),
        anywhere.read_tensor_async(anywhere.create_tensor(F32X3)),
        anywhere.create_tensor_async({}),
        anywhere.create_constant_tensor_async(F32X3, X[:1]),
        wn.MLGraphBuilder(anywhere).build_async({}),
    ]
    for promise in promises:
        assert promise.done()
        for _ in range(2):
            with pytest.raises(TypeError):
                promise.result()


def test_build_async_takes_the_graph_at_once(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    y = builder.neg(builder.input("x", F32X3))
    promise = builder.build_async({"y": y})
    with pytest.raises(wn.InvalidStateError, match="relu: the builder has built its graph"):
        builder.relu(y)
    assert anywhere.compute(promise.result(), {"x": X})["y"].tolist() == [-1, 2, -3]


def test_then() -> None:
    promise = MLPromise.resolved(2)
    assert promise.then(lambda n: n + 1).then(str).sync_wait() == "3"
    assert promise.then(lambda n: MLPromise.resolved(n * 10)).result() == 20
    failed = promise.then(lambda n: n // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    with pytest.raises(ZeroDivisionError):
        failed.then(str).result()
    assert failed.then(str, lambda error: type(error).__name__).result() == "ZeroDivisionError"


def test_a_callback_runs_once() -> None:
    calls: list[int] = []
    following = MLPromise.resolved(1).then(calls.append)
    following.result()
    following.result()
    assert calls == [1]


def test_an_interrupted_wait_may_be_taken_up_again() -> None:
    waits: list[object] = [KeyboardInterrupt(), 5]

    def wait() -> int:
        outcome = waits.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return 5

    promise = MLPromise(wait)
    with pytest.raises(KeyboardInterrupt):
        promise.result()
    assert promise.result() == 5


def test_a_settled_promise_holds_its_result_alone(context: wn.MLContext) -> None:
    graph = negation(context)
    a, _ = pair(context)
    promises = [context.compute_async(graph, {"x": X}), context.read_tensor_async(a)]
    for promise in promises:
        promise.result()
    gone = [weakref.ref(graph), weakref.ref(a)]
    del graph, a
    assert [ref() for ref in gone] == [None, None]
    assert promises[1].result().tolist() == X.tolist()


def test_objects_that_are_dropped_go_at_once(context: wn.MLContext) -> None:
    gc.disable()
    try:
        graph, (a, b) = negation(context), pair(context)
        context.compute(graph, {"x": X})
        context.dispatch(graph, {"x": a}, {"y": b})
        context.read_tensor(b)
        context.compute_async(graph, {"x": X})
        gone = [weakref.ref(o) for o in (graph, graph._executable, a, b, a._storage)]
        del graph, a, b
        assert [ref() for ref in gone] == [None] * 5
    finally:
        gc.enable()


def test_contexts_that_are_dropped_go_at_once() -> None:
    gc.disable()
    try:
        context = wn.ml.create_context(backend="reference")
        negation(context)
        gone = weakref.ref(context)
        del context
        assert gone() is None
    finally:
        gc.enable()
