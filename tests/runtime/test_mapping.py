from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Shells have the processes that they start in the background ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_the_device_works(context: wn.MLContext) -> None:
    """It is raised once the device is done, from within the callback that tells so, and still neither gets lost."""
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": (512, 512)})
    y = x
    for _ in range(50):
        y = b.mul(b.matmul(x, y), b.constant(np.float32(1 / 512)))
    graph = b.build({"y": y})
    ones = np.ones((512, 512), np.float32)
    wanted = context.compute(graph, {"x": ones})["y"]

    def compute_and_wait() -> None:
        context.compute(graph, {"x": ones})
        time.sleep(60)  # where the device is faster than the timer

    threading.Timer(0.05, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        compute_and_wait()
    assert np.array_equal(context.compute(graph, {"x": ones})["y"], wanted)


@pytest.mark.parametrize("recorder", ["raw", "plain"])
def test_whether_data_has_arrived_can_be_asked(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, recorder: str) -> None:
    """Without a thread that waits for it."""
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
    graph = network(context)
    wanted = context.compute(graph, {"x": ROWS})["columns"]
    promise = context.compute_async(graph, {"x": ROWS})
    end = time.monotonic() + 60
    while not promise.done():
        assert time.monotonic() < end
    assert np.array_equal(promise.result()["columns"], wanted)


def test_threads_that_wait_for_one_device(context: wn.MLContext) -> None:
    """Whichever of them polls the device when data arrives, each gets its own."""
    graphs = [network(context) for _ in range(4)]
    wanted = [context.compute(g, {"x": ROWS * i})["columns"] for i, g in enumerate(graphs)]
    wrong: list[int] = []

    def run(i: int) -> None:
        for _ in range(100):
            if not np.array_equal(context.compute(graphs[i], {"x": ROWS * i})["columns"], wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
