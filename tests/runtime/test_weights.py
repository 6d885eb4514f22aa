from __future__ import annotations

import gc
import mmap
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network
from webnn_wgpu.ir.graph import Array
from webnn_wgpu.runtime import weights
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.weights import WeightStore


def fresh_context() -> tuple[wn.MLContext, WeightStore]:
    context = wn.ml.create_context(adapters()[0].request_device_sync())
    return context, WeightStore.of(Device.of(context.device))


def test_graphs_share_constants_and_the_last_one_frees_them() -> None:
    context, store = fresh_context()
    first = network(context)
    count, size = len(store), store.size_bytes
    assert count > 0
    assert size >= 16 * 32 * 4
    second = network(context)
    assert (len(store), store.size_bytes) == (count, size)
    other = network(context, scale=2.0)
    assert len(store) > count
    other.destroy()
    assert (len(store), store.size_bytes) == (count, size)
    first.destroy()
    assert len(store) == count
    assert context.compute(second, {"x": ROWS})["columns"].shape == (8, 4)
    second.destroy()
    assert (len(store), store.size_bytes) == (0, 0)
    context.destroy()


def test_graphs_that_are_only_dropped_free_them_too() -> None:
    context, store = fresh_context()
    gc.disable()
    try:
        graph = network(context)
        context.compute(graph, {"x": ROWS})
        assert len(store) > 0
        del graph
        assert len(store) == 0
    finally:
        gc.enable()
    context.destroy()


def test_the_same_numbers_in_another_type_or_shape_are_others(device: Device) -> None:
    store = WeightStore(device)
    array = np.zeros(4, np.float32)
    kept = [store.get(a, None) for a in (array, array.copy(), array.view(np.int32), array.reshape(2, 2))]
    assert kept[0] is kept[1]
    assert len(store) == 3
    kept.clear()
    assert len(store) == 0


def _resident_bytes(file: Path) -> int:
    """Return how much of a mapped file is in memory."""
    found, there = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            there = line.endswith(f" {file}")
        elif there and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what Linux says of the process")
@pytest.mark.parametrize("view", [lambda whole: whole, lambda whole: np.moveaxis(whole.reshape(64, 3, -1), 1, 0)[::-1]])
def test_weights_in_a_mapped_file_do_not_stay_in_memory(device: Device, tmp_path: Path, view: Callable[[Array], Array]) -> None:
    size = 24 * 1024 * 1024
    numbers = np.arange(size // 4, dtype=np.float32)
    file = tmp_path / "weights"
    file.write_bytes(b"-" * 20 + numbers.tobytes())
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    array = view(np.frombuffer(mapped, np.float32, offset=20))
    weight = WeightStore.of(device).get(array, None)
    assert _resident_bytes(file) < size // 4
    np.testing.assert_array_equal(array, view(numbers))  # still there to be read
    assert _resident_bytes(file) > size // 2
    assert weight.size_bytes == size


def test_what_is_written_to_a_private_mapping_is_kept(device: Device, tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes(4 * mmap.PAGESIZE))
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
    array = np.frombuffer(mapped, np.float32)
    array[:] = 3
    WeightStore.of(device).get(array, None)
    assert (array == 3).all()


def test_uploads_do_not_pile_up_in_staging_memory(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_STAGED_BYTES", 1 << 16)
    store, waits = WeightStore.of(device), list[int]()
    wait = Device.wait

    def counted(self: Device) -> None:
        waits.append(1)
        wait(self)

    monkeypatch.setattr(Device, "wait", counted)
    kept = [store.get(np.full(1 << 13, i, np.float32), None) for i in range(20)]
    assert len(waits) == pytest.approx(20 * (1 << 15) / (1 << 16), abs=4)
    assert len(kept) == 20


def test_large_constants_are_staged_in_parts(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_STAGED_BYTES", 5000)
    context = wn.ml.create_context(device.gpu)
    waits = list[int]()
    wait = Device.wait

    def counted(self: Device) -> None:
        waits.append(1)
        wait(self)

    monkeypatch.setattr(Device, "wait", counted)
    random = np.random.default_rng(1)
    x, matrix, table = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 100), (100, 70), (301, 33)))
    rows = np.uint32([0, 37, 38, 300])
    builder = wn.MLGraphBuilder(context)
    given = builder.input("x", {"dataType": "float32", "shape": [4, 100]})
    taken = builder.input("rows", {"dataType": "uint32", "shape": [4]})
    product = builder.matmul(given, builder.constant(matrix))
    graph = builder.build({"product": product, "taken": builder.gather(builder.constant(table), taken)})
    assert len(waits) >= (matrix.nbytes + table.nbytes) // 5000 - 2
    found = context.compute(graph, {"x": x, "rows": rows})
    np.testing.assert_allclose(found["product"], x @ matrix, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found["taken"], table[rows])
