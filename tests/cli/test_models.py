"""`webnn-wgpu run`, `info`, `check`, `bench` and `diff`, on small models."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

import webnn_wgpu as wn
from examples.models import bert, mlp, mobilenet_v2
from tests.programs import Programs
from webnn_wgpu.cli.app import app
from webnn_wgpu.cli.diff import Difference, difference
from webnn_wgpu.cli.models import open_context
from webnn_wgpu.cli.run import classes
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import PASSES


def call(*arguments: Any, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == exit_code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    onnx.save(mlp(), folder / "mlp.onnx")
    onnx.save(bert(layers=1), folder / "bert.onnx")
    text = "g (float[4] x) => (int64[1, N] y) { y = NonZero(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), folder / "nonzero.onnx")
    text = "g (float[4] x) => (float[4] y) { y = com.example.Strange(x) }"
    onnx.save(
        onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]> {text}'), folder / "strange.onnx"
    )
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return folder / "mlp.onnx"


# run --------------------------------------------------------------------------------------------------------------


def test_run_makes_inputs_up(model: Path) -> None:
    written = call("run", model).stdout
    assert "Inputs without a value\n  x  float32[1, 4], random\n" in written
    assert re.search(r"nodes +4 nodes on the device, 0 on the host, 0 evaluated beforehand", written)
    assert re.search(r"y +float32\[1, 3\]  (-?[\d.e-]+, ){2}-?[\d.e-]+\n", written)
    assert "float32[6, 4]" in call("run", model, "--override-dim", "N=6").stdout
    assert "float32[2, 4]" in call("run", model, "--input-shape", "x=2,4").stdout


@pytest.mark.parametrize("form", ["npy", "npz", "numbers", "list", "nameless"])
def test_run_on_inputs_of_ones_own(model: Path, tmp_path: Path, form: str) -> None:
    x = np.float32([[1, -2, 0.5, 3]])
    np.save(tmp_path / "x.npy", x.astype(np.float64))  # the type is the input's where nothing is lost but precision
    np.savez(tmp_path / "x.npz", x=x, other=x)
    given = {
        "npy": f"x={tmp_path / 'x.npy'}",
        "npz": f"x={tmp_path / 'x.npz'}",
        "numbers": "x=1,-2,.5,3e0",
        "list": "x=[[1, -2, 0.5, 3]]",
        "nameless": "1 -2 0.5 3",
    }[form]
    written = call("run", model, "-i", given, "-o", tmp_path / "out").stdout
    assert "Inputs without a value" not in written
    assert f"written: {tmp_path / 'out' / 'y.npy'}" in written
    with wn.load(model) as loaded:
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), loaded.run({"x": x})["y"])


def test_an_archive_without_a_name_is_for_all_inputs_that_it_names(tmp_path: Path) -> None:
    text = "g (float[2] x, float[2] z) => (float[2] y) { y = Sub(x, z) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    np.savez(tmp_path / "feeds.npz", x=np.float32([5, 6]), z=np.float32([1, 3]))
    assert "Inputs without a value" not in call("run", tmp_path / "m.onnx", "-i", tmp_path / "feeds.npz", "-o", tmp_path).stdout
    assert np.load(tmp_path / "y.npy").tolist() == [4, 3]
    call("run", tmp_path / "m.onnx", "-i", tmp_path / "feeds.npz", "-i", "z=1,1", "-o", tmp_path)
    assert np.load(tmp_path / "y.npy").tolist() == [4, 5]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("z=1", "no input is called 'z'; the inputs are: x"),
        ("x=absent.npy", "no such file"),
        ("x=1,2,3", "3 numbers do not fill x: float32[N, 4]"),
        ("x=1", "1 number does not fill x: float32[N, 4]; one number fills it if its shape is fixed: -f N=SIZE"),
        ("x=hello", "'hello' does not fit x: float32[N, 4], which takes a .npy, .npz or picture file, or numbers"),
    ],
)
def test_inputs_that_make_no_sense(model: Path, given: str, message: str) -> None:
    assert message in call("run", model, "-i", given, exit_code=2).stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["x=1,2,3,4", "x=5,6,7,8"], "'1,2,3,4' and '5,6,7,8' are both for input 'x'"),
        (["1,2,3,4", "5,6,7,8"], "are both for the first input; -i NAME=VALUE names another"),
        (["1,2,3,4", "x=5,6,7,8"], "'1,2,3,4' and '5,6,7,8' are both for input 'x'"),
    ],
)
def test_an_input_has_one_value(model: Path, given: list[str], message: str) -> None:
    assert message in call("run", model, "-i", given[0], "-i", given[1], exit_code=2).stderr


def test_numbers_for_an_input_of_fixed_shape(tmp_path: Path) -> None:
    text = "g (float[1, 4] x) => (float[1, 4] y) { y = Softmax(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    message = "3 numbers do not fill x: float32[1, 4]; give 4, or one for all elements"
    assert message in call("run", tmp_path / "m.onnx", "-i", "1,2,3", exit_code=2).stderr
    for options in ((), ("--input-shape", "x=1,4")):
        written = call("run", tmp_path / "m.onnx", "-i", "x=3", "--top", 1, *options).stdout
        assert "float32[1, 4]  0.25, 0.25, 0.25, 0.25" in written
        assert "Classes by y\n" in written


def test_an_array_of_another_rank(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    found = call("run", model, "-i", tmp_path / "x.npy", exit_code=2).stderr
    assert "Invalid value for -i: an array of shape [4] does not fit x: float32[N, 4]\n" in found


def test_an_input_without_its_option(model: Path) -> None:
    found = call("run", model, "cat.jpg", exit_code=2).stderr
    assert "unexpected extra argument (cat.jpg). An input follows -i: -i FILE, or -i NAME=FILE" in found


def test_a_picture_for_an_input_that_takes_none(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="the extra `image` is optional").new("RGB", (4, 4)).save(tmp_path / "cat.png")
    found = call("run", model, "-i", tmp_path / "cat.png", exit_code=2).stderr
    assert "cat.png does not fit x: float32[N, 4]: an input for a picture must have rank 3 or 4" in found


def test_too_few_labels(model: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert "labels.txt names 2 of 3 classes" in call("run", model, "--labels", tmp_path / "labels.txt").stdout


def test_too_many_labels(model: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\nfox\n\n")
    written = call("run", model, "--labels", tmp_path / "labels.txt").stdout
    assert "labels.txt names 4 classes, but the output has 3: names may be shifted" in written
    (tmp_path / "labels.txt").write_text("cat\ndog\nfox\n\n")
    assert "labels.txt" not in call("run", model, "--labels", tmp_path / "labels.txt").stdout


def test_outputs_without_scores_have_no_classes(tmp_path: Path) -> None:
    text = """g (float[1, 4] x) => (float[1, 4] y, float[1, 1] mean, float all, bool[1, 4] zero)
    { y = Softmax(x) mean = ReduceMean(x, one) all = ReduceMean<keepdims = 0>(x) zero = Equal(x, x) }"""
    text = text.replace("zero)\n", "zero) <int64[1] one = {1}>\n")
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    assert re.findall("Classes by .*", call("run", tmp_path / "m.onnx", "--top", 2).stdout) == ["Classes by y"]
    text = "g (float[1, 4] x) => (int64[1] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    assert "no output has scores of classes" in call("run", tmp_path / "m.onnx", "--top", 2).stdout


def test_classes_without_labels_are_numbers(model: Path) -> None:
    written = call("run", model, "--top", 2).stdout
    assert len(re.findall(r"^  0\.\d{4}  class [012]$", written, re.MULTILINE)) == 2
    assert "names" not in written


def test_integers_are_no_scores_of_classes(tmp_path: Path) -> None:
    text = "g (float[1, 4] x) => (float[1, 4] y, int64[1, 1] best) { y = Neg(x) best = ArgMax<axis = 1>(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    written = call("run", tmp_path / "m.onnx", "--top", 1).stdout
    assert "Classes by y, after softmax\n" in written
    assert "Classes by best" not in written


@pytest.mark.parametrize("content", ["text", "nothing", "objects", "a broken archive", "an archive of texts"])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_files_that_hold_no_array(model: Path, tmp_path: Path, content: str, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    if content == "objects":
        with path.open("wb") as file:
            np.save(file, np.array([None, "a"], object), allow_pickle=True)
    elif content == "an archive of texts":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x", "text")
    else:
        path.write_bytes({"text": b"1, 2, 3, 4\n", "nothing": b"", "a broken archive": b"PK\x03\x04 and no more"}[content])
    lines = call("run", model, "-i", f"x={path}", exit_code=2).stderr.splitlines()
    assert lines[-1].startswith(f"Error: Invalid value for -i: {path} holds no array")


def test_integers_are_what_was_written(tmp_path: Path) -> None:
    text = "g (int64[4] x) => (int64[4] y) { y = Identity(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    call("run", tmp_path / "m.onnx", "-i", "x=9007199254740993,-9223372036854775808,2.0,1e3", "-o", tmp_path)
    assert np.load(tmp_path / "y.npy").tolist() == [2**53 + 1, -(2**63), 2, 1000]
    for given, message in (
        ("1.5,1,2,3", "1.5 is no integer, which x: int64[4] takes"),
        ("nan", "nan is no integer"),
        ("-inf", "-inf is no integer"),
        ("9223372036854775808", "9223372036854775808 is out of the range of x: int64[4]"),
        ("1e999999", "1e999999 is out of the range"),
        (f"1e{10**20}", f"1e{10**20} is no integer"),
    ):
        assert message in call("run", tmp_path / "m.onnx", "-i", f"x={given}", exit_code=2).stderr


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run", "--seed=-1"),
        ("run", "--top=-1"),
        ("diff", "--rtol=-1"),
        ("diff", "--atol=nan"),
        ("bench", "--seconds=nan"),
        ("bench", "--run_delay=inf"),
    ],
)
def test_numbers_that_make_no_sense(model: Path, command: str, option: str) -> None:
    stderr = call(command, model, option, exit_code=2).stderr
    assert "Invalid value for " in stderr
    assert f"'{option.partition('=')[0]}'" in stderr


def test_labels_that_are_no_text(model: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes("é".encode("latin-1"))
    assert "labels.txt is not UTF-8" in call("run", model, "--labels", tmp_path / "labels.txt", exit_code=2).stderr


@pytest.mark.parametrize(
    "command", ["profile --json", "profile --html", "profile --trace", "view -o", "view --export-dot", "tune -o"]
)
def test_only_what_says_so_prints_to_a_dash(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert "this is not printed: name a file" in call(*command.split(), "-", model, exit_code=2).stderr
    assert not list(tmp_path.iterdir())


def test_run_on_text(folder: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `text` is optional")
    assert "--tokenizer" in call("run", folder / "bert.onnx", "-i", "input_ids=a cat", exit_code=2).stderr
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 5, "cat": 7, "?": 0}, unk_token="?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    arguments = ("run", folder / "bert.onnx", "--tokenizer", tmp_path / "tokenizer.json", "--fallback", "host")
    call(*arguments, "-i", "input_ids=a cat cat", "-o", tmp_path)
    with wn.load(folder / "bert.onnx", fallback="host") as loaded:
        expected = loaded.run({"input_ids": [[5, 7, 7]], "attention_mask": [[1, 1, 1]]})["embedding"]
    np.testing.assert_array_equal(np.load(tmp_path / "embedding.npy"), expected)
    (tmp_path / "tokenizer.json").write_text("", encoding="utf-8")
    assert "tokenizer.json is no tokenizer of the package" in call(*arguments, "-i", "input_ids=a", exit_code=2).stderr


def test_run_classifies_pictures(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="the extra `image` is optional")
    onnx.save(mobilenet_v2(classes=6, size=32), tmp_path / "net.onnx")
    image.fromarray(np.arange(48 * 64 * 3, dtype=np.uint32).astype(np.uint8).reshape(48, 64, 3)).save(tmp_path / "a.png")
    (tmp_path / "labels.txt").write_text("\n".join(["ant", "bee", "cat", "dog", "eel", "fox"]))
    written = call(
        "run",
        tmp_path / "net.onnx",
        "-i",
        f"image={tmp_path / 'a.png'}",
        "--labels",
        tmp_path / "labels.txt",
        "--fallback",
        "host",
    ).stdout
    rows = re.findall(r"^  (0\.\d{4}|1\.0000)  (\w{3}) \((\d)\)$", written, re.MULTILINE)
    assert len(rows) == 5
    assert [float(r[0]) for r in rows] == sorted((float(r[0]) for r in rows), reverse=True)
    assert all("abcdef"[int(number)] == name[0] for _, name, number in rows)


def test_classes_of_probabilities_and_scores() -> None:
    assert classes(np.float32([0.25, 0.75]), {0: "a", 1: "b"}, 5) == ([("0.7500", "b (1)"), ("0.2500", "a (0)")], False)
    assert classes(np.float32([0, np.log(3)]), {}, 1) == ([("0.7500", "class 1")], True)


def test_each_row_of_a_batch_has_its_own_classes(model: Path) -> None:
    written = call("run", model, "-i", "x=1,0,0,0,0,0,0,1", "--top", 1).stdout
    assert re.search(r"^Classes by y\[0\], after softmax\n  0\.\d{4}  class \d\nClasses by y\[1\]", written, re.MULTILINE)


def test_an_output_of_many_rows_shows_the_classes_of_a_few(model: Path) -> None:
    written = call("run", model, "-f", "N=9", "--top", 1).stdout
    assert written.count("Classes by y[") == 8
    assert written.endswith("y: the first 8 of 9 rows of 3 classes; -o FOLDER writes all scores\n")


def test_a_terminal_shows_how_far_the_loading_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take a pipe for a terminal
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", call("run", folder / "bert.onnx", "--fallback", "host").stderr)
    assert re.search(r"Loading bert.onnx \([\d.]+ MB\)", shown)
    assert re.search(r"Uploading weights \S+ ([\d.]+)/\1 MB", shown)


def test_run_with_a_profile(model: Path) -> None:
    written = call("run", model, "--profile").stdout
    assert re.search(r"^run +[\d.]+ ms$", written, re.MULTILINE)
    assert re.search(
        r"^GPU +by the device's timestamps, in another run with a pass per kernel +[\d.]+ ms$", written, re.MULTILINE
    )
    assert re.search(r"^    kernel +matmul\S*: gemm_0, relu_1 +[\d.]+ ms$", written, re.MULTILINE)


def test_what_goes_wrong_is_said_in_a_line(folder: Path, tmp_path: Path) -> None:
    assert "has no model.json: `webnn-wgpu export` writes one" in call("run", tmp_path, exit_code=1).stderr
    assert "the folder . has no model.json" in call("run", ".", exit_code=1).stderr
    (tmp_path / "broken.onnx").write_bytes(b"\x00\x01")
    assert call("run", tmp_path / "broken.onnx", exit_code=1).stderr.splitlines()[-1].startswith("Error: broken.onnx")
    assert "NonZero" in call("run", folder / "nonzero.onnx", "--fallback", "error", exit_code=1).stderr
    message = "onnx has no operator com.example.Strange. A function of the model (`model.functions`) can define it"
    for command in ("run", "check", "info"):
        written = call(command, folder / "strange.onnx", exit_code=0 if command == "info" else 1)
        assert message in written.output, command


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """A model whose weights fit a picture of 4 x 4 alone, although its input has symbolic sizes."""
    weights = "float[16, 2] w = {" + ", ".join(["1"] * 32) + "}"
    text = f"g (float[batch, h, w] x) => (float[batch, 2] y) <{weights}> {{ f = Flatten(x) y = MatMul(f, w) }}"
    text = text.replace("h, w]", "h, width]")
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "flat.onnx")
    return tmp_path / "flat.onnx"


def test_shapes_that_do_not_fit_are_named_with_the_default_sizes(flat: Path) -> None:
    sizes = "batch = 1, h = 224, width = 224 by default; -f NAME=SIZE sets others"
    for command in ("run", "bench", "profile"):
        error = call(command, flat, exit_code=1).stderr
        assert "Incompatible shapes for matmul" in error
        assert "allowed: b with 50176 rows" in error
        assert error.endswith(f"\nSizes: {sizes}\n")
    assert f"  sizes    {sizes}\n" in call("check", flat, exit_code=1).stdout
    assert "sizes    batch = 1 by default" in call("check", flat, "-f", "h=4", "-f", "width=4").stdout
    assert "sizes" not in call("check", flat, "--input-shape", "x=1,4,4").stdout
    assert "Sizes" not in call("run", flat, "--input-shape", "x=1,4,5", exit_code=1).stderr


def test_files_cannot_have_nodes_of_the_host(folder: Path, tmp_path: Path) -> None:
    for command in (
        ["convert", folder / "nonzero.onnx", tmp_path / "m.webnn"],
        ["export", folder / "nonzero.onnx", "-o", tmp_path],
    ):
        error = call(*command, exit_code=1).stderr
        assert "A file has nodes of the device alone: cut the model before this node" in error
        assert "fallback" not in error


@pytest.mark.parametrize("command", ["run", "info", "check", "bench", "diff"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("-f N=-3", "'N=-3' is not NAME=SIZE"),
        ("-f N=many", "'N=many' is not NAME=SIZE"),
        ("-f M=3", "no symbolic dimension is called 'M'; there are N"),
        ("--input-shape z=3", "no input is called 'z'; there are x"),
        ("--input-shape x=3,-4", "'x=3,-4' is not NAME=SIZES"),
    ],
)
def test_sizes_that_make_no_sense(model: Path, command: str, option: str, message: str) -> None:
    assert message in call(command, model, *option.split(), exit_code=2).stderr


@pytest.mark.parametrize("command", ["run", "info", "check", "bench", "diff"])
def test_sizes_of_dimensions_without_a_name(command: str, tmp_path: Path) -> None:
    text = "g (float[?, 4] x) => (float[?, 4] y) { y = Softmax(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    error = call(command, tmp_path / "m.onnx", "-f", "batch=2", exit_code=2).stderr
    assert "there are none. Dimensions without a name get their sizes from --input-shape NAME=SIZES" in error
    call(command, tmp_path / "m.onnx", "--input-shape", "x=2,4")


@pytest.mark.parametrize("command", ["run", "info", "check", "bench", "diff"])
def test_without_the_onnx_package_it_says_what_to_install(model: Path, command: str, programs: Programs) -> None:
    arguments = ["webnn-wgpu", command, str(model)]
    program = f"import sys; sys.modules['onnx'] = None; sys.argv = {arguments!r}\nfrom webnn_wgpu.cli import main\nmain()"
    done = programs.run(["-c", program])
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Error: models need the package 'onnx': pip install 'webnn-wgpu[onnx]'"


def test_the_option_low_power_asks_for_the_integrated_gpu(model: Path) -> None:
    with open_context("low-power") as context:
        assert context.power_preference == "low-power"
    call("check", model, "--device", "low-power")


# info, check ------------------------------------------------------------------------------------------------------


def test_info(model: Path) -> None:
    written = call("info", model, "-f", "N=3").stdout
    for pattern in (
        r"operator sets +ai\.onnx 21",
        r"parameters +35, 140 bytes",
        r"x +float32\[N, 4\], here \[3, 4\]",
        r"Gemm +2",
        r"weights +140 bytes",
        r"peak +\d+ bytes",
        r"max-buffer-size +met: ",
        r"limits +all met",
    ):
        assert re.search(pattern, written), pattern
    found = json.loads(call("info", model, "--json").stdout)
    assert found["memory"]["weights"] == 140
    assert found["limits"][0]["needed"] <= found["limits"][0]["allowed"]
    assert found["inputs"] == [{"name": "x", "type": "float32", "shape": ["N", 4], "taken": [1, 4]}]


def test_check_says_which_shapes_it_took_for_dimensions_without_a_name(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["": 17]> g (float[?, 3] x, float[N, 3] z) => (float[?, 3] y) { y = Add(x, z) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "unnamed.onnx")
    written = call("check", tmp_path / "unnamed.onnx").stdout
    assert re.search(r"^  shapes +x = \[1, 3\] by default; --input-shape NAME=SIZES sets others$", written, re.MULTILINE)
    assert (
        "by default; --input-shape"
        not in call("check", tmp_path / "unnamed.onnx", "--input-shape", "x=2,3", "-f", "N=2").stdout
    )


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_info_of_the_passes(model: Path, device: str) -> None:
    assert "fold_constants" not in call("info", model, "--device", device).stdout
    written = call("info", model, "--passes", "--device", device).stdout
    for each in PASSES:
        purpose = re.escape(each.reason if each.exact else f"{each.reason} (may change rounding)")
        assert re.search(rf"^  {each.name} +\d+ -> \d+ nodes +{purpose}$", written, re.MULTILINE), each.name
        for line in (line for rule in each.rules for line in rule.describe().splitlines()):
            assert re.search(rf"^  ({each.name})? +{re.escape(line)}$", written, re.MULTILINE), line
    assert "gelu(x) <- 0.5 * x * (1 + erf(x / sqrt(2) | x * sqrt(1/2)))" in written
    record = json.loads(call("info", model, "--passes", "--json", "--device", device).stdout)
    assert list(record["rules"]) == [each.name for each in PASSES if each.rules]
    (reports,) = record["passes"]
    fused = next(report for report in reports if report["name"] == "fuse_epilogues")
    assert fused["nodes_after"] < fused["nodes_before"]


def test_info_without_a_device(model: Path) -> None:
    assert json.loads(call("info", model, "--json", "--device", "reference").stdout)["memory"] is None


def test_check(folder: Path) -> None:
    written = call("check", folder / "mlp.onnx").stdout
    assert re.search(r"Gemm +2 +device", written)
    assert re.search(r"verdict +runs on the device", written)
    assert re.search(r"NonZero +1 +host", call("check", folder / "nonzero.onnx", exit_code=1).stdout)
    call("check", folder / "nonzero.onnx", "--fallback", "host")
    found = json.loads(call("check", folder / "strange.onnx", "--fallback", "host", "--json", exit_code=1).stdout)
    assert found["passed"] is False
    assert [node["where"] for node in found["nodes"]] == ["unsupported"]
    assert call("check", folder / "mlp.onnx", "--all").stdout.count("device") >= 4


# bench ------------------------------------------------------------------------------------------------------------


def test_bench_records_what_a_reader_needs(model: Path, tmp_path: Path) -> None:
    written = call("bench", model, "-r", "4", "-w", "1", "-f", "N:2", "-I", tmp_path / "a.json").stdout
    assert re.search(r"runs +4 after 1 to warm up", written)
    assert re.search(r"GPU time +[\d.]+ ms a run, \d+% of the wall time", written)
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["gpu_ms"] > 0
    assert record["inputs"] == {"x": "float32[2, 4]"}
    assert record["placement"] == {"device": 4, "folded": 0, "host": 0}
    assert len(record["walls_ms"]) == record["runs"] == 4
    wall = record["wall_ms"]
    assert wall["min"] <= wall["p50"] <= wall["p90"] <= wall["max"]
    assert {"webnn_wgpu", "wgpu", "onnx", "python", "platform"} <= set(record["versions"])
    other = call(
        "bench", f"--graph={model}", "--num_runs=2", "--warmup_runs=0", "--input_layer=x", "--input_layer_shape=3,4", "--json=-"
    )
    second = json.loads(other.stdout)
    assert second["inputs"] == {"x": "float32[3, 4]"}
    (tmp_path / "b.json").write_text(json.dumps(second))
    without = call("bench", model, "-r", "1", "-f", "N:2", "--device", "reference").stdout
    assert re.search(r"GPU time +not measured: the numpy reference has no kernels", without)
    compared = call("bench", "--compare", tmp_path / "a.json", tmp_path / "b.json").stdout
    assert re.search(r"wall p50 +[\d.]+ +[\d.]+ +[\d.]+", compared)
    assert re.search(r"inputs +\{'x': 'float32\[2, 4\]'\} \| \{'x': 'float32\[3, 4\]'\}", compared)


def test_bench_says_beforehand_what_it_cannot_do(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = call("bench", model, "--json", tmp_path / "file" / "a.json", exit_code=2)
    assert "cannot be written" in result.stderr
    assert not result.stdout
    assert "run_delay" in call("bench", model, "--run_delay", "-1", exit_code=2).stderr
    for text in ('{"wall_ms": {"p50": 1}}', '{"wall_ms": 1}', "[]", "5"):
        (tmp_path / "a.json").write_text(text, encoding="utf-8")
        assert "a.json is no record" in call("bench", "--compare", tmp_path / "a.json", tmp_path / "a.json", exit_code=1).stderr


def test_bench_for_a_time(model: Path) -> None:
    assert json.loads(call("bench", model, "-m", "duration", "-t", "0.05", "--json", "-").stdout)["runs"] >= 1


def test_options_of_others_are_passed_over_with_a_message(model: Path) -> None:
    result = call("bench", model, "-r", "1", "-e", "cuda", "--num_threads=4")
    assert "-e is passed over: the execution provider" in result.stderr
    assert "--num_threads is passed over: threads" in result.stderr


def test_bench_says_what_is_missing(model: Path, tmp_path: Path) -> None:
    assert "name a MODEL" in call("bench", exit_code=2).stderr
    call("bench", model, "--input_layer_shape=1,4", exit_code=2)
    (tmp_path / "x.json").write_text("{}")
    assert "no record" in call("bench", "--compare", tmp_path / "x.json", tmp_path / "x.json", exit_code=1).stderr


# diff -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["onnxruntime", "onnx", "reference"])
def test_diff(model: Path, against: str) -> None:
    if against == "onnxruntime":
        pytest.importorskip("onnxruntime", reason="onnxruntime is no dependency")
    found = json.loads(call("diff", model, "--against", against, "--json", "-f", "N=2").stdout)
    assert against in found["against"]
    (output,) = found["outputs"]
    assert output["output"] == "y"
    assert output["close"]
    assert output["absolute"] < 1e-5
    assert output["cosine"] > 0.999999
    assert "close" in call("diff", model, "--against", against).stdout


def test_the_reference_has_the_same_sizes(tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    (tmp_path / "m.dims.json").write_text('{"N": 3}', encoding="utf-8")
    found = json.loads(call("diff", tmp_path / "m.onnx", "--against", "reference", "-f", "N=2", "--json").stdout)
    assert [(output["shape"], output["close"]) for output in found["outputs"]] == [([2, 3], True)]


def test_diff_fails_beyond_tolerance(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from webnn_wgpu.frontends.onnx import Model

    run = Model.run
    monkeypatch.setattr(Model, "run", lambda self, feeds: {n: a + 1 for n, a in run(self, feeds).items()})
    found = call("diff", model, "--against", "onnx", exit_code=1).stdout
    assert "APART" in found
    advice = (
        r"next: --bisect names the first wrong operator\nModels of float16 or 8 bits .*: --rtol and --atol set the tolerance\n$"
    )
    assert re.search(advice, found)
    found = call("diff", model, "--against", "onnx", "--bisect", exit_code=1).stdout
    assert "each kernel agrees by itself, so rounding errors probably add up" in found
    assert found.endswith("next: --against onnxruntime --bisect compares the nodes too\n")


def test_the_json_of_an_infinite_difference_has_no_infinity(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from webnn_wgpu.frontends.onnx import Model

    monkeypatch.setattr(Model, "run", lambda _self, _feeds: {"y": np.full((1, 3), np.inf, np.float32)})
    written = call("diff", model, "--against", "onnx", "--json", exit_code=1).stdout
    (output,) = json.loads(written, parse_constant=pytest.fail)["outputs"]
    assert (output["absolute"], output["relative"], output["close"]) == (None, None, False)


def test_diff_names_the_next_step_where_the_expected_results_are_missing(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert "--against onnx\n" in call("diff", model, "--against", "onnxruntime", exit_code=1).stderr
    text = """<ir_version: 9, opset_import: ["": 17]> g (uint8[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {1}>
    { y = DequantizeLinear(x, s, z) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "narrow.onnx")
    # onnx's reference has this operator from operator set 19 on.
    stderr = call("diff", tmp_path / "narrow.onnx", exit_code=1).stderr
    assert re.search(
        r"onnx's reference cannot run the model: .*DequantizeLinear.*, or compare with --against reference\n", stderr
    )
    assert "close" in call("diff", tmp_path / "narrow.onnx", "--against", "reference").stdout


def test_diff_names_sizes_where_the_reference_reads_an_index_out_of_range(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx.reference import ReferenceEvaluator

    from webnn_wgpu.frontends.onnx import Model

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(Model, "run", lambda _self, _feeds: {"y": np.zeros((1, 3), np.float32)})

    def run(*_arguments: object) -> None:
        raise IndexError("index 64 is out of bounds for axis 0 with size 64")

    monkeypatch.setattr(ReferenceEvaluator, "run", run)
    stderr = call("diff", model, exit_code=1).stderr
    assert "with size 64. Give indices by -i, or other sizes by -f NAME=SIZE" in stderr


@pytest.mark.parametrize(
    ("error", "advice"),
    [(0.01, "rounding errors probably add up, .*--rtol and --atol set"), (np.inf, "more than rounding: please report")],
)
def test_diff_says_what_follows_if_all_nodes_agree(
    model: Path, monkeypatch: pytest.MonkeyPatch, error: float, advice: str
) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is no dependency")

    def apart(*outputs: Any) -> Difference:
        return replace(difference(*outputs), absolute=error, close=False)

    monkeypatch.setattr(import_module("webnn_wgpu.cli.diff"), "difference", apart)
    found = call("diff", model, "--against", "onnxruntime", "--bisect", exit_code=1).stdout
    assert re.search(f"each node agrees by itself, .*{advice}", found)


def test_diff_names_the_first_operator_that_is_wrong(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "2 operators against the numpy reference: all agree" in call("diff", model, "--against", "onnx", "--bisect").stdout
    against = call("diff", model, "--against", "onnxruntime", "--bisect", "--json").stdout
    assert json.loads(against)["wrong"] == []
    wrong = {
        **OPS,
        "gemm": replace(OPS["gemm"], reference=lambda _operands, _attrs, types: [np.ones(types[0].shape, np.float32)]),
    }
    monkeypatch.setattr("webnn_wgpu.reference.interpreter.OPS", wrong)
    found = call("diff", model, "--against", "onnx", "--bisect", "--repro", tmp_path, exit_code=1).stdout
    assert "2 operators against the numpy reference: 2 wrong, the first is gemm_0 (gemm)" in found
    assert f"repro: {tmp_path / 'gemm_0.py'}" in found
    assert (tmp_path / "gemm_0.py").is_file()
    record = json.loads(call("diff", model, "--against", "onnx", "--bisect", "--json", exit_code=1).stdout)
    assert [w["label"] for w in record["wrong"]] == ["gemm_0", "gemm_2"]


def test_repros_need_the_comparison_of_operators(model: Path, tmp_path: Path) -> None:
    assert "--repro needs --bisect" in call("diff", model, "--repro", tmp_path, exit_code=2).stderr


def test_differences() -> None:
    b = np.float32([1, -2, np.nan, np.inf])
    same = difference("y", b.copy(), b, 1e-3, 0)
    assert (same.close, same.absolute, same.relative) == (True, 0, 0)
    assert same.cosine == pytest.approx(1)
    off = difference("y", np.float32([1, -2.5, np.nan, np.inf]), b, 1e-3, 0)
    assert (off.close, off.absolute, off.relative, off.scaled) == (False, 0.5, 0.25, 0.25)
    assert difference("y", np.float32([1, -2, 0, np.inf]), b, 1e-3, 0).absolute == np.inf
    assert difference("y", np.float32([1e-9]), np.float32([0]), 0, 1).relative == np.inf
    assert not difference("y", b.astype(np.float64), b, 1e-3, 0).close
    assert difference("y", b[:2], b, 1e-3, 0).note == "another shape"
    assert difference("y", np.zeros((0, 2)), np.zeros((0, 2)), 0, 0).close


def test_differences_of_integers_are_exact() -> None:
    large = difference("y", np.array([2**60 + 1]), np.array([2**60]), 0, 0)
    assert (large.close, large.absolute, large.scaled) == (False, 1, 2**-60)
    assert difference("y", np.array([2**60 + 1]), np.array([2**60]), 0, 1).close
    ends = np.array([-(2**63), 2**63 - 1])
    assert difference("y", ends, ends, 0, 0).close
    assert difference("y", ends, ends[::-1], 0, 0).absolute == 2**64
    assert difference("y", np.uint64([2**64 - 1]), np.uint64([2**64 - 2]), 0, 0).absolute == 1
    assert difference("y", np.int8([-128, 5]), np.int8([127, 5]), 0, 0).absolute == 255
    assert not difference("y", np.int32([1]), np.array([1], np.int64), 0, 0).close


def test_diff_of_what_runs_on_the_host_alone(folder: Path) -> None:
    written = call(
        "diff", folder / "nonzero.onnx", "--fallback", "host", "--against", "reference", "--bisect", exit_code=1
    ).stderr
    assert "diff: the model has no graph that runs on the device" in written
    assert "kv_cache" not in written


def test_integers_of_a_file_stay_what_they_are(tmp_path: Path) -> None:
    text = "g (int32[2] x) => (int32[2] y) { y = Identity(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}'), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([2**31 - 1, -(2**31)], np.int64))
    call("run", tmp_path / "m.onnx", "-i", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out")
    assert np.load(tmp_path / "out" / "y.npy").tolist() == [2**31 - 1, -(2**31)]
    np.save(tmp_path / "x.npy", np.array([2**31, 0], np.int64))
    lines = call("run", tmp_path / "m.onnx", "-i", f"x={tmp_path / 'x.npy'}", exit_code=2).stderr.splitlines()
    assert lines[-1].endswith("an element of the file is out of the range of x: int32[2]")
