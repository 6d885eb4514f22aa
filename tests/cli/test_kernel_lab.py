"""`webnn-wgpu kernel-lab`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx
import pytest
from click.testing import CliRunner, Result

from webnn_wgpu.cli import kernel_lab
from webnn_wgpu.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "g (float[4] x) => (float[4] y) { a = Neg(x) y = Softmax(a) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    parsed = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {TEXT}')
    for node in parsed.graph.node:
        node.name = node.op_type.lower()
    onnx.save(parsed, tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["kernel-lab", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


def test_the_kernels_own_source_is_written_and_is_right(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.wgsl"
    lines = call(model, "softmax", "--file", file, "--once").stdout.splitlines()
    assert lines[0] == f"written: {file}"
    assert lines[1].startswith("softmax: ")
    assert lines[2] == "  float32[4]: all 4 elements are the same"
    assert "fn main(" in file.read_text(encoding="utf-8")


def test_what_is_wrong_and_what_dbg_shows(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.wgsl"
    call(model, "neg", "--file", file, "--once")
    wgsl = file.read_text(encoding="utf-8")
    file.write_text(wgsl.replace("return y0;", 'dbg(x0, "x0");\n    return y0 + 1.0;'), encoding="utf-8")
    lines = call(model, "neg", "-i", "x=1,2,3,4", "--file", file, "--once", exit_code=1).stdout.splitlines()
    assert lines[1].startswith("  float32[4]: 4 of 4 elements differ from the original's, by at most 1, ")
    assert lines[2] == "4 values"
    assert [line.split()[3:5] for line in lines[4:]] == [["x0", f"{n}.0"] for n in (1, 2, 3, 4)]


def test_what_does_not_compile_is_told_with_its_line(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.wgsl"
    file.write_text("fn main() {\n    foo();\n}", encoding="utf-8")
    text = call(model, "neg", "--file", file, "--once", exit_code=1).stdout
    assert text.startswith(f"try_kernel('neg'): the source does not compile: {file}:2:5: no definition in scope")
    assert "made at" not in text  # by a command, and no program


def test_a_file_is_tried_whenever_it_is_saved(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.wgsl"
    naps = 0

    def sleep(_seconds: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 1:
            file.write_text("fn main( {", encoding="utf-8")
        elif naps > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(kernel_lab, "sleep", sleep)
    text = call(model, "neg", "--file", file, exit_code=1).stdout
    assert text.count("all 4 elements are the same") == 1
    assert text.count("own.wgsl:1:10: expected identifier") == 1
    assert text.index("all 4 elements") < text.index("own.wgsl:1:10")


def test_names_that_mean_no_kernel(model: Path) -> None:
    assert "'nobody' is the name of no kernel" in call(model, "nobody", "--once", exit_code=2).output
