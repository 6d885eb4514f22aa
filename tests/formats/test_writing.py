"""Graphs that are written and read again are the same graphs, and the same bytes when they are written once more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import webnn_wgpu as wn
from tests.kernels.operators import Call, calls
from tests.support import op_graph
from webnn_wgpu.api.signatures import call_form, operator_names
from webnn_wgpu.exporters.weights import move_constants
from webnn_wgpu.formats.document import LIST_OPERATORS
from webnn_wgpu.formats.reading import ConstantArrays, read
from webnn_wgpu.formats.weights import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webnn_wgpu.ir.graph import Graph


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def content(graph: Graph) -> list[Any]:
    """Return what two graphs must have in common: operators with operands by number, options, types, constants."""
    numbers = {value: f"input {name}" for name, value in graph.inputs.items()}
    numbers |= {value: f"constant {array.dtype} {array.shape} {array.tobytes()!r}" for value, array in graph.constants.items()}
    found: list[Any] = [(name, str(graph.type(value))) for name, value in sorted(graph.inputs.items())]
    for i, node in enumerate(graph.nodes):
        operands = [None if value is None else numbers[value] for value in node.inputs]
        types = [str(graph.type(value)) for value in node.outputs]
        numbers |= {value: f"{i}.{j}" for j, value in enumerate(node.outputs)}
        found.append((node.op, operands, dict(node.attrs), types))
    return [*found, sorted((name, numbers[value]) for name, value in graph.outputs.items())]


def check(graph: wn.MLGraph, folder: Path, context: wn.MLContext, **options: Any) -> None:
    for name in ("g.webnn", "g.json"):
        graph.save(folder / name, **options)
        first = {path.name: path.read_bytes() for path in folder.iterdir()}
        loaded = wn.MLGraph.load(folder / name, context=context)
        assert content(loaded.source) == content(graph.source)
        loaded.save(folder / "g.webnn", **options)
        loaded.save(folder / "g.json", **options)
        again = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert {path: again[path] for path in first} == first


@pytest.mark.parametrize("call", calls(), ids=str)
def test_calls_of_all_operators(call: Call, tmp_path: Path, reference: wn.MLContext) -> None:
    source = op_graph(call.name, call.arrays(), call.attrs, call.constants)
    graph = reference._compile(source, None, (), "test")
    check(graph, tmp_path, reference, weights="inline", extensions="keep")


def test_the_operators_that_return_lists_are_known() -> None:
    standard = [name for name in operator_names() if not name.startswith("x.")]
    assert {name for name in standard if call_form(name).returns.startswith("list")} == LIST_OPERATORS


@pytest.mark.parametrize("weights", ["auto", "weights", "safetensors", "inline"])
def test_weights_in_files(weights: str, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 64]})
    large = builder.constant({"dataType": "float32", "shape": [64, 8]}, np.random.default_rng(0).random((64, 8), np.float32))
    small = builder.constant({"dataType": "float32", "shape": [8]}, np.arange(8, dtype=np.float32))
    packed = builder.constant({"dataType": "int4", "shape": [3000]}, (np.arange(3000) % 16 - 8).astype(ml_dtypes.int4))
    ones = builder.constant({"dataType": "float32", "shape": [1]}, np.ones(1, np.float32))
    zero = builder.constant({"dataType": "int4", "shape": [1]}, np.zeros(1, ml_dtypes.int4))
    graph = builder.build(
        {
            "y": builder.add(builder.matmul(x, large), small, label="sum"),
            "w": builder.dequantize_linear(packed, ones, zero),
        }
    )
    check(graph, tmp_path, reference, weights=weights)
    beside = {
        "auto": {"g.weights", "g.manifest.json"},
        "weights": {"g.weights", "g.manifest.json"},
        "safetensors": {"g.safetensors"},
        "inline": set[str](),
    }
    assert {path.name for path in tmp_path.iterdir()} == {"g.webnn", "g.json"} | beside[weights]
    assert "sum = add(" not in (tmp_path / "g.webnn").read_text()  # the output's name comes first
    assert 'label="sum"' in (tmp_path / "g.webnn").read_text()


def test_constants_keep_their_names(tmp_path: Path, reference: wn.MLContext) -> None:
    """Else files of two kinds with one file of weights would take each other's tensors."""
    (tmp_path / "g.webnn").write_text(
        """webnn_graph "g" v1 {
          inputs { x: f32[2]; }
          consts { b: f32[2] @bytes([0, 0, 0, 0, 0, 0, 128, 63]); a.x: f32[2] @bytes([0, 0, 128, 63, 0, 0, 0, 0]); }
          nodes { h = sub(b, x); y = mul(h, a.x, label="b"); z = exp(y); }
          outputs { z; }
        }"""
    )
    feeds = {"x": np.float32([2, 4])}
    expected = wn.load(tmp_path / "g.webnn", reference).run(feeds)["z"].tobytes()
    for source, target in (("g.webnn", "g.json"), ("g.json", "h.webnn"), ("h.webnn", "h.onnx"), ("h.onnx", "g.webnn")):
        wn.convert(tmp_path / source, tmp_path / target, **({} if target.endswith("onnx") else {"weights": "weights"}))
        assert wn.load(tmp_path / target, reference).run(feeds)["z"].tobytes() == expected
        if not target.endswith("onnx"):
            tensors = opened(tmp_path / f"{target[0]}.weights").tensors
            assert {key: tensor.data.tobytes() for key, tensor in tensors.items()} == {
                "a.x": np.float32([1, 0]).tobytes(),
                "b": np.float32([0, 1]).tobytes(),
            }
    assert wn.load(tmp_path / "g.json", reference).run(feeds)["z"].tobytes() == expected


@pytest.mark.parametrize("kind", ["webnn", "json"])
def test_the_sign_of_an_option_of_0_is_kept(kind: str, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    builder.build({"y": builder.linear(x, alpha=0.0, beta=-0.0)}).save(tmp_path / f"g.{kind}")
    found = wn.load(tmp_path / f"g.{kind}", reference).run({"x": np.float32([-1, 1])})["y"]
    assert np.signbit(found).tolist() == [True, False]


DIALECT = """#@name x_0 "x:0"
#@name y "the sum"
webnn_graph "g" v1 {
  inputs { x_0: f32[2, 3]; }
  consts { w: f32[3, 3] @scalar(0.5); b: f32[3] @bytes([0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64]); }
  nodes {
    g = gemm(x_0, w, c="b", alpha=2);
    other = g;
    s = softmax(other, 1);
    c = concat([s, g], axis=1);
    [l] = split(c, splits=1, axis=1);
    q = cast(l, to=f32);
    x_0 = reshape(q, [6, 2]);
    y = reduceSum(x_0, axes=[1]);
  }
  outputs { y; }
}
"""
"""Arguments by position, another name of an operand, operands as strings, remarks, and a name that is assigned anew."""


@pytest.mark.parametrize("kind", ["webnn", "json"])
def test_constants_of_other_writers_are_moved(kind: str, tmp_path: Path, reference: wn.MLContext) -> None:
    (tmp_path / "source.webnn").write_text(DIALECT)
    feeds = {"x:0": np.float32([[1, 2, 3], [-4, 5, -6]])}
    expected = wn.load(tmp_path / "source.webnn", reference).run(feeds)["the sum"]
    for place, least, source in (("weights", 0, "source.webnn"), ("inline", 0, f"weights.{kind}")):
        document = read(tmp_path / source)
        move_constants(document, ConstantArrays(document), tmp_path / f"{place}.{kind}", place, least)
        result = wn.load(tmp_path / f"{place}.{kind}", reference).run(feeds)["the sum"]
        np.testing.assert_array_equal(result, expected)


NAMES = [
    "x:0",
    "a b",
    'quo"te',
    "back\\slash",
    "line\nbreak",
    "ä",
    "1st",
    "$",
    "a$b",
    "-",
    "inputs",
    "x" * 300,
    "x_0",
    "#",
    "//",
    "🤦🏼\u200d♂️",
    "\u2028",
    "y; } /* \t",
]


@pytest.mark.parametrize("kind", ["webnn", "json"])
@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str, kind: str, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(name, {"dataType": "float32", "shape": [2]})
    other = builder.input("x_0 ", {"dataType": "float32", "shape": [2]})
    graph = builder.build({f"{name}!": builder.add(x, other), "same": builder.identity(x)})
    path = tmp_path / f"g.{kind}"
    graph.save(path)
    model = wn.load(path, reference)
    results = model.run({name: np.float32([1, 2]), "x_0 ": np.float32([3, 4])})
    assert {n: a.tolist() for n, a in results.items()} == {f"{name}!": [4, 6], "same": [1, 2]}


def test_what_files_cannot_have_is_refused(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    graph = builder.build({"y": builder.relu(x)})
    with pytest.raises(wn.MLTypeError, match=r"save: unknown weights; got 'zip'; allowed: auto, weights"):
        graph.save(tmp_path / "g.webnn", weights="zip")
    with pytest.raises(wn.NotSupportedError, match=r"save: unknown kind of file; got '.tflite'"):
        graph.save(tmp_path / "g.tflite")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_extension_operator_names_the_option_that_keeps_it(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [4]})
    graph = builder.build({"y": builder.ext.top_k(x, 2)[0]})
    for extensions in ("standard", "error"):
        with pytest.raises(wn.NotSupportedError, match=r"x\.top_k.*extensions='keep' writes such operators as x\.NAME"):
            graph.save(tmp_path / "g.webnn", extensions=extensions)
    with pytest.raises(wn.NotSupportedError, match=r"does not sort$"):
        graph.save(tmp_path / "g.mjs")
    graph.save(tmp_path / "g.webnn", extensions="keep")
    results = wn.load(tmp_path / "g.webnn", reference).run({"x": np.float32([1, 4, 2, 3])})
    assert results["y"].tolist() == [4, 3]


def test_the_json_form_has_the_documented_members(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    builder.build({"y": builder.reduce_mean(x, axes=[1])}).save(tmp_path / "mean.json", quantized=True)
    assert json.loads((tmp_path / "mean.json").read_text()) == {
        "format": "webnn-graph-json",
        "version": 1,
        "name": "mean",
        "quantized": True,
        "inputs": {"x": {"dataType": "float32", "shape": [2, 3]}},
        "consts": {},
        "nodes": [{"id": "y", "op": "reduceMean", "inputs": ["x"], "options": {"axes": [1]}, "outputs": ["y"]}],
        "outputs": {"y": "y"},
    }
