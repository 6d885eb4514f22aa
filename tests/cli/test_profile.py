"""`webnn-wgpu profile`."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from click.testing import CliRunner, Result

import webnn_wgpu as wn
from examples.models import mlp
from webnn_wgpu.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["profile", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def model(tmp_path: Path, context: wn.MLContext) -> Path:
    if "timestamp-query" not in context.caps.features:
        pytest.skip(f"{context.description} takes no timestamps")
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


def test_all_that_can_be_written(model: Path, tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("report.html", "trace.json", "profile.json", "plots")]
    result = call(model, "-r", 2, "--html", names[0], "--trace", names[1], "--json", names[2], "--plots", names[3])
    lines = result.stdout.splitlines()
    assert lines[0].startswith("GPU ")
    plots = [names[3] / f"{name}.svg" for name in ("roofline", "timeline", "memory")]
    assert [line for line in lines if line.startswith("written")] == [f"written: {path}" for path in (*names[:3], *plots)]
    assert all(path.stat().st_size for path in (*names[:3], *plots))
    record = json.loads(names[2].read_text(encoding="utf-8"))
    assert (record["runs"], len(record["kernels"])) == (2, 2)
    compared = call(model, "-r", 1, "--compare", names[2]).stdout
    assert all(kernel["name"] in compared for kernel in record["kernels"])
    assert "\n1 of 2 kernels; --top 2 prints all\n" in call(model, "-r", 1, "--top", 1).stdout
    # The caption may be wider than the table, and goes on in the next line then.
    assert re.match(r"GPU [^│┃]*\btimes\b", compared)


def test_the_slowest_alone(model: Path) -> None:
    table = [line for line in call(model, "--top", 1).stdout.splitlines()[1:] if "matmul" in line or "gemm" in line]
    assert len(table) == 1


def test_what_cannot_be_compared_with(model: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert "the text is no profile" in call(model, "--compare", tmp_path / "other.json", exit_code=1).output
    (tmp_path / "other.json").write_bytes(b"\xff\xfe")
    assert "the text is no profile" in call(model, "--compare", tmp_path / "other.json", exit_code=1).output


def test_plots_without_matplotlib_are_refused_before_the_run(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call(model, "--plots", tmp_path / "plots", exit_code=1)
    assert "pip install 'webnn-wgpu[viz]'" in result.output
    assert "GPU " not in result.output
    assert not (tmp_path / "plots").exists()
