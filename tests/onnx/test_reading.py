"""Model files: those that are broken or hostile are refused with a reason, large weights stay where they lie."""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import webnn_wgpu as wn
from tests.onnx.models import model_of, parsed
from webnn_wgpu.frontends.onnx.embedded import Malformed, fields, without_weights

RELU = "g (float[2] x) => (float[2] y) { y = Relu (x) }"


def weighted(rows: int = 400) -> onnx.ModelProto:
    w = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], {"x": (np.float32, [2, rows])}, ["y"], {"w": w})


def test_weights_stay_in_the_file(context, tmp_path):
    path = tmp_path / "m.onnx"
    data = weighted().SerializeToString()
    path.write_bytes(data)
    light = without_weights(memoryview(data), path.name)
    assert len(light) < len(data) / 4
    x = np.ones((2, 400), np.float32)
    expected = x @ numpy_helper.to_array(weighted().graph.initializer[0])
    for source in (path, data, weighted()):
        np.testing.assert_allclose(wn.load_onnx(source, context).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_weights_that_say_themselves_where_they_lie(context, tmp_path):
    model = weighted()
    model.graph.initializer[0].data_location = onnx.TensorProto.DEFAULT  # written although it is the default
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.ones((2, 400), np.float32)
    expected = x @ numpy_helper.to_array(model.graph.initializer[0])
    np.testing.assert_allclose(wn.load(path, context).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_initializers_without_data_are_refused(context):
    model = weighted()
    model.graph.initializer[0].ClearField("raw_data")
    with pytest.raises(wn.NotSupportedError, match="initializer 'w' has no data"):
        wn.load_onnx(model, context)


def test_external_data(context, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    onnx.save(weighted(), folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    x = np.ones((2, 400), np.float32)
    expected = x @ numpy_helper.to_array(weighted().graph.initializer[0])
    np.testing.assert_allclose(wn.load(folder / "m.onnx", context).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(wn.NotSupportedError, match=r"keeps 'w' in the file 'w.bin': load it by its path"):
        wn.load_onnx((folder / "m.onnx").read_bytes(), context)
    (folder / "w.bin").write_bytes((folder / "w.bin").read_bytes()[:-1])
    with pytest.raises(wn.NotSupportedError, match=r"m.onnx: 'w' reaches beyond the end of its data in 'w.bin'"):
        wn.load(folder / "m.onnx", context)
    (folder / "w.bin").unlink()
    with pytest.raises(wn.NotSupportedError, match=r"keeps 'w' in 'w.bin', which is not there"):
        wn.load(folder / "m.onnx", context)


@pytest.mark.parametrize("external", [False, True])
def test_files_under_other_names_that_are_linked_to(context, tmp_path, external):
    """Hugging Face's cache has links of the right names to files that are named by their digests."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    onnx.save(weighted(), tmp_path / "m.onnx", save_as_external_data=external, location="w.bin", size_threshold=0)
    for name, digest in (("m.onnx", "a1"), ("w.bin", "b2")):
        if (tmp_path / name).exists():
            (tmp_path / name).rename(blobs / digest)
            (snapshot / name).symlink_to(f"../../blobs/{digest}")
    x = np.ones((2, 400), np.float32)
    expected = x @ numpy_helper.to_array(weighted().graph.initializer[0])
    np.testing.assert_allclose(wn.load(snapshot / "m.onnx", context).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_files_with_several_names(context, tmp_path):
    onnx.save(weighted(), tmp_path / "a.onnx")
    (tmp_path / "b.onnx").hardlink_to(tmp_path / "a.onnx")
    assert wn.load(tmp_path / "b.onnx", context).run({"x": np.ones((2, 400), np.float32)})["y"].shape == (2, 3)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists the open files")
def test_a_file_is_opened_once_for_all_its_weights(context, tmp_path):
    def opened() -> int:
        """The number of descriptors of the file. Drivers open files of their own."""
        targets: list[str] = []
        for descriptor in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # that of the listing is closed again
                targets.append(os.readlink(descriptor))
        return targets.count(str((tmp_path / "m.onnx").resolve()))

    names = [f"w{i}" for i in range(40)]
    nodes = [helper.make_node("Add", ["x", names[0]], ["y0"])]
    nodes += [helper.make_node("Mul", [f"y{i}", names[i + 1]], [f"y{i + 1}"]) for i in range(39)]
    weights = {name: np.ones(400, np.float32) for name in names}
    onnx.save(model_of(nodes, {"x": (np.float32, [400])}, ["y39"], weights), tmp_path / "m.onnx")
    gc.collect()
    assert opened() == 0
    model = wn.load(tmp_path / "m.onnx", context)
    assert opened() <= 1
    model.destroy()
    del model
    for _ in range(100):  # nor do models that are gone keep theirs for long
        wn.load(tmp_path / "m.onnx", context).destroy()
    assert opened() < 50


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "a/../../secret", "link/secret"])
def test_external_data_outside_the_folder_is_refused(context, tmp_path, location):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(4800))
    (folder / "a").mkdir()
    (folder / "link").symlink_to(tmp_path)
    model = weighted()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(wn.NotSupportedError, match="outside the model's folder"):
        wn.load(folder / "m.onnx", context)


def test_every_truncation_is_refused_or_whole(context, tmp_path):
    data = weighted().SerializeToString()
    path = tmp_path / "m.onnx"
    for end in (0, 1, 2, 7, 20, 100, len(data) // 2, len(data) - 40, len(data) - 3, len(data) - 1):
        path.write_bytes(data[:end])
        for source in (path, data[:end]):
            with pytest.raises(wn.NotSupportedError):
                wn.load_onnx(source, context)


def test_not_a_model(context, tmp_path):
    path = tmp_path / "text.onnx"
    path.write_text("import onnx\n" * 100)
    with pytest.raises(wn.NotSupportedError, match=r"text.onnx is not an ONNX model"):
        wn.load(path, context)
    with pytest.raises(FileNotFoundError):
        wn.load(tmp_path / "none.onnx", context)
    with pytest.raises(wn.NotSupportedError, match=r"models of this kind cannot be read; got '.txt'"):
        wn.load("model.txt", context)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture. A picture is an input: webnn-wgpu run model.onnx -i PICTURE"),
        (b"\x89PNG\r\n\x1a\n", "a PNG picture. A picture is an input"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a pointer of Git LFS. git lfs pull downloads the model"),
        (b"PK\x03\x04\x00\x00", "a ZIP archive, as PyTorch and Keras write. torch.onnx.export"),
        (b"\x1c\x00\x00\x00TFL3\x14\x00", "a TFLite model. The file's name must end in .tflite"),
        ("Größe".encode()[:-1], "a text"),
        (b"", "an empty file"),
    ],
)
def test_files_of_other_kinds(context: wn.MLContext, tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(wn.NotSupportedError, match=f"model.onnx is not an ONNX model; got {found}"):
        wn.load(path, context)


def broken(change) -> onnx.ModelProto:
    model = parsed("g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { h = Add (x, c) y = Relu (h) }")
    change(model)
    return model


def cycle(model):
    model.graph.node[0].input[0] = "y"


def unknown_value(model):
    model.graph.node[1].input[0] = "nobody"


def unknown_output(model):
    model.graph.output[0].name = "nobody"


def short_weights(model):
    model.graph.initializer[0].dims[0] = 3


def absurd_weights(model):
    model.graph.initializer[0].dims[0] = 2**62


def negative_size(model):
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3


def newer(model):
    model.opset_import[0].version = 99


def older(model):
    model.opset_import[0].version = 0


def no_operator_sets(model):
    del model.opset_import[:]


def of_strings(model):
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING


def unknown_operator(model):
    model.graph.node[1].op_type = "Frobnicate"


def unknown_domain(model):
    model.graph.node[1].domain = "org.example"


def two_producers(model):
    model.graph.node[1].output[0] = "h"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cycle, "cycle|Cycle"),
        (unknown_value, "reads 'nobody', which nothing defines"),
        (unknown_output, "output 'nobody' is defined by nothing"),
        (short_weights, "initializer 'c' of 'g' cannot be read"),
        (absurd_weights, "initializer 'c' of 'g' cannot be read"),
        (negative_size, "'x' has a size of -3"),
        (newer, "uses operator set 99; allowed: 1 up to"),
        (older, "uses operator set 0; allowed: 1 up to"),
        (no_operator_sets, "does not say which operator sets it uses"),
        (of_strings, "'x' is STRING, not a tensor of numbers"),
        (unknown_operator, r"node '.*' \(Frobnicate, ai.onnx opset 21\)"),
        (unknown_domain, r"node '.*' \(Relu, org.example opset 1\)"),
        (two_producers, "broken|defined by nothing"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_broken_models_are_refused(context, change, message):
    with pytest.raises(wn.NotSupportedError, match=message):
        wn.load_onnx(broken(change), context).run({"x": np.ones(2, np.float32)})


def test_an_input_that_is_an_output_without_a_type_keeps_its_own(context):
    model = parsed(RELU)
    model.graph.output.add(name="x")
    x = np.float32([-1, 2])
    given = wn.load_onnx(model, context).run({"x": x})
    np.testing.assert_array_equal(given["x"], x)
    np.testing.assert_array_equal(given["y"], [0, 2])


def test_functions_that_call_themselves_are_refused(context):
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]> g (float[2] x) => (float[2] y) { y = f.a (x) }
    <domain: "f", opset_import: ["" : 21, "f" : 1]> a (x) => (y) { y = f.b (x) }
    <domain: "f", opset_import: ["" : 21, "f" : 1]> b (x) => (y) { y = f.a (x) }"""
    with pytest.raises(wn.NotSupportedError, match="function f::a calls itself"):
        wn.load_onnx(onnx.parser.parse_model(text), context)


def test_functions_that_would_grow_without_end_are_refused(context):
    functions = "".join(
        f"""<domain: "f", opset_import: ["" : 21, "f" : 1]> a{i} (x) => (y) {{ t = f.a{i + 1} (x) y = f.a{i + 1} (t) }}\n"""
        for i in range(40)
    )
    text = f"""<ir_version: 10, opset_import: ["" : 21, "f" : 1]> g (float[2] x) => (float[2] y) {{ y = f.a0 (x) }}
    {functions} <domain: "f", opset_import: ["" : 21, "f" : 1]> a40 (x) => (y) {{ y = Relu (x) }}"""
    with pytest.raises(wn.NotSupportedError, match="nodes once its functions are inlined; allowed: up to 1000000"):
        wn.load_onnx(onnx.parser.parse_model(text), context)


def test_local_functions_are_inlined(context):
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = f.scaled <alpha = 3.0> (x) }
    <domain: "f", opset_import: ["" : 21]>
    scaled <alpha> (x) => (y) { c = Constant <value_float : float = @alpha> () y = Mul (x, c) }"""
    model = wn.load_onnx(onnx.parser.parse_model(text), context, fallback="error")
    assert model.run({"x": np.float32([1, 2])})["y"].tolist() == [3, 6]


@pytest.mark.parametrize(
    "text",
    [
        "g () => (float[N] y) <int64[1] n = {1099511627776}> { y = ConstantOfShape (n) }",
        "g (float[1] x) => (float[N] y) <int64[1] n = {1099511627776}> { y = Expand (x, n) }",
        "g () => (int64[N] y) <int64 a = {0}, int64 b = {9007199254740992}, int64 s = {1}> { y = Range (a, b, s) }",
        "g (float[2] x) => (float[N] y) <int64[1] n = {1099511627776}> { y = Tile (x, n) }",
        "g (float[2] x) => (float[N] y) <int64[2] n = {0, 1099511627776}> { y = Pad (x, n) }",
    ],
    ids=["ConstantOfShape", "Expand", "Range", "Tile", "Pad"],
)
def test_absurd_sizes_are_refused_before_anything_is_allocated(context, text):
    model = parsed(text)
    with pytest.raises(wn.WebNNError):
        wn.load_onnx(model, context).run({i.name: np.ones([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
                                          for i in model.graph.input})  # fmt: skip


def test_indices_that_do_not_fit_are_refused_at_once(context):
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1)
    data, indices = np.ones((3, 5, 6, 6, 5, 3, 4), np.float32), np.zeros((1, 3, 6, 6, 5, 3, 4), np.int64)
    for wrong in (indices.reshape(3, 1, 6, 6, 5, 4, 3), np.zeros((4, 1, 6, 6, 5, 3, 4), np.int64), indices[0]):
        with pytest.raises(wn.NotSupportedError, match="GatherElements"):
            wn.load_onnx(model_of([node], {}, ["y"], {"x": data, "i": wrong}), context).run({})


def test_walking_a_message():
    data = memoryview(onnx.TensorProto(dims=[1, 300], name="w", raw_data=b"12").SerializeToString())
    assert [f.number for f in fields(data, 0, len(data))] == [1, 1, 8, 9]
    for bad in (b"\xff" * 11, b"\x0a\x05abc", b"\x0b", b"\x0d\x01"):
        with pytest.raises(Malformed):
            list(fields(memoryview(bad), 0, len(bad)))


def test_loading_without_the_onnx_package(monkeypatch):
    import sys

    for name in [n for n in sys.modules if n.startswith("webnn_wgpu.frontends.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx_ir", None)
    with pytest.raises(wn.NotSupportedError, match=r"needs the package 'onnx_ir'. pip install 'webnn-wgpu\[onnx\]'"):
        wn.load_onnx(b"")
    with pytest.raises(wn.NotSupportedError, match=r"Model needs the package 'onnx_ir'"):
        assert wn.Model


@pytest.mark.parametrize("text", ["Relu", "hidden", "given", "result", "first_node"])
def test_names_that_are_no_text_are_refused(context, text):
    node = onnx.helper.make_node("Relu", ["given"], ["hidden"], name="first_node")
    model = parsed("g (float[2] given) => (float[2] result) { result = Neg (hidden) }")
    model.graph.node.insert(0, node)
    data = model.SerializeToString()
    assert wn.load_onnx(data, context).run({"given": np.float32([-1, 2])})["result"].tolist() == [0, -2]
    with pytest.raises(wn.NotSupportedError, match=r"has a name that is no UTF-8: b'.*\\xff"):
        wn.load_onnx(data.replace(text.encode(), b"\xff" + text[1:].encode()), context)
