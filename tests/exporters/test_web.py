"""Folders for browsers: their content, that `load` opens them, and that wrong ones are refused with file and culprit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples.models import gpt
from webnn_wgpu import debug
from webnn_wgpu.core.caps import DEFAULT_LIMITS as WGPU_LIMITS
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.exporters import web
from webnn_wgpu.exporters.javascript import to_javascript
from webnn_wgpu.formats.document import FileError
from webnn_wgpu.formats.web.model import DEFAULT_LIMITS, ELEMENT_NAMES, PAD_BYTES
from webnn_wgpu.formats.web.reading import read_web_model
from webnn_wgpu.kernels.element import ELEMENTS, STORAGE_ALIGNMENT_BYTES
from webnn_wgpu.plan.stored import DASHED, missing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def network(context: wn.MLContext) -> wn.MLGraph:
    random = np.random.default_rng(0)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 8, 6, 6]})
    weights = builder.constant(random.standard_normal((16, 8, 3, 3)).astype(np.float32))
    maps = builder.relu(builder.conv2d(x, weights), label="maps")
    flat = builder.reshape(maps, [1, 256])
    # Whole numbers are stored as bytes.
    steps = builder.constant(random.integers(-128, 128, (256, 256)).astype(np.float32))
    flat = builder.mul(builder.matmul(flat, steps), builder.constant("float32", 0.001))
    same = builder.constant(random.standard_normal((256, 16)).astype(np.float32))
    scores = builder.matmul(flat, same, label="scores")
    return builder.build({"scores": builder.softmax(scores, 1), "maps": maps})


@pytest.fixture
def folder(reference: wn.MLContext, tmp_path: Path) -> Path:
    with network(reference) as graph:
        web.write(graph, tmp_path / "net")
    return tmp_path / "net"


def assert_same(found: np.ndarray, wanted: np.ndarray, context: wn.MLContext) -> None:
    """Check results of a folder beside those of the graph that it was written from.

    On GPUs the graph may have kernels with features of wgpu that browsers lack, which add up in another order.
    """
    if context.caps.is_software:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_same_graph_gives_the_same_bytes(reference: wn.MLContext, folder: Path, tmp_path: Path) -> None:
    with network(reference) as graph:
        paths = web.write(graph, tmp_path / "again", name="net")
    for path in paths:
        assert path.read_bytes() == (folder / path.relative_to(tmp_path / "again")).read_bytes()


def test_an_export_replaces_an_earlier_one(reference: wn.MLContext, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    with builder.build({"y": builder.neg(x)}) as graph:
        paths = web.write(graph, folder)
    found = {path for path in folder.rglob("*") if path.is_file()}
    assert found == {*paths, folder / "notes.txt"}


def test_kernels_have_no_lines_of_comments(folder: Path) -> None:
    for path in folder.glob("kernels/*.wgsl"):
        assert not re.search(r"^\s*(//.*)?$", path.read_text().removesuffix("\n"), re.MULTILINE)


def test_no_kernel_for_browsers_uses_what_wgpu_alone_has(folder: Path) -> None:
    for path in folder.glob("kernels/*.wgsl"):
        assert not re.search(r"subgroup_id|subgroupBarrier|\bi64\b|\bu64\b", path.read_text())


def test_a_folder_opens_with_equal_results(context: wn.MLContext, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)
    with network(context) as graph:
        web.write(graph, tmp_path, record="here")
        wanted = context.compute(graph, {"x": x})
        with wn.load(tmp_path, context) as model:
            found = model.run({"x": x})
            assert [len(model.graphs[0].kernels), len(model.placement)] == [len(graph.kernels), 6]
            assert model.run({"x": x}, ["maps"]).keys() == {"maps"}
            assert model.profile({"x": x}).outputs.keys() == found.keys()
            with pytest.raises(
                wn.MLTypeError, match=r"run: wrong shape of input; got x: \[6, 6, 8, 1\]; allowed: x: float32\[1, 8, 6, 6\]"
            ):
                model.run({"x": x.T})
    for name, array in wanted.items():
        assert_same(found[name], array, context)


@pytest.mark.parametrize("record", ["webgpu", "webgpu-f16", "software"])
def test_records_by_name_run_here(context: wn.MLContext, tmp_path: Path, record: str) -> None:
    with network(context) as graph:
        web.write(graph, tmp_path, record=record)
        sample = read_web_model(tmp_path).sample
        assert sample is not None
        data = (tmp_path / "sample.bin").read_bytes()
        arrays = {n: np.frombuffer(data, np.float32, p.size_bytes // 4, p.offset) for n, p in sample.inputs.items()}
        with wn.load(tmp_path, context) as model:
            found = model.run({"x": arrays["x"].reshape(1, 8, 6, 6)})
    for name, place in sample.outputs.items():
        wanted = np.frombuffer(data, np.float32, place.size_bytes // 4, place.offset)
        np.testing.assert_allclose(found[name].ravel(), wanted, rtol=1e-4, atol=1e-5)


def test_a_graph_of_a_folder_has_no_operators(context: wn.MLContext, folder: Path) -> None:
    with wn.load(folder, context) as model:
        graph, feeds = model.graphs[0], {"x": np.zeros((1, 8, 6, 6), np.float32)}
        calls: list[Callable[[], object]] = [
            lambda: graph.save("x.webnn"),
            lambda: to_javascript(graph),
            lambda: context.convert_to_onnx(graph, "x.onnx"),
            lambda: context.rebuild(graph),
            lambda: debug.diff(graph, feeds),
            lambda: graph.plan_for(Caps()),
            graph.tune,
        ]
        for call in calls:
            with pytest.raises(wn.NotSupportedError, match="the operators of the graph must be known"):
                call()


def grouped() -> onnx.ModelProto:
    """Return a decoder of one layer of GroupQueryAttention, whose first token has a graph of its own."""
    random = np.random.default_rng(3)
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (int64[b,n] input_ids, int64[b,total] attention_mask, float[b,2,past,8] pk, float[b,2,past,8] pv)
          => (float[b,n,16] logits, float[b,2,total,8] kk, float[b,2,total,8] vv) {
          x = Gather (table, input_ids)  q = MatMul (x, wq)  k = MatMul (x, wk)  v = MatMul (x, wv)
          counts = ReduceSum <keepdims = 0> (attention_mask, one)  less = Sub (counts, one)  lengths = Cast <to = 6> (less)
          every = Shape <start = 1, end = 2> (attention_mask)  size = Squeeze (every)  whole = Cast <to = 6> (size)
          y, kk, vv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1>
            (q, k, v, pk, pv, lengths, whole, cos, sin)
          logits = MatMul (y, head)
        }"""
    )
    angles = random.uniform(-3, 3, (8, 4)).astype(np.float32)
    shapes = {"table": (16, 24), "wq": (24, 32), "wk": (24, 16), "wv": (24, 16), "head": (32, 16)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    weights |= {"cos": np.cos(angles), "sin": np.sin(angles), "one": np.array([1])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


@pytest.mark.parametrize("proto", [gpt, grouped], ids=lambda p: p.__name__)
def test_a_decoder_is_written_with_a_table_of_masks_and_positions(
    proto: Callable[[], onnx.ModelProto], context: wn.MLContext, tmp_path: Path
) -> None:
    tokens = [5, 6, 7, 8]
    wanted: list[Any] = []
    with wn.load_onnx(proto(), context, kv_cache=4) as model, model.state() as state:
        with pytest.raises(wn.NotSupportedError, match="the graph of one token must be compiled"):
            web.write(model, tmp_path)
        assert not list(tmp_path.iterdir())
        for i, token in enumerate(tokens):
            wanted.append(model.run({"input_ids": [[token]], "attention_mask": [[1] * (i + 1)]}, state=state)["logits"])
            if i == 0:
                web.write(model, tmp_path, record="here")
    stored = read_web_model(tmp_path)
    steps = stored.steps
    assert steps is not None
    assert (steps.rows, steps.tokens) == (4, "input_ids")
    data = (tmp_path / "steps.bin").read_bytes()
    with wn.load(tmp_path, context) as model:
        feeds = {info.name: np.zeros([int(size) for size in info.shape], info.dtype) for info in model.inputs}
        for row, token in enumerate(tokens):
            feeds["input_ids"][:] = token
            for name, place in steps.tables.items():
                size = place.size_bytes // steps.rows
                part = data[place.offset + row * size : place.offset + (row + 1) * size]
                feeds[name] = np.frombuffer(part, feeds[name].dtype).reshape(feeds[name].shape)
            results = model.run(feeds)
            if proto is grouped and row == 0:
                # The graph of the first token attends to its own row alone.
                np.testing.assert_allclose(results["logits"], wanted[row], rtol=1e-5, atol=1e-5)
            else:
                assert_same(results["logits"], wanted[row], context)
            feeds |= {output.alias: results[name] for name, output in stored.outputs.items() if output.alias}


def test_a_mask_that_depends_on_tokens_has_no_table(context: wn.MLContext, tmp_path: Path) -> None:
    proto = gpt()
    padding = onnx.helper.make_node("Equal", ["input_ids", "zero_token"], ["is_padding"])
    mask = next(node for node in proto.graph.node if "attention_mask" in node.input)
    place = list(proto.graph.node).index(mask)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.int64(0), "zero_token"))
    sums = onnx.helper.make_node("Cast", ["is_padding"], ["padding"], to=onnx.TensorProto.INT64)
    marked = onnx.helper.make_node("Sub", ["attention_mask", "padding"], ["marked_mask"])
    for node in proto.graph.node:
        node.input[:] = ["marked_mask" if name == "attention_mask" else name for name in node.input]
    for node in (marked, sums, padding):
        proto.graph.node.insert(place, node)
    with wn.load_onnx(proto, context, kv_cache=4) as model:
        model.run({"input_ids": [[5]], "attention_mask": [[1]]})
        with pytest.raises(wn.NotSupportedError, match="a mask or position depends on the tokens"):
            web.write(model, tmp_path)


def test_tables_of_steps_are_checked(context: wn.MLContext, tmp_path: Path) -> None:
    with wn.load_onnx(gpt(), context, kv_cache=4) as model:
        model.run({"input_ids": [[5]], "attention_mask": [[1]]})
        web.write(model, tmp_path)
    path = tmp_path / "model.json"
    content = path.read_text()
    for old, new, said in (
        ('"rows": 4', '"rows": 5', "the table must have a row for each token"),
        ('"rows": 4', '"rows": 0', "the number is out of range"),
        ('"tokens": "input_ids"', '"tokens": "none"', "unknown value"),
        ('"tables": {', '"tables": {"none": {}, ', "a table must be of an input"),
    ):
        path.write_text(content.replace(old, new))
        with pytest.raises(FileError, match=said):
            read_web_model(tmp_path)


def test_a_page_of_tokens_needs_a_decoder(reference: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(reference)
    with builder.build({"y": builder.relu(builder.input("x", {"dataType": "float32", "shape": [2]}))}) as graph:
        with pytest.raises(wn.MLTypeError, match="the page needs a decoder"):
            web.write(graph, tmp_path, page=web.TokensPage())


def test_a_folder_has_no_options(context: wn.MLContext, folder: Path) -> None:
    with pytest.raises(wn.NotSupportedError, match="a compiled graph, which override_dims does not change"):
        wn.load(folder, context, override_dims={"n": 1})


def test_numpy_runs_no_folder(reference: wn.MLContext, folder: Path) -> None:
    with pytest.raises(wn.NotSupportedError, match="no WebGPU device"):
        wn.load(folder, reference)


def test_a_device_must_have_what_the_folder_requires(folder: Path) -> None:
    requires = read_web_model(folder).requires
    assert list(missing_of(requires, Caps())) == []
    more = replace(
        requires, features=("shader-f16", "subgroups"), limits={"maxBufferSize": 2**40}, subgroup_size=32, alignment=64
    )
    assert [what for what, _, _ in missing_of(more, Caps())] == [
        "the feature 'shader-f16'",
        "the feature 'subgroups'",
        "the limit maxBufferSize",
        "the alignment of offsets",
        "the size of subgroups",
    ]
    unknown = replace(requires, limits={"maxNonsense": 1})
    assert [what for what, _, _ in missing_of(unknown, Caps())] == ["the limit maxNonsense"]


def test_facts_of_the_format_are_those_of_kernels() -> None:
    assert set(ELEMENT_NAMES) == set(ELEMENTS)
    assert PAD_BYTES == STORAGE_ALIGNMENT_BYTES
    assert {DASHED[name]: limit for name, limit in DEFAULT_LIMITS.items()}.items() <= WGPU_LIMITS.items()


def _first(kind: str) -> Callable[[Any], Any]:
    return lambda content: next(b for d in content["dispatches"] for b in d["bindings"] if kind in b)


def _set(place: Callable[[Any], Any], key: Any, value: Any) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        place(content)[key] = value

    return change


def _alone(content: Any) -> None:
    content["dispatches"][1]["label"] = content["dispatches"][0]["label"]


def _same(content: Any) -> None:
    dispatch = next(d for d in content["dispatches"] if any("slot" in b or "output" in b for b in d["bindings"]))
    dispatch["bindings"][0] = dispatch["bindings"][-1]


WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "format": (_set(lambda c: c, "format", "other"), r"model\.json: the file is no compiled graph; got 'other'"),
    "version": (_set(lambda c: c, "version", 99), r"model\.json:version: the version is unknown; got 99"),
    "no member": (lambda c: c.pop("slots"), r"model\.json: the member 'slots' is missing"),
    "outside": (_set(lambda c: c["files"], "../x.bin", 3), r"files: the file must be in the folder; got '\.\./x\.bin'"),
    "absolute": (_set(lambda c: c["files"], "/etc/passwd", 3), r"must be in the folder; got '/etc/passwd'"),
    "no file": (_set(lambda c: c["files"], "more.bin", 3), r"files\.more\.bin: the file is missing"),
    "file size": (_set(lambda c: c["files"], "weights-0.bin", 3), r"files\.weights-0\.bin: the file has another size"),
    "kernel outside": (_set(lambda c: c["kernels"][0], "file", "../../k.wgsl"), r"kernels\[0\]\.file: the file must be in"),
    "kernel file": (_set(lambda c: c["kernels"][0], "file", "kernels/none.wgsl"), r"kernels\[0\]\.file: the file is missing"),
    "constant beyond": (
        _set(lambda c: c["constants"][0], "bytes", 2**50),
        r"constants\[0\]: the range must be within its file",
    ),
    "constant offset": (
        _set(lambda c: c["constants"][0], "offset", 2**50),
        r"constants\[0\]: the range must be within its file",
    ),
    "negative": (
        _set(lambda c: c["constants"][0], "offset", -4),
        r"constants\[0\]\.offset: the number is out of range",
    ),
    "huge slot": (_set(lambda c: c["slots"], 0, 2**60), r"slots\[0\]: the number is out of range"),
    "float": (_set(lambda c: c["slots"], 0, 1.5), r"slots\[0\]: the number is out of range; got 1\.5"),
    "huge shape": (_set(lambda c: c["inputs"]["x"], "shape", [2**31 - 1] * 3), r"inputs\.x: the tensor is too large"),
    "rank": (_set(lambda c: c["inputs"]["x"], "shape", [1] * 9), r"inputs\.x\.shape: the rank is too high"),
    "type": (_set(lambda c: c["inputs"]["x"], "dataType", "float8"), r"inputs\.x\.dataType: unknown value; got 'float8'"),
    "no kernel": (_set(lambda c: c["dispatches"][0], "kernel", 99), r"dispatches\[0\]\.kernel: there is no such kernel"),
    "no slot": (_set(_first("slot"), "slot", 99), r"slot: there is no such slot"),
    "no input": (_set(_first("input"), "input", "z"), r"input: there is no such input"),
    "binding beyond": (_set(_first("constant"), "bytes", 2**40), r"the binding must be within its buffer"),
    "binding offset": (_set(_first("slot"), "offset", 2**30), r"the binding must be within its buffer"),
    "bindings": (lambda c: c["dispatches"][0]["bindings"].pop(), r"dispatches\[0\]\.bindings: the dispatch must bind what"),
    "two kinds": (_set(_first("input"), "slot", 0), r"a binding must have one resource"),
    "written input": (
        lambda c: c["dispatches"][-1]["bindings"].__setitem__(-1, {"input": "x", "offset": 0, "bytes": 64}),
        r"the kernel must not write to 'x'",
    ),
    "read and written": (_same, r"bindings: a buffer must not be read and written in one dispatch"),
    "grid": (_set(lambda c: c["dispatches"][0], "grid", [1, 0, 1]), r"dispatches\[0\]\.grid\[1\]: the number is out of range"),
    "uniform": (_set(lambda c: c["dispatches"][0], "uniform", 2**40), r"the uniforms must be within the uniform data"),
    "labels": (_alone, r"dispatches: two dispatches have the same label"),
    "texture": (_set(lambda c: c["constants"][0], "texture", [3, 3]), r"a texture must have a width and a height"),
    "texels": (
        lambda c: [c["kernels"][0]["bindings"][1].update(access="texture"), c["constants"][0].update(texture=[1, 1], bytes=4)],
        r"as float32",
    ),
    "element": (_set(lambda c: c["kernels"][0]["bindings"][0], "element", "float99"), r"element: unknown value; got 'float99'"),
    "access": (_set(lambda c: c["kernels"][0]["bindings"][0], "access", "atomic"), r"access: unknown value; got 'atomic'"),
    "sample": (_set(lambda c: c["sample"]["outputs"]["maps"], "bytes", 4), r"sample\.outputs: 'maps' must have"),
    "alias": (
        _set(lambda c: c["outputs"]["maps"], "alias", "x"),
        r"outputs\.maps\.alias: the alias must be an input",
    ),
    "list": (_set(lambda c: c, "kernels", {}), r"kernels: the value must be a list"),
    "name": (_set(lambda c: c, "name", 3), r"name: the value must be a string"),
    "surrogate": (_set(lambda c: c["kernels"][0], "file", "\ud800"), r"file: the value must be a string of Unicode"),
    "surrogate name": (_set(lambda c: c["files"], "\ud800", 3), r"files: a name must be a string of Unicode characters"),
    "long name": (_set(lambda c: c["files"], "x" * 5000, 3), r"files: the file must be in the folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_folder_is_refused_with_file_and_culprit(folder: Path, case: str) -> None:
    change, message = WRONG[case]
    content = json.loads((folder / "model.json").read_text())
    change(content)
    (folder / "model.json").write_text(json.dumps(content))
    with pytest.raises(FileError, match=message) as raised:
        read_web_model(folder)
    assert str(folder / "model.json") in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the file is no JSON"),
        ("[]", "the value must be an object"),
        ("[" * 100_000, "the file is nested too deeply"),
        ('{"a": NaN}', "the number NaN, which JSON does not have"),
        ('{"a": ' + "9" * 5000 + "}", "a number that is too long"),
        ("\xff", "the file is no JSON"),
    ],
)
def test_what_is_no_model_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=message):
        read_web_model(folder)


def test_a_link_out_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes((folder / "weights-0.bin").read_bytes())
    (folder / "weights-0.bin").unlink()
    (folder / "weights-0.bin").symlink_to(tmp_path / "secret")
    with pytest.raises(FileError, match="which is a link out of it"):
        read_web_model(folder)


def test_a_kernel_that_wants_larger_buffers_is_refused(context: wn.MLContext, folder: Path) -> None:
    content = json.loads((folder / "model.json").read_text())
    kernel = content["kernels"][content["dispatches"][0]["kernel"]]
    source = (folder / kernel["file"]).read_text()
    changed = re.sub(r"(@binding\(0\) var<storage, read> \w+: )array<[^;]+>;", r"\1array<f32, 100000>;", source)
    assert changed != source
    (folder / kernel["file"]).write_text(changed)
    with pytest.raises(wn.OperationError):
        wn.load(folder, context)
