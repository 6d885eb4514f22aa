from __future__ import annotations

import gc

import numpy as np

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network
from webnn_wgpu.runtime.device import Device, adapters
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
