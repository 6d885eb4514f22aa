from __future__ import annotations

import threading

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.runtime import result_memory
from webnn_wgpu.runtime.result_memory import ResultMemory

LARGE = (256, 128), np.dtype(np.float32)
SMALL = (4,), np.dtype(np.float32)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_once_its_array_is_dropped() -> None:
    memory = ResultMemory({"y": LARGE})
    first = memory.array("y")
    assert (first.shape, first.dtype, first.flags.writeable) == (*LARGE, True)
    place = address(first)
    second = memory.array("y")
    assert not np.may_share_memory(first, second)
    del first
    assert address(memory.array("y")) == place


def test_memory_is_in_use_as_long_as_any_view_of_it() -> None:
    memory = ResultMemory({"y": LARGE})
    array = memory.array("y")
    array[:] = 1
    views = [array[3:].T, memoryview(array), array.view(np.uint32), np.frombuffer(array, np.uint8)]
    del array
    while views:
        other = memory.array("y")
        assert not np.may_share_memory(other, np.asarray(views[-1]))
        other[:] = 2
        assert np.asarray(views[0]).view(np.float32).flat[0] == 1
        del other
        views.pop()
    assert len(memory._free["y"]) == 1


def test_one_memory_is_kept_for_each_large_output() -> None:
    memory = ResultMemory({"large": LARGE, "small": SMALL})
    arrays = [memory.array(name) for name in ("large", "large", "small")]
    assert list(memory._free) == ["large"]
    del arrays
    assert len(memory._free["large"]) == 1


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_memory, "_MOST_KEPT_BYTES", 2 * 256 * 128 * 4)
    memory = ResultMemory(dict.fromkeys("abc", LARGE))
    assert list(memory._free) == ["a", "b"]
    assert memory.array("c").shape == LARGE[0]


def test_arrays_outlive_the_memory_they_came_from() -> None:
    memory = ResultMemory({"y": LARGE})
    array = memory.array("y")
    array[:] = 3
    del memory
    assert np.all(array == 3)


def test_threads_get_memory_of_their_own() -> None:
    memory = ResultMemory({"y": LARGE})
    wrong: list[int] = []

    def run(number: int) -> None:
        for _ in range(500):
            array = memory.array("y")
            array[:] = number
            if not np.all(array == number):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_that_are_kept_never_change(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": [256, 128]})
    graph = b.build({"y": b.neg(x), "z": b.add(x, x)})
    kept: list[np.ndarray] = []
    for i in range(6):
        result = context.compute(graph, {"x": np.full((256, 128), i, np.float32)})
        if i % 2:
            kept.append(result["y"][5:])
    graph.destroy()
    assert [float(array[0, 0]) for array in kept] == [-1, -3, -5]
    assert all(np.all(array == array[0, 0]) for array in kept)


def test_results_that_are_dropped_give_their_memory_to_later_ones(context: wn.MLContext) -> None:
    b = wn.MLGraphBuilder(context)
    x = b.input("x", {"dataType": "float32", "shape": [256, 128]})
    graph = b.build({"y": b.neg(x)})
    ones = np.ones((256, 128), np.float32)
    places = {address(context.compute(graph, {"x": ones})["y"]) for _ in range(8)}
    assert len(places) <= 2  # the handle of a run keeps its arrays until the next one begins
