from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network, outputs, source
from webnn_wgpu.runtime import recorder, versions
from webnn_wgpu.runtime.recorder import PlainRecorder, RawRecorder, make_recorder


def test_both_recorders_do_the_same(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, np.ndarray]] = []
    for name in ("raw", "plain"):
        monkeypatch.setenv("WEBNN_WGPU_RECORDER", name)
        graph, x, results = network(context), source(context), outputs(context)
        found.append(dict(context.compute(graph, {"x": ROWS})))
        context.dispatch(graph, {"x": x}, results)
        found.append({n: context.read_tensor(t) for n, t in results.items()})
    for name, array in found[0].items():
        assert all(np.array_equal(array, other[name]) for other in found[1:])


@pytest.mark.parametrize(("name", "kind"), [("raw", RawRecorder), ("plain", PlainRecorder), ("", RawRecorder)])
def test_which_recorder_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, kind: type) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", name)
    assert type(make_recorder([])) is kind


@pytest.mark.parametrize("kind", [RawRecorder, PlainRecorder])
def test_what_is_recorded_goes_with_the_recorder(context: wn.MLContext, kind: type[RawRecorder] | type[PlainRecorder]) -> None:
    """Not when garbage is next collected: pipelines and bind groups hold memory of the device."""
    made = kind([])
    made.submit(context.device)
    gone = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert gone() is None
    finally:
        gc.enable()


def test_an_untested_wgpu_gets_the_plain_one(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_WGPU_RECORDER", raising=False)
    monkeypatch.setattr(wgpu, "__version__", "9.9.9")
    assert not versions.tested_wgpu()
    graph = network(context)
    assert type(graph._executable._own) is recorder.PlainRecorder
    assert context.compute(graph, {"x": ROWS})["probability"].shape == (4, 32)
    monkeypatch.undo()
    assert versions.tested_wgpu()


def test_an_unknown_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", "quick")
    with pytest.raises(wn.MLTypeError) as caught:
        make_recorder([])
    assert str(caught.value) == "WEBNN_WGPU_RECORDER must name a recorder; got 'quick'; allowed: raw, plain"
