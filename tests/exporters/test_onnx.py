"""ONNX models: the checker accepts them, onnxruntime computes the same, and our importer too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

import webnn_wgpu as wn
from examples.models import bert, mobilenet_v2, quantized
from tests.conformance import sources
from tests.exporters.operator_calls import calls
from tests.formats.test_writing import NAMES
from tests.optional import REPOSITORY
from tests.rotation import share_of_today
from tests.support import op_graph
from webnn_wgpu.exporters.onnx import to_onnx
from webnn_wgpu.testing import build_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.kernels.operators import Call
    from webnn_wgpu.testing import Case


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Check a model and run it in onnxruntime."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})


def assert_close(results: list[Any], expected: Mapping[str, Any], rounding: int = 0) -> None:
    for result, array in zip(results, expected.values(), strict=True):
        assert (result.dtype, result.shape) == (array.dtype, array.shape)
        if array.dtype.kind != "f":
            difference = np.abs(result.astype(np.float64) - array.astype(np.float64))
            assert difference.max(initial=0) <= rounding
            continue
        largest = max(1.0, float(np.abs(array[np.isfinite(array)], dtype=np.float64).max(initial=0)))
        relative, absolute = (8e-3, 4e-3) if array.dtype == np.float16 else (2e-4, 2e-5)
        np.testing.assert_allclose(
            result.astype(np.float64), array.astype(np.float64), rtol=relative, atol=absolute * largest, equal_nan=True
        )


WITHOUT_NODES = frozenset({"x.cache_update", "x.random_bits"})
"""Operators that ONNX does not have."""


@pytest.mark.parametrize("call", [c for c in calls() if c.name not in WITHOUT_NODES], ids=str)
def test_calls_of_all_operators(call: Call, reference: wn.MLContext) -> None:
    arrays = call.arrays()
    graph = reference._compile(op_graph(call.name, arrays, call.attrs, call.constants), None, (), "test")
    feeds = {name: arrays[int(name)] for name in graph.inputs}
    # onnxruntime interpolates integers in float32, where halves are not exact.
    rounding = 1 if str(call).startswith("resample2d-linear-uint8") else 0
    assert_close(run(to_onnx(graph), feeds), reference.compute(graph, feeds), rounding)


WITHOUT_KERNEL = frozenset({"reduce_max", "reduce_min", "arg_max", "arg_min"})
"""Operators of uint64 that ONNX has and onnxruntime does not."""

SHARES = 50
TODAY, _ = share_of_today(REPOSITORY, SHARES)
CASES = [case for case in sources.all_cases() if crc32(f"{case.operator}: {case.name}".encode()) % SHARES == TODAY - 1]
"""The share of the conformance cases that has its turn."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.operator}: {c.name}")
def test_conformance_cases_through_files_and_onnx(case: Case, tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    built = build_case(builder, case)
    graph = builder.build(built.outputs)
    expected = reference.compute(graph, built.feeds)
    for name in ("g.webnn", "g.json"):
        graph.save(tmp_path / name, weights="inline")
        with wn.load(tmp_path / name, reference) as model:
            results = model.run(built.feeds)
        assert {n: a.tobytes() for n, a in results.items()} == {n: a.tobytes() for n, a in expected.items()}
    model = to_onnx(graph)
    if case.operator in WITHOUT_KERNEL and any(tensor.data_type == "uint64" for tensor in case.inputs.values()):
        onnx.checker.check_model(model, full_check=True)
        return
    exported = dict(zip(expected, run(model, built.feeds), strict=True))
    if case.operator == "sign":  # the Sign of ONNX is NaN for NaN, that of WebNN is 0
        exported = {name: np.nan_to_num(array, nan=0.0) for name, array in exported.items()}
    if case.name.endswith("minValue as Infinity"):
        # The Clip of onnxruntime takes the largest number for an infinite bound.
        exported = {name: np.where(array == np.finfo(array.dtype).max, np.inf, array) for name, array in exported.items()}
    if case.mismatches(exported):
        assert_close(list(exported.values()), expected)


@pytest.mark.parametrize("call", [c for c in calls() if c.name in WITHOUT_NODES], ids=str)
def test_operators_that_onnx_does_not_have_are_refused_by_name(call: Call, reference: wn.MLContext) -> None:
    graph = reference._compile(op_graph(call.name, call.arrays(), call.attrs, call.constants), None, (), "test")
    with pytest.raises(wn.NotSupportedError, match=rf"save\('test'\): {call.name} has no composition"):
        to_onnx(graph)


def test_what_onnx_does_not_have_is_refused_by_name(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    graph = builder.build({"y": builder.ext.bitcast(x, "int32", label="bits")})
    assert to_onnx(graph).opset_import[0].version == 26
    with pytest.raises(
        wn.NotSupportedError, match=r"\('bits'\): x.bitcast needs a newer .* got opset 21; allowed: at least 26"
    ):
        to_onnx(graph, opset=21)
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 1, 8, 8]})
    graph = builder.build({"y": builder.average_pool2d(x, window_dimensions=[2, 2], dilations=[2, 2], label="p")})
    assert to_onnx(graph).opset_import[0].version == 21
    with pytest.raises(
        wn.NotSupportedError, match=r"\('p'\): averagePool2d needs a newer .* got opset 18; allowed: at least 19"
    ):
        to_onnx(graph, opset=18)


@pytest.mark.parametrize("data_type", ["int64", "uint64"])
def test_max_pools_of_types_that_onnx_pools_do_not_have(data_type: str, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": data_type, "shape": [1, 2, 7, 6]})
    y = builder.max_pool2d(x, window_dimensions=[3, 2], padding=[1, 0, 2, 1], strides=[2, 1], dilations=[2, 1], layout="nchw")
    last = builder.max_pool2d(x, window_dimensions=[2, 2], layout="nhwc")
    graph = builder.build({"y": y, "last": last})
    info = np.iinfo(data_type)
    values = np.random.default_rng(0).integers(info.min, info.max, (1, 2, 7, 6), data_type, endpoint=True)
    assert_close(run(to_onnx(graph), {"x": values}), reference.compute(graph, {"x": values}))


def test_a_transpose_of_a_scalar(reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": []})
    graph = builder.build({"y": builder.transpose(x)})
    assert_close(run(to_onnx(graph), {"x": np.array(3, np.float32)}), {"y": np.array(3, np.float32)})


@pytest.mark.parametrize("model", [mobilenet_v2, bert, quantized], ids=lambda m: m.__name__)
def test_models_become_graph_files_and_onnx_again(model: Any, tmp_path: Path, reference: wn.MLContext) -> None:
    onnx.save(model(), tmp_path / "model.onnx")
    source = tmp_path / "model.onnx"
    sizes = {d.dim_param: 2 for i in onnx.load(source).graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    wn.convert(source, tmp_path / "g.webnn", override_dims=sizes)
    wn.convert(tmp_path / "g.webnn", tmp_path / "again.onnx")
    graph = wn.MLGraph.load(tmp_path / "g.webnn", context=reference)
    random = np.random.default_rng(0)
    feeds = {
        name: random.integers(0, 2, t.shape).astype(t.data_type)
        if "int" in t.data_type
        else random.standard_normal(t.shape).astype(t.data_type)
        for name, t in graph.inputs.items()
    }
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    # The importer may leave out inputs of masks that are all ones.
    given = {i.name: feeds.get(i.name, np.ones([sizes.get(d, d) for d in i.shape], np.int64)) for i in session.get_inputs()}
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, given), strict=True))
    assert_close(run(onnx.load(tmp_path / "again.onnx"), feeds), expected)


@pytest.mark.parametrize("dynamic", [None, {"n": 8}], ids=["fixed", "dynamic"])
def test_converting_keeps_the_order_of_inputs_and_outputs(tmp_path: Path, dynamic: dict[str, int] | None) -> None:
    source = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[n] ids, float[n] mask, float[n] bias) => (float[n] sum, float[n] difference)
        { difference = Sub(mask, bias) sum = Add(difference, ids) }"""
    )
    onnx.save(source, tmp_path / "source.onnx")
    wn.convert(tmp_path / "source.onnx", tmp_path / "target.onnx", override_dims=None if dynamic else {"n": 2}, dynamic=dynamic)
    target = onnx.load(tmp_path / "target.onnx")
    assert [i.name for i in target.graph.input] == ["ids", "mask", "bias"]
    assert [o.name for o in target.graph.output] == ["sum", "difference"]
    feeds = {name: np.full(2, number, np.float32) for name, number in {"ids": 4, "mask": 2, "bias": 1}.items()}
    assert [list(result) for result in run(target, feeds)] == [[5, 5], [1, 1]]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflection"])
def test_a_pad_of_a_scalar_is_read_again(tmp_path: Path, reference: wn.MLContext, mode: Any) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": []})
    builder.build({"y": builder.pad(x, [], [], mode=mode)}).save(tmp_path / "g.onnx")
    with wn.load(tmp_path / "g.onnx", reference) as model:
        assert model.run({"x": np.float32(3)})["y"] == 3


def test_gelu_of_large_numbers_is_exported_without_an_overflow(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    graph = builder.build({"y": builder.gelu(builder.input("x", {"dataType": "float32", "shape": [3]}))})
    x = np.float32([3e38, -3e38, 1])
    graph.save(tmp_path / "g.onnx", opset=18)
    with wn.load(tmp_path / "g.onnx", reference) as model:
        np.testing.assert_allclose(model.run({"x": x})["y"], reference.compute(graph, {"x": x})["y"], rtol=1e-6)


def test_external_data_and_determinism(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 64]})
    weights = builder.constant(np.random.default_rng(0).random((64, 8), np.float32))
    packed = builder.constant({"dataType": "int4", "shape": [3]}, np.array([-8, 7, 1], ml_dtypes.int4))
    scale, zero = (
        builder.constant(np.ones(1, np.float32)),
        builder.constant({"dataType": "int4", "shape": [1]}, np.zeros(1, ml_dtypes.int4)),
    )
    graph = builder.build({"y": builder.matmul(x, weights, label="p"), "w": builder.dequantize_linear(packed, scale, zero)})
    graph.save(tmp_path / "g.onnx", external_data=True)
    assert {p.name for p in tmp_path.iterdir()} == {"g.onnx", "g.onnx.data"}
    first = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    graph.save(tmp_path / "g.onnx", external_data=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == first
    feeds = {"x": np.ones((4, 64), np.float32)}
    session = onnxruntime.InferenceSession(str(tmp_path / "g.onnx"), providers=["CPUExecutionProvider"])
    assert_close(session.run(None, feeds), reference.compute(graph, feeds))
    model = onnx.load(tmp_path / "g.onnx")
    assert [node.name for node in model.graph.node if node.op_type == "MatMul"] == ["p"]
    assert (model.ir_version, model.producer_name) == (10, "webnn_wgpu")


@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input(name, {"dataType": "float32", "shape": [2]})
    graph = builder.build({f"{name}!": builder.relu(x, label=name), "copy": builder.identity(x)})
    model = to_onnx(graph)
    assert_close(run(model, {name: np.float32([-1, 2])}), {"a": np.float32([0, 2]), "b": np.float32([-1, 2])})
    assert [o.name for o in model.graph.output] == [f"{name}!", "copy"]
    assert model.graph.node[0].name == name


def test_dynamic_dimensions_stay(tmp_path: Path, reference: wn.MLContext) -> None:
    (tmp_path / "g.webnn").write_text(
        """webnn_graph "g" v2 {
          inputs { x: f32[dyn("n", 8), 2, 3]; }
          nodes { r = reshape(x, newShape=[{name: "n", maxSize: 8}, 6]); y = softmax(r, axis=1); }
          outputs { y; }
        }"""
    )
    wn.convert(tmp_path / "g.webnn", tmp_path / "g.onnx")
    model = onnx.load(tmp_path / "g.onnx")
    assert [d.dim_param or d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == ["n", 6]
    x = np.random.default_rng(0).random((5, 2, 3), np.float32)
    (result,) = run(model, {"x": x})
    assert_close([result], wn.load(tmp_path / "g.webnn", reference).run({"x": x}))
    wn.convert(tmp_path / "g.webnn", tmp_path / "again.webnn")
    assert 'newShape=[{name: "n", maxSize: 8}, 6]' in (tmp_path / "again.webnn").read_text()
    assert_close([result], wn.load(tmp_path / "again.webnn", reference).run({"x": x}))


def test_a_dimension_that_cannot_stay_dynamic_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "g.webnn").write_text(
        """webnn_graph "g" v2 {
          inputs { x: f32[dyn("n", 8), 3]; }
          nodes { y = slice(x, starts=[0, 0], sizes=[{name: "n", maxSize: 8}, 2], label="first"); }
          outputs { y; }
        }"""
    )
    with pytest.raises(
        wn.NotSupportedError, match=r"the dimension 'n' cannot stay dynamic: sizes of slice depends on its size"
    ):
        wn.convert(tmp_path / "g.webnn", tmp_path / "again.webnn")
