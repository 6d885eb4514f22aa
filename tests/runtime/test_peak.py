from __future__ import annotations

import json
from pathlib import Path

import pytest

import webnn_wgpu as wn
from webnn_wgpu.core import cache
from webnn_wgpu.runtime import peak
from webnn_wgpu.runtime.device import Device


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    return tmp_path


def test_a_peak_is_kept_for_other_processes(profile_device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = peak.measured_peak(profile_device, again=True)
    assert found.flops > 1e6
    assert found.bytes_per_second > 1e6
    assert found.balance == pytest.approx(found.flops / found.bytes_per_second)
    assert found.timestamps is ("timestamp-query" in profile_device.caps.features)
    profile_device.shared.pop("peak")
    monkeypatch.setattr(peak, "_measured", lambda device: pytest.fail("it was measured already"))
    assert peak.measured_peak(profile_device) == found
    assert peak.measured_peak(profile_device) is profile_device.shared["peak"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "{}", '{"flops": 1}', '{"flops": "a", "bytes_per_second": 1, "timestamps": true}']
    + [json.dumps({"flops": flops, "bytes_per_second": 1.0, "timestamps": True}) for flops in (0, -1, float("nan"))],
)
def test_a_record_that_makes_no_sense_is_measured_anew(text: str) -> None:
    assert peak._parsed(text) is None


def test_the_reference_has_no_peak() -> None:
    with wn.ml.create_context(backend="reference") as context, pytest.raises(wn.NotSupportedError, match="no WebGPU device"):
        wn.measured_peak(context)


def test_text() -> None:
    assert str(peak.Peak(2.5e9, 1e9, True)) == "2.5 GFLOP/s, 1.0 GB/s"
    assert str(peak.Peak(2.5e9, 1e9, False)) == "2.5 GFLOP/s, 1.0 GB/s, by the host's clock"
