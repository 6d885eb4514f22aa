"""`webnn-wgpu convert`, `validate` and `weights`, and the other commands on graph files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

import webnn_wgpu as wn
from examples.models import gpt, mlp
from webnn_wgpu.cli.app import app
from webnn_wgpu.formats.web.reading import read_web_model

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """webnn_graph "mlp" v2 {
  inputs  { x: f32[dyn("batch", 8), 2]; }
  consts  { w: f32[2, 300] @scalar(0.5); c: f32[300] @scalar(1); }
  nodes   { h = gemm(x, w, c="c"); y = relu(h); }
  outputs { y; }
}
"""


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    (tmp_path / "mlp.webnn").write_text(TEXT)
    return tmp_path / "mlp.webnn"


@pytest.fixture
def page(graph: Path, tmp_path: Path) -> Path:
    """The graph as a folder for browsers."""
    call("export", graph, "-o", tmp_path / "page", "-f", "batch=2", "--device", "reference", "--record", "software")
    return tmp_path / "page"


@pytest.mark.device
@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        ("run", ("-f", "batch=2"), r"y  float32\[2, 300\]"),
        ("info", (), r"operator sets +webnn 2"),
        ("check", (), r"verdict +runs on the device"),
        ("bench", ("-r", "2"), r"wall time"),
        ("profile", ("-r", "1"), r"GPU [\d.]+ ms"),
        ("kernels", ("--show", "h"), r"from +.*mlp\.webnn:4:17"),
        ("diff", ("--against", "reference", "--bisect"), r"all agree"),
        ("diff", ("--against", "onnxruntime"), r"close"),
        ("interpret", ("--kernel", "y"), r"nothing found"),
    ],
)
def test_commands_take_graph_files(command: str, options: tuple[str, ...], says: str, graph: Path) -> None:
    assert re.search(says, call(command, graph, *options).stdout)


@pytest.mark.device
@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        ("run", (), r"y  float32\[2, 300\]"),
        ("info", (), r"(?s)webnn-wgpu-model 1.*parameters +[\d.]+ \w+\n.*Kernels\n.*1 dispatch a run.*all met"),
        ("check", (), r"verdict +runs on the device"),
        ("bench", ("-r", "2"), r"wall time"),
        ("profile", ("-r", "1"), r"GPU [\d.]+ ms"),
        ("kernels", ("--show", "h"), r"operators +h, y"),
        ("interpret", ("--kernel", "h"), r"nothing found"),
    ],
)
def test_commands_take_folders(command: str, options: tuple[str, ...], says: str, page: Path) -> None:
    assert re.search(says, call(command, page, *options).stdout)


@pytest.mark.parametrize(
    ("command", "options", "exit_code", "says"),
    [
        ("view", (), 2, "is a folder: its graph has kernels and no operators. run, info, check, bench, "),
        ("diff", (), 2, "is a folder: its graph has kernels and no operators"),
        ("info", ("--weights", "FILE", "--device", "reference"), 2, "a folder has a compiled graph with its weights"),
        ("run", ("--device", "reference"), 1, "no WebGPU device"),
    ],
)
def test_what_folders_do_not_have_is_refused(
    command: str, options: tuple[str, ...], exit_code: int, says: str, page: Path, graph: Path
) -> None:
    given = [graph if option == "FILE" else option for option in options]
    assert says in " ".join(call(command, page, *given, exit_code=exit_code).stderr.split())


def test_validate_names_the_command_for_models(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08")
    assert "is no .webnn or .json file; `webnn-wgpu check` takes" in call("validate", tmp_path / "m.onnx", exit_code=2).stderr


def test_folders_without_a_device(page: Path) -> None:
    assert "problem  a compiled graph needs a WebGPU device" in call("info", page, "--device", "reference").stdout
    record = json.loads(call("info", page, "--device", "reference", "--json").stdout)
    assert (record["parameters"], record["memory"], record["dispatches"]) == (None, None, 1)
    call("check", page, "--device", "reference", exit_code=1)


@pytest.mark.device
def test_a_folder_that_lacks_a_feature_is_said_to(page: Path) -> None:
    content = json.loads((page / "model.json").read_text())
    content["requires"]["features"] = ["quantum"]
    (page / "model.json").write_text(json.dumps(content))
    found = call("check", page, "--device", "cpu", exit_code=1).stdout
    assert "the device lacks the feature 'quantum' that the model requires" in " ".join(found.split())


@pytest.mark.device
def test_pages_and_tunings_of_graph_files(graph: Path, tmp_path: Path) -> None:
    call("view", graph, "-o", tmp_path / "page.html")
    assert "mlp.webnn:4:17" in (tmp_path / "page.html").read_text()
    call("tune", graph, "-o", tmp_path / "mlp.tuning.json")
    assert json.loads((tmp_path / "mlp.tuning.json").read_text())["choices"]


@pytest.mark.parametrize("kind", ["webnn", "json", "onnx", "mjs", "js", "html", "py", "dot"])
def test_convert_writes_each_kind_twice_the_same(kind: str, graph: Path, tmp_path: Path) -> None:
    target = tmp_path / f"out.{kind}"
    written = call("convert", graph, target, "-f", "batch=2").stderr
    assert re.search(rf"^written: .*out\.{kind} \([\d.]+ \w+\)$", written, re.MULTILINE)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    call("convert", graph, target, "-f", "batch=2")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


@pytest.mark.parametrize("kind", ["webnn", "json", "onnx", "js", "html", "py", "dot"])
def test_convert_prints_each_kind(kind: str, graph: Path) -> None:
    marks = {
        "webnn": b"webnn_graph",
        "json": b"webnn-graph-json",
        "onnx": b"Gemm",
        "js": b"MLGraphBuilder",
        "html": b"<!doctype html>",
        "py": b"def build",
        "dot": b"digraph",
    }
    assert marks[kind] in call("convert", graph, "-", "--to", kind, "-f", "batch=1").stdout_bytes


def test_convert_of_onnx_models(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    call("convert", tmp_path / "mlp.onnx", tmp_path / "mlp.webnn")
    assert "gets the size 1; -f N=SIZE or `override_dims` sets another, and --dynamic N=MAX or `dynamic` keeps" in caplog.text
    call("convert", tmp_path / "mlp.onnx", tmp_path / "mlp.webnn", "--dynamic", "N=16")
    text = (tmp_path / "mlp.webnn").read_text()
    assert 'x: f32[dyn("N", 16), 4];' in text
    x = np.random.default_rng(0).random((5, 4), np.float32)
    with wn.ml.create_context(backend="reference") as context:
        first, second = (wn.load(tmp_path / f"mlp.{kind}", context).run({"x": x})["y"] for kind in ("onnx", "webnn"))
    np.testing.assert_array_equal(first, second)


def test_export_writes_a_page_and_a_module(graph: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    written = call("export", graph, "-o", page, "-f", "batch=2", "--device", "reference", "--record", "software").stderr
    assert "input without a value: x: float32[2, 2], random" in written
    assert f"python -m http.server -d {page}" in written
    model = read_web_model(page)
    assert (model.name, model.inputs["x"].shape, model.page) == ("mlp", (2, 2), None)
    with wn.ml.create_context(backend="reference") as context:
        wanted = wn.load(graph, context, override_dims={"batch": 2})
        place, data = model.sample, (page / "sample.bin").read_bytes()
        assert place is not None
        x = np.frombuffer(data, np.float32, 4, place.inputs["x"].offset).reshape(2, 2)
        y = np.frombuffer(data, np.float32, 600, place.outputs["y"].offset).reshape(2, 300)
        np.testing.assert_array_equal(wanted.run({"x": x})["y"], y)
    call("export", graph, "--to", "webnn-js", "-o", tmp_path / "g.mjs", "-f", "batch=2")
    assert "export function missing" in (tmp_path / "g.mjs").read_text()


@pytest.mark.device
def test_export_writes_a_decoder(tmp_path: Path) -> None:
    onnx.save(gpt(), tmp_path / "gpt.onnx")
    call("export", tmp_path / "gpt.onnx", "-o", tmp_path / "page", "--kv-cache", 8)
    model = read_web_model(tmp_path / "page")
    assert model.steps is not None
    assert (model.steps.rows, model.steps.tokens, model.inputs["input_ids"].shape) == (8, "input_ids", (1, 1))
    assert model.page is not None
    assert model.page["kind"] == "tokens"


@pytest.mark.parametrize(
    ("options", "exit_code", "says"),
    [
        (("--to", "webnn-js"), 2, "a JavaScript module has the suffix .mjs or .js"),
        (("--record", "nowhere"), 1, "nowhere is no record of capabilities"),
        (("--page", "picture"), 1, "a picture must be an input of three channels"),
        (("--page", "sentences"), 2, "sentences need a tokenizer.json"),
        (("--kv-cache", "8"), 2, "only decoders in ONNX files have a KV cache"),
    ],
)
def test_export_refuses(options: tuple[str, ...], exit_code: int, says: str, graph: Path, tmp_path: Path) -> None:
    arguments = ("export", graph, "-o", tmp_path / "out", "-f", "batch=1", "--device", "reference", *options)
    assert says in call(*arguments, exit_code=exit_code).stderr
    assert not (tmp_path / "out" / "model.json").exists()


def test_convert_for_pywebnn(graph: Path) -> None:
    assert "c=1" in call("convert", graph, "-", "--to", "webnn", "--operand-options", "indices").stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("out.tflite",), 2, "unknown suffix '.tflite'"),
        (("-",), 2, "name a kind of file with --to"),
        (("out.webnn", "--to", "json"), 2, "--to is for OUT = -"),
        (("out.webnn", "--dynamic", "batch"), 2, "'batch' is not NAME=MAX or all"),
        (("out.webnn", "--dynamic", "rows=3"), 1, "the model has no such dimension; got 'rows'; allowed: batch"),
        (("out.html", "--opset", "18"), 1, "a html file has no option 'opset'"),
    ],
)
def test_what_convert_refuses(arguments: tuple[str, ...], exit_code: int, says: str, graph: Path) -> None:
    assert says in call("convert", graph, *arguments, exit_code=exit_code).output


def test_validate_lists_all_faults(graph: Path, tmp_path: Path) -> None:
    assert call("validate", graph).stdout == "OK mlp: 1 input, 1 output, 2 operators, 2 constants (3.5 KiB)\n"
    broken = tmp_path / "broken.webnn"
    broken.write_text(TEXT.replace("relu(h)", "relux(h); z = add(h, nothing); k = neg(z)").replace("gemm(x, w", "gemm(x, x"))
    lines = call("validate", broken, exit_code=1).stdout.splitlines()
    # The operators that use the result of `gemm` are not reported.
    assert [line.removeprefix(f"{broken}:").split(": ")[0] for line in lines] == ["4:17", "4:40"]
    broken.write_text(TEXT.replace("relu(h)", "relux(h); z = add(h, nothing); k = neg(z)").replace("c: f32", "c: f33"))
    assert "no such data type" in call("validate", broken, exit_code=1).stdout
    broken.write_text(TEXT.replace("relu(h)", "relux(h); z = add(h, nothing); k = neg(z); m = add(h, h, 1)"))
    found = json.loads(call("validate", broken, "--format", "json", exit_code=1).stdout)
    assert [fault["rule"] for fault in found["faults"]] == [
        "unknown operator 'relux'",
        "no operand 'nothing' is defined here",
        "add takes no further argument",
    ]
    with pytest.raises(wn.MLTypeError) as refused:
        wn.load(broken, wn.ml.create_context(backend="reference"), override_dims={"batch": 1})
    assert len(getattr(refused.value, "faults", ())) == 3


def test_other_json_files_are_refused_with_what_they_are(tmp_path: Path) -> None:
    for content, says in (
        ({"format": "wg-weights-manifest", "tensors": {}}, "It is a manifest of weights."),
        ({"batch": 1}, "It is a file of sizes of dimensions."),
        ({"choices": {}}, "It is a file of measured kernel variants."),
        ({"dataType": "float32", "shape": [1]}, "It is a description of a tensor."),
    ):
        (tmp_path / "other.json").write_text(json.dumps(content))
        assert says in call("validate", tmp_path / "other.json", exit_code=1).stdout


def test_weights_are_moved_converted_packed_and_listed(graph: Path, tmp_path: Path) -> None:
    text = TEXT.replace("@scalar(1)", f"@bytes([{', '.join(map(str, np.arange(300, dtype=np.float32).tobytes()))}])")
    graph.write_text(text)
    expected = wn.convert(graph, tmp_path / "inline.webnn", weights="inline")[0].read_bytes()
    call("weights", "extract", graph, tmp_path / "out.webnn")
    assert {p.name for p in tmp_path.glob("out.*")} == {"out.webnn", "out.weights", "out.manifest.json"}
    listed = call("weights", "list", tmp_path / "out.weights").stdout
    assert re.search(r"c +float32 +\[300\] +8\.\.1208 +0 +299 +0", listed)
    assert call("weights", "list", tmp_path / "out.manifest.json").stdout == listed
    call("weights", "convert", tmp_path / "out.weights", tmp_path / "out.safetensors")
    call("weights", "unpack", tmp_path / "out.safetensors", tmp_path / "folder")
    assert {p.name for p in (tmp_path / "folder").iterdir()} == {"c.bin", "c.meta.json"}
    call("weights", "pack", tmp_path / "folder", tmp_path / "again.weights")
    assert (tmp_path / "again.weights").read_bytes() == (tmp_path / "out.weights").read_bytes()
    (tmp_path / "out.safetensors").unlink()
    call("weights", "inline", tmp_path / "out.webnn", tmp_path / "back.webnn")
    assert wn.convert(tmp_path / "back.webnn", tmp_path / "inline.webnn", weights="inline")[0].read_bytes() == expected


def test_files_outside_a_folder_of_tensors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(4))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.meta.json").write_text('{"dataType": "float32", "shape": [1]}')
    (folder / "a.bin").symlink_to(tmp_path / "secret.bin")
    assert "the file is outside the folder" in call("weights", "pack", folder, tmp_path / "o.weights", exit_code=1).output
    (folder / "a.bin").unlink()
    (folder / "a.bin").write_bytes(bytes(3))
    assert (
        "wrong number of bytes; got 3 bytes; allowed: 4 bytes"
        in call("weights", "pack", folder, tmp_path / "o.weights", exit_code=1).output
    )
