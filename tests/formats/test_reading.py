"""Reading of `.webnn` texts, of their JSON form and of files of weights."""

from __future__ import annotations

import contextlib
import json
import re
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.formats.document import DynamicDimension, FileError, OperandReference, ScalarFill
from webnn_wgpu.formats.text import parse_text
from webnn_wgpu.formats.weights import opened
from webnn_wgpu.frontends.webnn import check

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MLP = """
webnn_graph "mlp" v2 @quantized {
  inputs { x: f32[dyn("batch", 8), 4]; unused: u8[3]; }
  consts {
    w: f32[4, 3] @weights("encoder.dense/w");
    half: f32[] @scalar(0.5);
  }
  nodes {
    h = matmul(x, w);  # a comment
    // a comment of torch2webnn
    hidden = add(h, half);
    [a, b] = split(hidden, splits=[1, 2], axis=-1);
    y = concat(b, a, axis=1);
  }
  outputs { y; hidden; }
}
"""
WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def graph(nodes: str, outputs: str = "y", inputs: str = "x: f32[2, 3];", consts: str = "") -> str:
    return f'webnn_graph "g" v1 {{ inputs {{ {inputs} }} consts {{ {consts} }} nodes {{ {nodes} }} outputs {{ {outputs}; }} }}'


def loaded(folder: Path, text: str, context: wn.MLContext, **options: Any) -> Any:
    path = folder / "g.webnn"
    path.write_text(text)
    return wn.load(path, context, **options)


def safetensors(tensors: dict[str, np.ndarray[Any, Any]]) -> bytes:
    header: dict[str, Any] = {}
    data = b""
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_a_text_is_a_document() -> None:
    document = parse_text(MLP, "mlp.webnn")
    assert (document.name, document.version, document.quantized) == ("mlp", 2, True)
    assert document.inputs[0].shape == (DynamicDimension("batch", 8), 4)
    assert [c.declaration.name for c in document.constants] == ["w", "half"]
    assert document.constants[1].init == ScalarFill(0.5)
    split = document.statements[2]
    assert (split.results, split.bracketed, split.options) == (("a", "b"), True, {"splits": [1, 2], "axis": -1})
    assert split.arguments[0] == OperandReference("hidden", split.arguments[0].location)
    assert str(split.location) == "mlp.webnn:12:14"


@pytest.mark.parametrize("batch", [1, 5])
def test_sizes_of_dynamic_dimensions_come_with_the_arrays(batch: int, tmp_path: Path, reference: wn.MLContext) -> None:
    (tmp_path / "mlp.webnn").write_text(MLP)
    (tmp_path / "mlp.safetensors").write_bytes(safetensors({"encoder.dense/w": WEIGHTS}))
    model = wn.load(tmp_path / "mlp.webnn", reference)
    assert [str(i) for i in model.inputs] == ["x: float32[batch, 4]", "unused: uint8[3]"]
    assert model.compiled == 0
    x = np.random.default_rng(0).random((batch, 4), np.float32)
    results = model.run({"x": x})
    hidden = x @ WEIGHTS + np.float32(0.5)
    np.testing.assert_allclose(results["hidden"], hidden, rtol=1e-6)
    np.testing.assert_allclose(results["y"], hidden[:, [1, 2, 0]], rtol=1e-6)
    assert model.compiled == 1
    with pytest.raises(wn.MLTypeError, match=r"size of dimension 'batch' is out of range; got 9; allowed: 1..8"):
        model.run({"x": np.zeros((9, 4), np.float32)})


def test_a_graph_needs_the_sizes_of_its_dynamic_dimensions(tmp_path: Path, reference: wn.MLContext) -> None:
    (tmp_path / "mlp.webnn").write_text(MLP)
    (tmp_path / "other.safetensors").write_bytes(safetensors({"encoder_dense/w": WEIGHTS}))
    weights = {"weights_path": "other.safetensors", "context": reference}
    with pytest.raises(wn.MLTypeError, match=r"dynamic dimensions are open; got batch. override_dims"):
        wn.MLGraph.load(tmp_path / "mlp.webnn", **weights)
    found = wn.MLGraph.load(tmp_path / "mlp.webnn", **weights, override_dims={"batch": 2})
    assert found.get_input_names() == ["x"]
    assert reference.compute(found, {"x": np.ones((2, 4), np.float32)})["hidden"].tolist() == [[18.5, 22.5, 26.5]] * 2


def test_blobs_of_weights_are_read_by_their_manifest(tmp_path: Path, reference: wn.MLContext) -> None:
    entry = {"dataType": "float32", "shape": [4, 3], "byteOffset": 9, "byteLength": 48, "layout": "row-major"}
    manifest: dict[str, Any] = {"format": "wg-weights-manifest", "version": 1, "tensors": {"encoder.dense/w": entry}}
    (tmp_path / "mlp.webnn").write_text(MLP)
    (tmp_path / "mlp.weights").write_bytes(b"WGWT" + struct.pack("<I", 1) + b"\0" + WEIGHTS.tobytes())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    model = wn.load(tmp_path / "mlp.webnn", reference, override_dims={"batch": 1})
    assert model.run({"x": np.ones((1, 4), np.float32)})["hidden"].tolist() == [[18.5, 22.5, 26.5]]
    for change, message in (
        ({"byteOffset": 4}, "lies in the header"),
        ({"byteLength": 2**40}, "exceeds the file"),
        ({"shape": [3, 4]}, r"another type or shape.* of shape \[3, 4\]"),
        ({"layout": "column-major"}, "unknown layout"),
        ({"dataType": "float64"}, "no such data type"),
    ):
        manifest["tensors"] = {"encoder.dense/w": entry | change}
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(wn.MLTypeError, match=message):
            wn.load(tmp_path / "mlp.webnn", reference, override_dims={"batch": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (graph("y = relu(z);"), r"g.webnn:1:\d+: no operand 'z' is defined here"),
        (graph("y = relux(x);"), r"unknown operator 'relux'\. Did you mean 'relu'\?"),
        (graph("y = MatMul(x, x);"), r"g.webnn:1:\d+: matmul\('y'\): Incompatible shapes"),
        (graph("y = Conv(x);"), "unknown operator 'Conv'.* ONNX"),
        (graph("y = relu(x, alfa=1);"), "relu has no option 'alfa'"),
        (graph("y = reshape(x);"), "reshape lacks newShape"),
        (graph("[y, z] = relu(x);"), "relu has 1 results; got 2 names"),
        (graph("y = relu(x);", inputs="x: f32[2]; x: f32[3];"), "'x' is declared twice"),
        (graph("y = relu(x);", outputs=""), "expected|grammar|no outputs"),
        (graph("y = add(x, c);", consts="c: i8[] @scalar(300);"), "out of the range of int8"),
        (graph("y = add(x, c);", consts="c: f32[2] @bytes([1, 2]);"), "wrong number of bytes; got 2 bytes; allowed: 8 bytes"),
        (graph("y = add(x, c);", consts="c: u8[2] @bytes([1 2]);"), r"g.webnn:1:\d+: the numbers of @bytes must be separated"),
        (graph("y = add(x, c);", consts="c: u8[2] @bytes([1,, 2]);"), "the numbers of @bytes must be separated"),
        (graph("y = add(x, c);", consts="c: u8[2] @bytes([, 1, 2]);"), "the numbers of @bytes must be separated"),
        (graph("y = add(x, c);", consts="c: u8[2] @bytes([1, 0256]);"), "an item of @bytes is no byte; got '256'"),
        (graph("y = add(x, c);", consts=f"c: u8[2] @bytes([1, {'9' * 9999}]);"), "an item of @bytes is no byte"),
        (graph("y = concat(x, axis=7);"), r"g.webnn:1:\d+: concat\('y'\): axis must be < rank"),
        (graph("y = gemm(x, x, x, c=y2);"), "no operand 'y2'"),
        (graph('y = conv2d(x, x, bias=x, autoPad="full");'), "unknown autoPad"),
    ],
)
def test_faults_name_place_and_culprit(text: str, message: str, tmp_path: Path, reference: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match=message):
        loaded(tmp_path, text, reference)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            graph("y = add(x, c);", consts="c: f32[2147483647, 2147483647] @scalar(0);"),
            r":1:\d+: the constant 'c' is too large",
        ),
        (graph("y = add(x, c);", consts="c: i4[2147483647, 2147483647] @bytes([1]);"), r"wrong number of bytes; got 1 bytes"),
        (graph("y = relu(x);", inputs="x: f32[1048576, 1048576, 1048576];"), r":1:\d+: input: element count"),
        (graph("y = expand(x, newShape=[1152921504606846976, 1]);"), r":1:\d+: expand\('y'\): new_shape"),
        (graph("a = relu(b); b = relu(a); y = add(a, b);"), r":1:\d+: no operand 'b' is defined here"),
        (graph(f"y = reshape(x, newShape={'[1, ' * 10000}{']' * 10000});"), r":1:\d+: brackets are nested too deeply"),
        (graph(f"y = {'a' * 100000}(x);"), r"unknown operator 'a{100,300} \.\.\. a+'$"),
        (graph("[] = relu(x); y = relu(x);"), "the results of the statement have no names"),
        (graph("y = softmax(axis=1);"), "softmax lacks input"),
        (graph("y = shape();"), "shape takes one operand"),
    ],
)
def test_hostile_files_are_refused_before_anything_is_allocated(
    text: str, message: str, tmp_path: Path, reference: wn.MLContext
) -> None:
    with pytest.raises(wn.MLTypeError, match=message):
        loaded(tmp_path, text, reference)


IMAGE = {"inputs": "x: f32[1, 1, 4, 4];", "consts": "w: f32[1, 1, 2, 2] @scalar(1);"}
PADDED = 'y = conv2d(x, w, autoPad="same-upper", {});'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (graph("y = relu(x, label=5);"), "relu: label must be a string of Unicode characters; got 5"),
        (graph("y = reshape(x, newShape=[-1, [2]]);"), r"reshape: newShape must be a list of integers; got \[-1, \[2\]\]"),
        (graph('y = slice(x, starts=[0], ends=[1], steps=["a"]);'), r"slice: steps must be a list of integers; got \['a'\]"),
        (graph("y = slice(x, starts=[0.5], ends=[1]);"), r"slice: starts must be a list of integers; got \[0\.5\]"),
        (graph("y = slice(x, starts=[0], axes=[0]);"), "slice: ends must be a list of integers; got None"),
        (graph(PADDED.format("strides=5"), **IMAGE), "conv2d: strides must be a list of integers; got 5"),
        (graph(PADDED.format("strides=[1, 1, 1]"), **IMAGE), r"conv2d\('y'\): strides must have 2 items"),
        (graph(PADDED.format("strides=[0, 1]"), **IMAGE), r"conv2d\('y'\): every item of strides must be > 0"),
        (graph(PADDED.format("inputLayout=5"), **IMAGE), r"conv2d\('y'\): Invalid input_layout; got 5"),
        (graph(PADDED.format('filterLayout="abcd"'), **IMAGE), r"conv2d\('y'\): Invalid filter_layout; got 'abcd'"),
        (graph(PADDED.format("label=a"), inputs=IMAGE["inputs"], consts="w: f32[1, 1] @scalar(1);"), "must its filter"),
        (graph('y = maxPool2d(x, autoPad="same-upper", windowDimensions=7);', **IMAGE), "windowDimensions must be a list"),
        (graph('c = constant(dataType=f32, shape=[-1], data="AAAAAA=="); y = add(x, c);'), "a dimension must be an integer"),
        (
            graph('c = constant(dataType=f32, shape=[3], data="AAAA"); y = add(x, c);'),
            "'c' has the wrong number of bytes; got 3",
        ),
        (graph('c = constant(dataType=f99, shape=[1], data="AAAA"); y = add(x, c);'), "no such data type; got 'f99'"),
        (graph("y = add(x, c);", consts=f"c: f32[] @scalar(1{'0' * 380});"), "the number is out of the range of float64"),
        (
            graph("y = relu(c);", consts=f"c: u8[{'2147483647,' * 700}] @bytes([1]);"),
            r":1:\d+: the shape has too many elements",
        ),
        (
            graph("k = add(a, c); y = relu(k);", consts="a: i4[2] @bytes([1]); c: f32[] @scalar(1);"),
            "a data type is not allowed",
        ),
        (graph("y = relu(x)\v?;"), r"does not follow the grammar of \.webnn files; got '\\x0b\?;"),
    ],
)
def test_values_of_another_kind_are_refused_with_their_statement(
    text: str, message: str, tmp_path: Path, reference: wn.MLContext
) -> None:
    with pytest.raises(FileError, match=message) as refused:
        loaded(tmp_path, text, reference)
    assert re.match(r".*g\.webnn:1:\d+: ", str(refused.value))


def test_a_constant_of_a_statement_may_be_packed(tmp_path: Path, reference: wn.MLContext) -> None:
    nodes = 'c = constant(dataType="int4", shape=[3], data="4Qc="); y = dequantizeLinear(c, s, c);'
    model = loaded(tmp_path, graph(nodes, consts="s: f32[3] @scalar(0.5);"), reference)
    assert model.run({})["y"].tolist() == [0.0, 0.0, 0.0]


JSON: dict[str, Any] = {
    "format": "webnn-graph-json",
    "version": 1,
    "inputs": {"x": {"dataType": "float32", "shape": [2]}},
    "consts": {"c": {"dataType": "uint8", "shape": [1], "init": {"kind": "inlineBytes", "bytes": [1]}}},
    "nodes": [{"id": "y", "op": "relu", "inputs": ["x"], "options": {"label": "LABEL"}}],
    "outputs": {"y": "y"},
}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', f'"version": {"1" * 5000}', "the JSON has a number with too many digits"),
        ('"version": 1', '"version": true', ":version: the version must be an integer; got True"),
        ('"LABEL"', "[" * 600 + "]" * 600, r"g\.json:1:\d+: brackets are nested too deeply; got 65 brackets"),
        ('"LABEL"', r'"\ud800"', r":nodes\[0\]\.options\.label: a string of Unicode characters is expected"),
        ('"x":', r'"\udc00":', "a name must be a string of Unicode characters"),
        ('"bytes": [1]', '"bytes": [true]', r"bytes\[0\]: an item is no byte; got True"),
        ('"outputs": {', '"outputs": {"y": "y", ', "an object has the member 'y' twice"),
    ],
)
def test_faults_of_json_name_their_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = json.dumps(JSON)
    assert old in text
    (tmp_path / "g.json").write_text(text.replace(old, new))
    with pytest.raises(FileError, match=message):
        check(tmp_path / "g.json")


@pytest.mark.parametrize("shape", [[2**62] * 300, [2**62] * 200_000])
def test_shapes_of_stored_tensors_are_refused_before_their_product_takes_long(shape: list[int], tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    start = time.process_time()
    with pytest.raises(FileError, match=r"w\.safetensors:w\.shape: the shape has too many elements"):
        opened(tmp_path / "w.safetensors")
    assert time.process_time() - start < 2


@pytest.mark.parametrize("kind", [["F32"], None, 5, "F64"])
def test_types_of_stored_tensors_are_names(kind: Any, tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": kind, "shape": [], "data_offsets": [0, 0]}}).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(FileError, match=r"w\.dtype: unknown data type"):
        opened(tmp_path / "w.safetensors")
    entry = {"dataType": kind, "shape": [], "byteOffset": 0, "byteLength": 0}
    (tmp_path / "b.weights").write_bytes(b"")
    (tmp_path / "b.manifest.json").write_text(json.dumps({"format": "wg-weights-manifest", "tensors": {"w": entry}}))
    with pytest.raises(FileError, match=r"tensors\.w\.dataType: no such data type"):
        opened(tmp_path / "b.weights")


def test_a_manifest_tells_the_size_of_its_types(tmp_path: Path) -> None:
    entry = {"dataType": "float32", "shape": [2], "byteOffset": 0, "byteLength": 4}
    (tmp_path / "b.weights").write_bytes(bytes(8))
    (tmp_path / "b.manifest.json").write_text(json.dumps({"format": "wg-weights-manifest", "tensors": {"w": entry}}))
    with pytest.raises(FileError, match=r"tensors\.w\.byteLength: wrong number of bytes; got 4 bytes; allowed: 8 bytes"):
        opened(tmp_path / "b.weights")


def test_names_have_no_halves_of_surrogate_pairs(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    descriptor: Any = {"dataType": "float32", "shape": [2]}
    with pytest.raises(wn.MLTypeError, match="name must be a string of Unicode characters"):
        builder.input("\ud800", descriptor)
    x = builder.input("\U0001f926", descriptor)
    with pytest.raises(wn.MLTypeError, match="label must be a string of Unicode characters"):
        builder.relu(x, label="\udc00")
    with pytest.raises(wn.MLTypeError, match="an output's name must be a string of Unicode characters"):
        builder.build({"\ud800": builder.relu(x)})


MANY = 2000


@pytest.mark.parametrize(
    ("consts", "statement"),
    [
        ('c{0}: f32[2, 3] @weights("a.{0}");', "r{0} = add(x, c{0});"),
        ("c{0}: i32[] @scalar(2);", "r{0} = add(x, c{0});"),
        ("c{0}: f32[2, 2] @scalar(2);", "r{0} = gemm(w, w, c={0});"),
        ("c{0}: f32[2, 3] @scalar(2);", "k{0} = add(x, c{0}); r{0} = add(c{0}c, x);"),
    ],
    ids=["loose keys", "types of scalars", "numbers of operands", "similar names"],
)
def test_large_files_take_no_time_for_each_pair_of_names(consts: str, statement: str, tmp_path: Path) -> None:
    names = range(MANY)
    nodes = "w = slice(x, [0, 0], [2, 2]); " + " ".join(statement.format(i) for i in names)
    text = graph(f"{nodes} y = relu(x);", consts=" ".join(consts.format(i) for i in names))
    (tmp_path / "g.webnn").write_text(text)
    (tmp_path / "g.safetensors").write_bytes(safetensors({f"a_{i}": np.zeros((2, 3), np.float32) for i in names}))
    start = time.process_time()
    with contextlib.suppress(FileError):
        check(tmp_path / "g.webnn")
    assert time.process_time() - start < 4


def test_dialects_of_slices_paddings_and_axes(tmp_path: Path, reference: wn.MLContext) -> None:
    nodes = """
      s = slice(x, starts=[-2], ends=[9223372036854775807], axes=[1], steps=[1]);
      r = reshape(s, newShape=[-1]);
      u = unsqueeze(r, axes=[-1]);
      p = softmax(u, axis=-1);
      t = cast(p, to="Float32");
      alias = t;
      y = add(alias, two);
    """
    model = loaded(tmp_path, graph(nodes, consts="two: i32[] @scalar(2);"), reference)
    assert model.run({"x": np.float32([[1, 2, 3], [4, 5, 6]])})["y"].tolist() == [[3.0]] * 4


def test_arguments_of_run_are_checked(tmp_path: Path, reference: wn.MLContext) -> None:
    model = loaded(tmp_path, graph("y = relu(x);"), reference)
    x = np.zeros((2, 3), np.float32)
    for feeds, message in (
        ({}, "an input is missing; got no 'x'"),
        ({"x": x, "z": x}, "unknown input; got 'z'"),
        (x, "the inputs must be a mapping of name to array; got ndarray; allowed: a mapping of x"),
        ({"x": x.astype(np.float64)}, r"wrong type of input; got x: float64; allowed: float32\[2, 3\]"),
        ({"x": x[0]}, r"wrong shape of input 'x'; got \[3\]; allowed: \[2, 3\]"),
    ):
        with pytest.raises(wn.MLTypeError, match=message):
            model.run(feeds)
    with pytest.raises(wn.MLTypeError, match="unknown output; got 'z'"):
        model.run({"x": x}, ["z"])
    with pytest.raises(wn.NotSupportedError, match="for ONNX models"):
        wn.load(tmp_path / "g.webnn", reference, kv_cache=4)


def test_bytes_may_have_leading_zeros_and_remarks(tmp_path: Path, reference: wn.MLContext) -> None:
    text = graph("y = add(x, c);", inputs="x: u8[3];", consts="c: u8[3] @bytes([007, # seven\n 0, 0255,]);")
    assert loaded(tmp_path, text, reference).run({"x": np.uint8([1, 1, 0])})["y"].tolist() == [8, 1, 255]


def test_a_large_text_takes_no_time_for_each_of_its_bytes(tmp_path: Path, reference: wn.MLContext) -> None:
    numbers = ", ".join(["7"] * 1_000_000)
    model = loaded(
        tmp_path,
        graph("y = add(x, c);", inputs="x: u8[1000000];", consts=f"c: u8[1000000] @bytes([{numbers}]);").replace(
            "add(x, c)", "where(x, c, c)"
        ),
        reference,
    )
    assert model.run({"x": np.zeros(1_000_000, np.uint8)})["y"].sum() == 7_000_000


PLACED = graph(
    "h = matmul(x, w);\ni = identity(h);\nr = relu(i);\ny = softmax(r, axis=1);",
    inputs="x: f32[2, 8];",
    consts="w: f32[8, 8] @scalar(0.5);",
)
"""A graph whose identity is in line 2, whose relu is fused into the product of line 1, and whose softmax is in line 4."""


def test_statements_of_a_file_reach_passes_and_profiles(context: wn.MLContext, tmp_path: Path) -> None:
    with loaded(tmp_path, PLACED, context) as model:
        places = {report.name: [place.rpartition("g.webnn:")[2] for place in report.places] for report in model.graph.passes}
        assert places["drop_dead_nodes"] == []
        assert places["drop_identities"] == ["2:5"]
        assert [place.partition(":")[0] for place in places["fuse_epilogues"]] == ["1", "3"]
        feeds = {"x": np.ones((2, 8), np.float32)}
        profile = model.graph.profile(feeds)
        softmax = next(kernel for kernel in profile.kernels if "softmax" in kernel.shader)
        assert [place.rpartition("g.webnn")[2] for place in softmax.places] == [":4:5"]
        assert profile.rows()[profile.kernels.index(softmax)][-1] == softmax.lines
        assert re.search(r"from$", str(profile), re.MULTILINE)
        assert re.search(r"softmax.*: y, from .*g\.webnn:4:5 ", str(model.profile(feeds)))
        profile.to_html(tmp_path / "profile.html")
        profile.to_perfetto(tmp_path / "trace.json")
        for written in ("profile.html", "trace.json"):
            assert "g.webnn:4:5" in (tmp_path / written).read_text()


def test_an_operator_that_the_device_cannot_hold_is_named_with_its_statement(context: wn.MLContext, tmp_path: Path) -> None:
    rows = context.caps.limit("max-buffer-size") // 4096 + 1
    text = graph(f"y = tile(x, repetitions=[{rows}, 1]);", inputs="x: f32[1, 1024];")
    with pytest.raises(wn.OutOfMemoryError, match=r"The operator was made at .*g\.webnn:1:\d+$"):
        loaded(tmp_path, text, context).graph  # noqa: B018 - the property builds the graph


def test_profiles_of_programs_have_no_column_of_places(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    with builder.build({"y": builder.relu(x)}) as built:
        assert [report.places for report in built.passes] == [()] * len(built.passes)
        assert str(built.profile({"x": np.ones(2, np.float32)})).splitlines()[1].endswith("why")


def test_marks_of_comments_among_bytes_take_no_time(tmp_path: Path) -> None:
    """A mark within a comment begins no comment of its own."""
    text = 'webnn_graph "g" v1 { consts { b: u8[1] @bytes([1, ' + "# 1, " * 10 + "\n"
    (tmp_path / "g.webnn").write_text(text + "2x]); } }")
    start = time.process_time()
    with pytest.raises(FileError, match=r"g\.webnn:1:"):
        check(tmp_path / "g.webnn")
    assert time.process_time() - start < 2
    (tmp_path / "g.webnn").write_text(
        'webnn_graph "g" v1 { inputs { x: u8[2]; } consts { b: u8[2] @bytes([1, # 7 # 8, ]\n 2 # 3\n]); }'
        " nodes { y = add(x, b); } outputs { y; } }"
    )
    assert check(tmp_path / "g.webnn") is not None
