from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

import pytest

import webnn_wgpu as wn
from tests.runtime.counting import count_objects, resident_bytes
from tests.runtime.graphs import ROWS, network, outputs, source

LIMIT_BYTES = 5_000_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from Linux's /proc")


def life(context: wn.MLContext) -> None:
    """Build, run in every way, destroy."""
    graph = network(context)
    context.compute(graph, {"x": ROWS})
    x, results = source(context), outputs(context)
    context.dispatch(graph, {"x": x}, results)
    context.read_tensor(results["columns"])
    for each in (graph, x, *results.values()):
        each.destroy()


def dropped_life(context: wn.MLContext) -> None:
    """Build and run, and destroy nothing."""
    graph, x, results = network(context), source(context), outputs(context)
    context.compute_async(graph, {"x": ROWS})
    context.dispatch(graph, {"x": x}, results)
    context.read_tensor_async(results["columns"])


def growth(work: Callable[[], None], warm_up: int, rounds: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return by how many bytes the process grew, and the wgpu objects whose number changed."""
    for _ in range(warm_up):
        work()
    gc.collect()
    before, objects = resident_bytes(), count_objects()
    for _ in range(rounds):
        work()
    more: dict[str, tuple[int, int]] = {}
    for _ in range(50):  # promises that nobody waits for end when their work does, which a busy machine may be slow at
        gc.collect()
        after = count_objects()
        more = {n: (objects[n], after[n]) for n in objects if after[n] > objects[n]}
        if not more:
            break
        time.sleep(0.1)
    return resident_bytes() - before, more


@pytest.mark.parametrize("kind", [life, dropped_life])
def test_build_run_destroy_leaves_nothing(context: wn.MLContext, kind: Callable[[wn.MLContext], None]) -> None:
    grown, objects = growth(lambda: kind(context), warm_up=50, rounds=200)
    assert objects == {}
    assert grown < LIMIT_BYTES


def test_runs_leave_nothing(context: wn.MLContext) -> None:
    graph, x, results = network(context), source(context), outputs(context)

    def run() -> None:
        context.compute(graph, {"x": ROWS})
        context.dispatch(graph, {"x": x}, results)
        context.read_tensor(results["columns"])

    grown, objects = growth(run, warm_up=100, rounds=400)
    assert objects == {}
    assert grown < LIMIT_BYTES


def test_contexts_leave_nothing() -> None:
    def work() -> None:
        with wn.ml.create_context(accelerated=False) as context:
            context.compute(network(context), {"x": ROWS})
        gc.collect()

    _, objects = growth(work, warm_up=2, rounds=5)
    assert objects == {}
