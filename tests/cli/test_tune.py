"""`webnn-wgpu tune`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result

from examples.models import mlp
from webnn_wgpu import Tuning, tuner
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


def test_progress_without_a_terminal_is_a_line_for_each_operator(model: Path) -> None:
    lines = [line for line in call(model, "-f", "N=2").stderr.splitlines() if line.startswith("Measuring ")]
    counts = [line.split()[1] for line in lines]
    assert len(set(lines)) == len(lines)
    total = int(counts[0].partition("/")[2])
    assert counts[: total + 1] == [f"{done}/{total}" for done in range(total + 1)]


def test_a_file_beside_the_model(model: Path, tmp_path: Path) -> None:
    beside = tmp_path / "mlp.tuning.json"
    written = call(model, "-f", "N=2", "-o", beside).stdout
    assert written.startswith(f"written: {beside}\n")
    assert not (tmp_path / "user" / "tuning").exists()
    assert call("--show", model).stdout == written.replace("written: ", "")


def test_a_file_that_graphs_ignore_is_shown_with_the_reason(model: Path, tmp_path: Path) -> None:
    beside = tmp_path / "mlp.tuning.json"
    assert "ignored" not in call(model, "-f", "N=2", "-o", beside).stdout
    found = Tuning.load(beside)
    replace(found, templates="of yesterday").save(beside)
    assert "ignored    it was measured with another version of the kernels: tune again" in call("--show", model).stdout
    replace(found, device="another").save(beside)
    assert "ignored    it was measured with another device or driver: tune again" in call("--show", model).stdout


def test_what_makes_no_sense(model: Path, tmp_path: Path) -> None:
    assert "name a MODEL" in call(exit_code=2).output
    message = f"mlp.tuning.json does not exist: `webnn-wgpu tune {model} -o {tmp_path / 'mlp.tuning.json'}` writes it"
    assert message in call("--show", model, exit_code=1).output
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    assert f"{other} is no tuning: no tuning of schema 1" in call("--show", other, exit_code=1).output


def test_the_body_of_a_loop_whose_rounds_the_host_counts(model: Path, tmp_path: Path) -> None:
    del model  # for its few rounds
    text = "g (float[4] x, int64 n) => (float[4] y) { y = Loop(n, , x) <body = b (int64 i, bool c, float[4] v)"
    text += " => (bool d, float[4] w) { d = Identity(c) w = Softmax(v) }> }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "loop.onnx")
    call(tmp_path / "loop.onnx", "-i", "n=3", "--fallback", "host", "-o", tmp_path / "loop.tuning.json")
    assert [name.partition(":")[0] for name in Tuning.load(tmp_path / "loop.tuning.json").choices] == ["softmax"]


def test_a_model_without_graphs(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[4] y) { y = Identity(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "same.onnx")
    assert "tune: the model has no graph that runs on the device" in call(tmp_path / "same.onnx", exit_code=1).output


def test_what_cannot_be_kept_is_said(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be written" in call(model, "-o", tmp_path / "file" / "m.json", exit_code=2).output
    (tmp_path / "user").write_text("a file where a folder is needed", encoding="utf-8")
    assert "not kept" in call(model, "-f", "N=2").stdout
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    assert call(model, "-f", "N=2").stdout.startswith("not kept")
