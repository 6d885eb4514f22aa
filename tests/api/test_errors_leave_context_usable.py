from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, negation, pair, tensor
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.pipelines import PipelineCache


@pytest.mark.parametrize("kind", ["compute", "dispatch", "tensor", "builder"])
def test_after_every_kind_of_error_all_goes_on(anywhere: wn.MLContext, kind: str) -> None:
    graph, (a, b) = negation(anywhere), pair(anywhere)
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", F32X3)
    wrong: dict[str, list[Callable[[], Any]]] = {
        "compute": [
            lambda: anywhere.compute(graph, {}),
            lambda: anywhere.compute(graph, {"x": X[:1]}),
            lambda: anywhere.compute(graph, {"x": X}, {"y": np.zeros(1, np.float32)}),
            lambda: anywhere.compute(graph, {"x": X}, {"q": np.zeros(3, np.float32)}),
        ],
        "dispatch": [
            lambda: anywhere.dispatch(graph, {"x": a}, {"y": a}),
            lambda: anywhere.dispatch(graph, {"x": a}, {}),
            lambda: anywhere.dispatch(graph, {"x": a}, {"y": tensor(anywhere, shape=(4,))}),
        ],
        "tensor": [
            lambda: anywhere.create_tensor({"dataType": "float32", "shape": [0]}),
            lambda: anywhere.create_tensor({"dataType": "float32", "shape": [2**29]}) and anywhere.write_tensor(a, []),
            lambda: anywhere.write_tensor(a, X[:2]),
            lambda: anywhere.read_tensor(a, np.zeros(1, np.float32)),
        ],
        "builder": [
            lambda: builder.matmul(x, x),
            lambda: builder.build({"y": x}),
            lambda: builder.constant(F32X3, b""),
        ],
    }
    for call in wrong[kind]:
        with pytest.raises((TypeError, wn.UnknownError)):
            call()
        assert anywhere.compute(graph, {"x": X})["y"].tolist() == [-1, 2, -3]
        anywhere.dispatch(graph, {"x": a}, {"y": b})
        assert anywhere.read_tensor(b).tolist() == [-1, 2, -3]
        assert anywhere.read_tensor(a).tolist() == X.tolist()
    assert anywhere.compute(builder.build({"y": builder.neg(x)}), {"x": X})["y"].tolist() == [-1, 2, -3]
    assert not anywhere.lost.done()


def test_a_kernel_that_does_not_compile(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from webnn_wgpu.runtime import pipelines

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    graph = negation(context)
    with monkeypatch.context() as broken:
        broken.setattr(pipelines, "source_of", lambda spec: "this is no WGSL")
        broken.setattr(PipelineCache, "of", PipelineCache)
        builder = wn.MLGraphBuilder(context)
        with pytest.raises(wn.OperationError, match=r"build\('neg_0'\): shader of template ops/.* does not compile") as caught:
            builder.build({"y": builder.neg(builder.input("x", F32X3))})
    assert caught.value.name == "OperationError"
    assert "Its source is in" in str(caught.value)
    assert context.compute(graph, {"x": X})["y"].tolist() == [-1, 2, -3]
    assert context.compute(negation(context), {"x": X})["y"].tolist() == [-1, 2, -3]


def test_a_graph_that_does_not_fit(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = negation(context)
    device = Device.of(context.device)
    made: list[Any] = []
    create = device.create_gpu_buffer

    def fail_later(size: int, usage: int, label: str) -> Any:
        if len(made) == 2:
            raise wn.OutOfMemoryError("the device has no memory", label=label)
        made.append(create(size, usage, label))
        return made[-1]

    monkeypatch.setattr(device, "create_gpu_buffer", fail_later)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", F32X3)
    with pytest.raises(wn.OutOfMemoryError, match="build"):
        builder.build({"y": builder.softmax(builder.reshape(x, [1, 3]), 1), "z": builder.neg(x)})
    monkeypatch.undo()
    assert context.compute(graph, {"x": X})["y"].tolist() == [-1, 2, -3]
