"""What is said of a model before and while it runs: `analyze`, `Model.profile`, default sizes, simplification."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples.models import bert, detector, mlp, quantized
from tests.support import open_profile
from webnn_wgpu.frontends.onnx import Profile, default_size, settle


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]> {text}')


def test_memory_is_that_of_the_plan(context: wn.MLContext) -> None:
    found = wn.analyze(mlp(), context, override_dims={"N": 5})
    with wn.load_onnx(mlp(), context, override_dims={"N": 5}) as model:
        plan = model.graph.plan
        assert plan is not None
        assert found.memory is not None
        assert (found.memory.weights, found.memory.slots) == (plan.constant_bytes, plan.slot_bytes)
        assert (found.graphs, found.dispatches) == (1, len(plan.dispatches))
        assert found.placement == model.placement
    assert found.shapes == {"x": (5, 4)}
    assert found.operators == {"Gemm": 2, "Relu": 1, "Identity": 1}
    assert (found.parameters, found.parameter_bytes) == (35, 140)
    assert found.opsets == {"ai.onnx": 21}
    assert found.memory.peak == 140 + found.memory.slots + 5 * 4 * 4 + 2 * 5 * 3 * 4


def test_nothing_is_made_on_the_device(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("analyze must make nothing")

    monkeypatch.setattr("webnn_wgpu.runtime.device.Device.create_gpu_buffer", fail)
    monkeypatch.setattr("webnn_wgpu.runtime.pipelines.PipelineCache.get", fail)
    assert wn.analyze(mlp(), context).problem == ""


def test_nodes_behind_the_host_are_looked_at_too(context: wn.MLContext) -> None:
    found = wn.analyze(parsed("g (float[4] x) => (float[4] z) { y = Relu(x) \n c = Bernoulli(y) \n z = Neg(c) }"), context)
    assert [(p.op, p.where) for p in found.placement] == [("Relu", "device"), ("Bernoulli", "host"), ("Neg", "device")]
    assert found.graphs == 2


def test_what_only_a_run_can_tell_is_later(context: wn.MLContext) -> None:
    found = wn.analyze(parsed("g (float[4] x) => (int64[N] z) { y = NonZero(x) \n z = Neg(y) }"), context)
    assert [(p.op, p.where) for p in found.placement] == [("NonZero", "host"), ("Neg", "later")]
    assert "known only when the model runs" in found.placement[1].note
    assert found.placement.summary().startswith("0 nodes on the device, 1 on the host, 0 evaluated beforehand, 1 later; on")
    assert str(found.placement).splitlines()[1].startswith("host: NonZero 'y' (")


def test_elements_of_an_input_may_be_needed(context: wn.MLContext) -> None:
    found = wn.analyze(
        parsed("g (float[4] x, int64[2] shape) => (float[a, b] z) { y = Neg(x) \n z = Reshape(y, shape) }"), context
    )
    assert [(p.op, p.where) for p in found.placement] == [("Neg", "device"), ("Reshape", "later")]


def test_an_unknown_operator_is_unsupported(context: wn.MLContext) -> None:
    found = wn.analyze(parsed("g (float[4] x) => (float[4] z) { y = com.example.Strange(x) \n z = Neg(y) }"), context)
    assert found.placement[0].where == "unsupported"
    assert found.placement[0].op == "com.example.Strange"
    assert "Strange" in found.placement[0].note


def test_profile_adds_up(context: wn.MLContext) -> None:
    with wn.load_onnx(mlp(), context) as model:
        x = np.ones((2, 4), np.float32)
        first, second = model.profile({"x": x}), model.profile({"x": x})
        np.testing.assert_array_equal(first.outputs["y"], model.run({"x": x})["y"])
    assert [s.kind for s in first.spans] == ["load", "lower", "compile", "submit", "run", "read back"]
    assert [s.kind for s in second.spans] == ["load", "submit", "run", "read back"]
    assert str(first).splitlines()[-1].split()[:3] == ["read", "back", "y"]
    # What the kernels' times cost is not part of the run.
    assert first.wall_ms >= sum(s.ms for s in first.spans if s.kind != "load")


def test_profile_has_the_kernels_of_each_graph_under_its_run(context: wn.MLContext) -> None:
    with wn.load_onnx(mlp(), context) as model:
        profile = model.profile({"x": np.ones((2, 4), np.float32)})
        plan = model.graph.plan
    (run,) = [s for s in profile.spans if s.kind == "run"]
    assert plan is not None
    assert [k.name for k in run.kernels] == [d.label for d in plan.dispatches]
    assert profile.gpu_ms == run.gpu_ms == pytest.approx(sum(k.microseconds for k in run.kernels) / 1e3)
    record = json.loads(profile.to_json())
    assert set(record) == {"wall_ms", "gpu_ms", "note", "spans"}
    assert [len(s["kernels"]) for s in record["spans"] if s["kind"] == "run"] == [len(plan.dispatches)]
    lines = str(profile).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("    ")] == ["kernel"] * len(plan.dispatches)
    assert any(line.startswith("GPU") for line in lines)


def test_profile_where_nothing_takes_timestamps() -> None:
    for context in (wn.ml.create_context(open_profile("default-limits").gpu), wn.ml.create_context(backend="reference")):
        with context, wn.load_onnx(mlp(), context) as model:
            profile = model.profile({"x": np.ones((2, 4), np.float32)})
        assert profile.gpu_ms is None
        assert profile.note in str(profile)
        assert all(s.kernels == () and s.gpu_ms is None for s in profile.spans)


def test_profile_of_a_graph_that_runs_often_times_it_once(context: wn.MLContext) -> None:
    model = parsed("""g (float x) => (float y) <bool yes = {1}, float two = {2.0}, float limit = {100.0}>
    { y = Loop (, yes, x) <body = b (int64 i, bool c, float s) => (bool d, float t)
    { t = Mul (s, two) d = Less (t, limit) }> }""")
    with wn.load_onnx(model, context, fallback="host") as loaded:
        profile = loaded.profile({"x": np.float32(1)})
    runs = [s for s in profile.spans if s.kind == "run"]
    assert len(runs) > 2
    assert [bool(s.kernels) for s in runs] == [True] + [False] * (len(runs) - 1)
    assert profile.gpu_ms == pytest.approx(sum(s.gpu_ms or 0 for s in runs))


def test_profile_names_nodes_of_the_host(context: wn.MLContext) -> None:
    with wn.load_onnx(detector(), context, fallback="host") as model:
        profile: Profile = model.profile({"image": np.zeros((1, 3, 32, 32), np.float32)})
    assert any(s.kind == "host" and s.what.startswith("NonMaxSuppression '") for s in profile.spans)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("batch", 1),
        ("batch_size", 1),
        ("N", 1),
        ("seq_len", 128),
        ("sequence", 128),
        ("past_sequence_length", 0),
        ("total_sequence_length", 128),
        ("height", 224),
        ("channels", 3),
        ("unk__12", 1),
        (None, 1),
    ],
)
def test_default_sizes(name: str | None, size: int) -> None:
    assert default_size(name) == size


def test_sizes_of_sums() -> None:
    assert settle(("batch", "past_sequence_length + 1", 64, None), {"batch": 2}) == (2, 1, 64, 1)
    with pytest.raises(wn.MLTypeError, match="rank"):
        settle(None, {})


def test_dimensions_beside_the_model(context: wn.MLContext, tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "mlp.onnx")
    (tmp_path / "mlp.dims.json").write_text('{"N": 7}')
    assert wn.analyze(tmp_path / "mlp.onnx", context).shapes == {"x": (7, 4)}
    assert wn.analyze(tmp_path / "mlp.onnx", context, override_dims={"N": 2}).shapes == {"x": (2, 4)}
    assert wn.analyze(tmp_path / "mlp.onnx", context, input_shapes={"x": [3, 4]}).shapes == {"x": (3, 4)}
    for wrong in ('{"N": true}', "[1]", "{", '{"N": -1}'):
        (tmp_path / "mlp.dims.json").write_text(wrong)
        with pytest.raises(wn.NotSupportedError, match=r"mlp\.dims\.json"):
            wn.load(tmp_path / "mlp.onnx", context)


@pytest.mark.parametrize("form", ["path", "bytes", "proto"])
def test_simplified_models_compute_the_same(context: wn.MLContext, tmp_path: Path, form: str) -> None:
    pytest.importorskip("onnxslim", reason="the extra `simplify` is optional")
    model = quantized(4)
    onnx.save(model, tmp_path / "q.onnx")
    source = {"path": tmp_path / "q.onnx", "bytes": model.SerializeToString(), "proto": model}[form]
    x = {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 32)}
    with wn.load_onnx(source, context, fallback="host") as plain, wn.load_onnx(source, context, simplify="onnxslim") as slim:
        np.testing.assert_allclose(slim.run(x)["y"], plain.run(x)["y"], rtol=1e-5, atol=1e-6)
        assert len(slim.source.graph) <= len(plain.source.graph)
        assert slim.name == ("q.onnx" if form == "path" else slim.name)


def test_simplifiers_are_known_and_installed(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(wn.MLTypeError, match="onnxslim"):
        wn.load_onnx(mlp(), context, simplify="magic")  # pyright: ignore[reportArgumentType] - what is tested
    monkeypatch.setitem(sys.modules, "onnxslim", None)
    with pytest.raises(wn.NotSupportedError, match=r"pip install 'webnn-wgpu\[simplify\]'"):
        wn.load_onnx(mlp(), context, simplify="onnxslim")
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        wn.load_onnx(tmp_path / "absent.onnx", context, simplify="onnxslim")


def test_symbolic_shapes_are_kept(context: wn.MLContext) -> None:
    with wn.load_onnx(bert(layers=1), context, fallback="host") as model:
        for length, compiles in ((3, True), (4, True), (3, False)):
            before = model.compiled
            ids = np.zeros((1, length), np.int64)
            model.run({"input_ids": ids, "attention_mask": ids + 1})
            assert (model.compiled > before) == compiles
