"""`webnn-wgpu view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
from click.testing import CliRunner, Result

from examples.models import mlp
from webnn_wgpu.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["view", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


def test_a_page_beside_one_and_a_graph_for_graphviz(model: Path, tmp_path: Path) -> None:
    page, dot = tmp_path / "page.html", tmp_path / "graph.dot"
    result = call(model, "-o", page, "--profile", "--diff", "--export-dot", dot)
    assert result.stdout == f"written: {page}\nwritten: {dot}\n"
    text = page.read_text(encoding="utf-8")
    assert "<title>mlp.onnx</title>" in text
    assert '"profile": ""' not in text
    assert "all agree" in text
    assert dot.read_text(encoding="utf-8").startswith("digraph webnn {")


def test_the_page_has_the_models_name(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(model).stdout == "written: mlp.view.html\n"
    assert '"profile": ""' in (tmp_path / "mlp.view.html").read_text(encoding="utf-8")


def test_graphs_with_the_host_between_them(tmp_path: Path) -> None:
    text = "g (float[4] x) => (int64[1, N] y) { a = Relu(x) b = NonZero(a) y = Add(b, b) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "host.onnx")
    page, dot = tmp_path / "page.html", tmp_path / "graph.dot"
    call(tmp_path / "host.onnx", "-i", "x=1,0,2,0", "--fallback", "host", "-o", page, "--export-dot", dot)
    assert sorted(path.name for path in tmp_path.glob("*.dot")) == ["graph0.dot", "graph1.dot"]
    assert '["NonZero"' in page.read_text(encoding="utf-8")


def test_the_body_of_a_loop_whose_rounds_the_host_counts(tmp_path: Path) -> None:
    text = "g (float[4] x, int64 n) => (float[4] y) { y = Loop(n, , x) <body = b (int64 i, bool c, float[4] v)"
    text += " => (bool d, float[4] w) { d = Identity(c) w = Sin(v) }> }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "loop.onnx")
    page, dot = tmp_path / "page.html", tmp_path / "graph.dot"
    call(tmp_path / "loop.onnx", "-i", "n=3", "--fallback", "host", "-o", page, "--profile", "--diff", "--export-dot", dot)
    text = page.read_text(encoding="utf-8")
    assert "all agree" in text
    assert '["Loop"' in text
    assert dot.read_text(encoding="utf-8").startswith("digraph webnn {")


def test_a_model_without_graphs(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[4] y) { y = Identity(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "same.onnx")
    message = "same.onnx has no graph that runs on the device"
    assert message in call(tmp_path / "same.onnx", "-o", tmp_path / "page.html", exit_code=1).output


def test_a_page_that_cannot_be_written(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "cannot be written" in call(model, "-o", tmp_path / "file" / "page.html", exit_code=2).output
