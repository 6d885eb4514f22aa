"""Measuring kernel variants on the device, and what later graphs make of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples.models import mlp
from tests.support import new_profile, profile_context, run_graph
from tests.unit.test_tuning import GRAPHS, asked
from webnn_wgpu import tuner
from webnn_wgpu.core import cache
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.graph import Graph
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.kernels import tuning as tunings
from webnn_wgpu.kernels.spec import KernelSpec
from webnn_wgpu.kernels.tuning import Measured, Tuning
from webnn_wgpu.passes import PASSES, run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime import pipelines
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.program import Program


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user who has nothing yet; and few rounds, for nothing here depends on what is the fastest."""
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    for name in ("_FEWEST_ROUNDS", "_MOST_ROUNDS", "_FINAL_ROUNDS"):
        monkeypatch.setattr(tuner, name, 1)
    return tmp_path / "tuning"


def graph(context: wn.MLContext, **options: Any) -> wn.MLGraph:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [6, 64]})
    return builder.build({"y": builder.relu(builder.softmax(x, 1))}, **options)


def reason(built: wn.MLGraph) -> str:
    assert built.plan is not None
    return built.plan.dispatches[0].reason


def only(variant: str, context: wn.MLContext) -> Tuning:
    return Tuning.of(context.caps, {"softmax: float32[6, 64]; axis=1": Measured(variant, {variant: 0.25})})


def test_files_decide_nothing_where_the_kind_of_device_is_forced(context: wn.MLContext, user: Path) -> None:
    only("plain", context).save(tunings.tuning_files(context.caps)[0])
    with profile_context("full") as usual, profile_context("hardware") as forced:
        with graph(usual) as built:
            assert reason(built).startswith("measured")
        with graph(forced) as built:
            assert not reason(built).startswith("measured")
        with graph(forced, tuning=only("plain", context)) as built:
            assert reason(built).startswith("measured")


X = np.random.default_rng(1).standard_normal((6, 64)).astype(np.float32)


@pytest.mark.repeats
@pytest.mark.parametrize("subject", GRAPHS.values(), ids=GRAPHS)
def test_every_variant_with_every_tile_computes_the_same(subject: Graph, device: Device) -> None:
    rng = np.random.default_rng(5)
    feeds = {name: rng.standard_normal(subject.type(v).shape).astype(np.float32) for name, v in subject.inputs.items()}
    expected = interpret(subject, feeds)
    for operator, variants in asked(subject, device.caps).items():
        for variant in variants:
            known = Tuning.of(device.caps, {operator: Measured(variant, {variant: 1.0})})
            found = run_graph(device, subject, feeds, tuning=known, disabled_passes=[p.name for p in PASSES])
            for name, wanted in expected.items():
                np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-4, err_msg=f"{operator}: {variant}")


def test_what_is_measured_is_used_from_then_on(context: wn.MLContext, user: Path) -> None:
    before = graph(context)
    assert not reason(before).startswith("measured")
    told: list[tuple[int, int, str]] = []
    found = before.tune(progress=lambda *args: told.append(args))
    # Once for the operator, and once for each of its variants.
    assert list(dict.fromkeys(told)) == [(0, 1, "measuring softmax: float32[6, 64]; axis=1"), (1, 1, "measuring ")]
    (measured,) = found.choices.values()
    assert set(measured.milliseconds) <= {"plain", "subgroup", "workgroup"}
    assert all(ms > 0 for ms in measured.milliseconds.values())
    (file,) = user.iterdir()
    assert Tuning.load(file) == found
    after = graph(context)
    assert reason(after) == measured.reason
    np.testing.assert_allclose(context.compute(after, {"x": X})["y"], context.compute(before, {"x": X})["y"], rtol=1e-5)
    assert not reason(graph(context, tuning=False)).startswith("measured")


def test_a_kernel_that_computes_something_else_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right, device = pipelines.source_of, new_profile("full")
    with wn.ml.create_context(device.gpu) as context:
        built = graph(context)
        usual = built.plan.dispatches[0].spec.variant

        def miscompiled(spec: KernelSpec) -> str:
            source = right(spec)
            return source if spec.variant == usual else source.replace("exp_parts_f32(x, 0.0)", "1.0")

        monkeypatch.setattr(pipelines, "source_of", miscompiled)
        with caplog.at_level(logging.WARNING, "webnn_wgpu"):
            (measured,) = built.tune(save=False).choices.values()
    assert set(measured.milliseconds) == {usual}
    others = sorted({"plain", "subgroup", "workgroup"} - {usual})
    told = sorted(record.getMessage() for record in caplog.records)
    than = f"computes something else than {usual} on {device.description}"
    assert told == [f"softmax: float32[6, 64]; axis=1: {variant} {than}" for variant in others]


def test_where_choices_come_from(context: wn.MLContext, tmp_path: Path, user: Path) -> None:
    file = tmp_path / "own.json"
    only("workgroup", context).save(file)
    only("plain", context).save(tunings.tuning_files(context.caps)[0])
    assert graph(context, tuning=file).plan.dispatches[0].spec.variant == "workgroup"
    assert graph(context, tuning=str(file)).plan.dispatches[0].spec.variant == "workgroup"
    assert graph(context, tuning=[only("plain", context), file]).plan.dispatches[0].spec.variant == "plain"
    assert graph(context).plan.dispatches[0].spec.variant == "plain"
    with wn.ml.create_context(context.device, tuning=file) as own:
        assert graph(own).plan.dispatches[0].spec.variant == "workgroup"
        assert graph(own, tuning=only("plain", context)).plan.dispatches[0].spec.variant == "plain"
    with wn.ml.create_context(context.device, tuning=False) as own:
        assert not reason(graph(own)).startswith("measured")


def test_it_comes_back_with_a_graph_that_is_rebuilt(context: wn.MLContext) -> None:
    built = graph(context, tuning=only("workgroup", context))
    assert context.rebuild(built).plan.dispatches[0].spec.variant == "workgroup"


def test_it_goes_on_in_a_context_that_is_recovered(context: wn.MLContext) -> None:
    old = wn.ml.create_context(context.device, tuning=only("workgroup", context))
    old.destroy()
    with old.recover(context.device) as new:
        assert graph(new).plan.dispatches[0].spec.variant == "workgroup"


def test_plan_and_build_async(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    y = builder.softmax(builder.input("x", {"dataType": "float32", "shape": [6, 64]}), 1)
    assert builder.plan({"y": y}, tuning=only("workgroup", context)).dispatches[0].spec.variant == "workgroup"
    builder = wn.MLGraphBuilder(context)
    y = builder.softmax(builder.input("x", {"dataType": "float32", "shape": [6, 64]}), 1)
    built = builder.build_async({"y": y}, tuning=only("workgroup", context)).sync_wait()
    assert built.plan.dispatches[0].spec.variant == "workgroup"


def test_arguments(context: wn.MLContext, tmp_path: Path) -> None:
    with pytest.raises(wn.MLTypeError, match="tuning must be a Tuning, a file or False; got int"):
        graph(context, tuning=[5])
    with pytest.raises(wn.MLTypeError, match="tuning must be a Tuning, a file or False; got int"):
        graph(context, tuning=5)
    with pytest.raises(FileNotFoundError):
        graph(context, tuning=tmp_path / "nothing.json")
    with pytest.raises(FileNotFoundError):
        wn.ml.create_context(backend="reference", tuning=tmp_path / "nothing.json")


def test_the_reference_has_nothing_to_measure(user: Path) -> None:
    with wn.ml.create_context(backend="reference") as reference:
        built = graph(reference)
        with pytest.raises(wn.NotSupportedError, match="no WebGPU device"):
            built.tune()
    assert not user.exists()


def test_a_destroyed_graph(context: wn.MLContext) -> None:
    built = graph(context)
    built.destroy()
    with pytest.raises(wn.InvalidStateError):
        built.tune()


def test_caches_switched_off(context: wn.MLContext, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    assert graph(context).tune().choices
    assert not user.exists()


def test_the_fastest_is_chosen_if_it_is_clearly_so(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = graph(context).plan.dispatches[0].spec.variant
    others = [variant for variant in ("plain", "workgroup", "subgroup") if variant != usual]

    def choose(**speeds: float) -> str:
        monkeypatch.setattr(tuner._Running, "microseconds", lambda self: speeds[self._program.plan.dispatches[0].spec.variant])
        (measured,) = graph(context, tuning=False).tune(save=False).choices.values()
        assert measured.milliseconds == {name: speeds[name] / 1000 for name in measured.milliseconds}
        return measured.chosen

    assert choose(**{usual: 100, others[0]: 50, others[1]: 200}) == others[0]
    assert choose(**{usual: 100, others[0]: 97, others[1]: 200}) == usual
    assert choose(**{usual: 100, others[0]: 130, others[1]: 90}) == others[1]


def test_a_variant_that_does_not_compile_is_left_out(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Program.__init__

    def refused(self: Program, device: Device, plan: Any, progress: Any = None) -> None:
        if plan.dispatches[0].reason == "measured: 0 ms" and plan.dispatches[0].spec.variant == "workgroup":
            raise wn.OperationError("no")
        make(self, device, plan, progress)

    monkeypatch.setattr(Program, "__init__", refused)
    (measured,) = graph(context, tuning=False).tune(save=False).choices.values()
    assert "workgroup" not in measured.milliseconds


def test_without_timestamps(monkeypatch: pytest.MonkeyPatch) -> None:
    with wn.ml.create_context(new_profile("default-limits").gpu) as own:
        assert "timestamp-query" not in own.caps.features
        found = graph(own).tune(save=False)
        assert all(ms > 0 for measured in found.choices.values() for ms in measured.milliseconds.values())


def test_graphs_of_single_operators(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [4, 8]})
    weights = builder.constant(np.ones((8, 8), np.float32))
    fused = builder.relu(builder.add(builder.matmul(x, weights), x))
    source = builder.build({"y": builder.softmax(fused, 1)})
    optimized = run_passes(source.source, Target.of(context.caps))[0]
    graphs = [tuner.single(optimized, node) for node in optimized.nodes]
    assert "fused" in {g.nodes[0].op for g in graphs}
    for each in graphs:
        verify(each)
        assert make_plan(each, Target.of(context.caps)).dispatches
        assert set(tuner._made_up(each)) == set(each.inputs)


def test_a_model_and_the_file_beside_it(tmp_path: Path, context: wn.MLContext) -> None:
    file = tmp_path / "mlp.onnx"
    onnx.save(mlp(), file)
    feeds = {"x": np.ones((2, 4), np.float32)}
    with wn.load_onnx(file, context) as model:
        found = model.tune(feeds, save=False)
        expected = model.run(feeds)
    assert found.choices
    times = {"plain:1": 0.5, "gemv": 1.0}
    Tuning.of(context.caps, dict.fromkeys(found.choices, Measured("plain:1", times))).save(tmp_path / "mlp.tuning.json")
    with wn.load(file, context) as model:
        np.testing.assert_allclose(model.run(feeds)["y"], expected["y"], rtol=1e-5)
        assert "measured: 0.5 ms, against 1 ms for gemv" in model.graph.plan.dispatches[0].reason
    given = Tuning.of(context.caps, dict.fromkeys(found.choices, Measured("gemv", times)))
    with wn.load(file, context, tuning=given) as model:
        model.run(feeds)
        assert model.graph.plan.dispatches[0].spec.variant == "gemv"
    with wn.load(file, context, tuning=False) as model:
        model.run(feeds)
        assert "measured" not in model.graph.plan.dispatches[0].reason
