"""The work that keeps a GPU's clock up before timed kernels."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import new_profile
from webnn_wgpu.runtime.clocks import ClockLoad


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[ClockLoad]:
    found: list[ClockLoad] = []
    record = ClockLoad.record

    def recorded(self: ClockLoad, encoder: object) -> None:
        found.append(self)
        record(self, encoder)  # pyright: ignore[reportArgumentType] - the encoder is handed on

    monkeypatch.setattr(ClockLoad, "record", recorded)
    return found


def profiled(context: wn.MLContext) -> int:
    """Profile a graph of one kernel in three runs, and return the kernels of the profile."""
    b = wn.MLGraphBuilder(context)
    with b.build({"y": b.relu(b.input("x", {"dataType": "float32", "shape": [4]}))}) as graph:
        return len(graph.profile({"x": np.ones(4, np.float32)}, runs=3).kernels)


def test_timed_runs_of_gpus_follow_the_same_work(monkeypatch: pytest.MonkeyPatch, loads: list[ClockLoad]) -> None:
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "hardware")
    device = new_profile("hardware")
    with wn.ml.create_context(device.gpu) as context:
        assert profiled(context) == 1
    assert len(loads) >= 3
    assert len(set(map(id, loads))) == 1


def test_software_adapters_have_no_clock_that_falls(monkeypatch: pytest.MonkeyPatch, loads: list[ClockLoad]) -> None:
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "software")
    with wn.ml.create_context(new_profile("full").gpu) as context:
        assert profiled(context) == 1
    assert not loads
