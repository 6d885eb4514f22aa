"""`webnn-wgpu tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from examples.models import mlp
from webnn_wgpu import Tuning
from webnn_wgpu.api import tuning as tuner
from webnn_wgpu.cli.app import app
from webnn_wgpu.core import cache


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["tune", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "user")
    for name in ("_FEWEST_ROUNDS", "_MOST_ROUNDS", "_FINAL_ROUNDS"):
        monkeypatch.setattr(tuner, name, 1)
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


def test_what_is_measured_is_kept_and_shown(model: Path, tmp_path: Path) -> None:
    written = call(model, "-f", "N=2").stdout
    (file,) = (tmp_path / "user" / "tuning").iterdir()
    assert written.startswith(f"written: {file}\n")
    found = Tuning.load(file)
    for operator, measured in found.choices.items():
        assert operator in written
        assert f"{measured.chosen} *" in written
    shown = call("--show").stdout
    assert str(file) in shown
    assert all(operator in shown for operator in found.choices)
    assert call("--show", file).stdout.partition("\n")[2] == written.partition("\n")[2]


def test_a_file_beside_the_model(model: Path, tmp_path: Path) -> None:
    beside = tmp_path / "mlp.tuning.json"
    written = call(model, "-f", "N=2", "-o", beside).stdout
    assert written.startswith(f"written: {beside}\n")
    assert not (tmp_path / "user" / "tuning").exists()
    assert call("--show", model).stdout == written.replace("written: ", "")


def test_what_makes_no_sense(model: Path, tmp_path: Path) -> None:
    assert "name a MODEL" in call(exit_code=2).output
    assert "mlp.tuning.json" in call("--show", model, exit_code=1).output
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    assert f"{other} is no tuning: no tuning of schema 1" in call("--show", other, exit_code=1).output


def test_what_cannot_be_kept_is_said(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be written" in call(model, "-o", tmp_path / "file" / "m.json", exit_code=2).output
    (tmp_path / "user").write_text("a file where a folder is needed", encoding="utf-8")
    assert "not kept" in call(model, "-f", "N=2").stdout
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    assert call(model, "-f", "N=2").stdout.startswith("not kept")
