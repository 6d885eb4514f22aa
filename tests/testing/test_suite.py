"""The benchmark of a device: its built-in models, its record and its page."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from tests.golden.records import record as caps_record
from webnn_wgpu.inspection import GraphProfile
from webnn_wgpu.testing.suite import (
    MODELS,
    NO_TIME,
    Conformance,
    Job,
    ModelFigures,
    PeerFigures,
    SuiteRecord,
    built_in,
    left_out,
    report,
    run_suite,
)
from webnn_wgpu.testing.suite.measuring import LoadedGraph, measure, relative_difference
from webnn_wgpu.testing.suite.models import BuiltInModel

if TYPE_CHECKING:
    from webnn_wgpu.testing.suite.models import RandomNetwork

MULTIPLY_ADDS = {"product": 1 << 30, "mobilenet_v2": 300e6, "resnet50": 4.1e9, "encoder": 1.4e9, "recurrent": 105e6}
"""Multiply-adds of the architectures, as their papers and simple counting give them."""


def small(n: RandomNetwork) -> wn.MLOperand:
    return n.builder.softmax(n.dense(n.input("x", 6, 64), 32), 1)


SMALL = BuiltInModel("a dense layer", small)


def job(context: wn.MLContext, model: BuiltInModel = SMALL) -> Job:
    return Job("small", model.description, partial(LoadedGraph.of, model, context))


@pytest.mark.parametrize("name", MODELS)
def test_built_in_models_are_the_architectures_they_name(name: str) -> None:
    context, planning = planning_context(caps_record("amd"))
    builder, output, feeds = MODELS[name].network(context)
    plan = builder.plan({"output": output})
    assert planning.plans
    assert feeds
    assert {array.dtype.name for array in feeds.values()} == {MODELS[name].data_type}
    operations = {dispatch.node: dispatch.operations or 0 for dispatch in plan.dispatches}
    if name in MULTIPLY_ADDS:
        assert sum(operations.values()) / 2 == pytest.approx(MULTIPLY_ADDS[name], rel=0.1)


def test_a_run_has_the_figures_of_its_models_and_their_tuning(context: wn.MLContext) -> None:
    broken = BuiltInModel("fails", lambda n: n.builder.matmul(n.input("x", 2, 3), n.input("y", 2, 3)))
    told: list[str] = []
    jobs = [job(context), Job("broken", "", partial(LoadedGraph.of, broken, context))]
    begun = SuiteRecord.begin(context)
    found = run_suite(begun, jobs, seconds=0, tune_until=time.monotonic() + 60, tell=told.append)
    assert told == ["small", "broken", "small: tuning"]
    figures, failed = found.models
    assert figures.runs >= 3
    assert figures.best_ms <= figures.wall_ms
    assert figures.dispatches >= figures.shaders >= 2
    assert figures.operations >= 2 * 6 * 64 * 32
    assert figures.device_bytes >= 4 * 64 * 32
    assert figures.slowest
    assert figures.tuned_ms is not None
    assert "matmul" in "".join(found.variants)
    assert all(ms > 0 for times in found.variants.values() for ms in times.values())
    assert "matmul" in failed.error
    assert SuiteRecord.from_json(found.to_json()) == found


def test_tuning_ends_when_its_time_is_over(context: wn.MLContext) -> None:
    found = run_suite(SuiteRecord.begin(context), [job(context)], seconds=0, tune_until=time.monotonic() - 1)
    assert found.models[0].runs
    assert found.models[0].tuned_ms is None
    assert not found.variants


@dataclass
class SlowMachine:
    """A clock that models advance, and a model whose runs take some time by it."""

    run_seconds: float
    now: float = 0.0

    def clock(self) -> SimpleNamespace:
        return SimpleNamespace(monotonic=lambda: self.now, perf_counter=lambda: self.now)

    def load(self, tuning: wn.Tuning | None) -> SlowMachine:
        self.now += 1
        return self

    def run(self) -> dict[str, Any]:
        self.now += self.run_seconds
        return {}

    def graphs(self) -> list[wn.MLGraph]:
        return []

    def profile(self, runs: int) -> GraphProfile:
        self.now += runs * self.run_seconds
        return GraphProfile(kernels=(), gpu_ms=None, wall_ms=0.0, runs=runs, device="", stages=())

    def tune(self, progress: Any) -> wn.Tuning:
        for i in range(10):
            progress(i, 10, "")
            self.run()
        return wn.Tuning("", "")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("run_seconds", [0.001, 0.1, 1, 5, 40, 1000])
def test_a_run_ends_in_time_on_any_machine(run_seconds: float, monkeypatch: pytest.MonkeyPatch, context: wn.MLContext) -> None:
    machine = SlowMachine(run_seconds)
    begun = SuiteRecord.begin(context)
    for module in ("measuring", "running"):
        monkeypatch.setattr(f"webnn_wgpu.testing.suite.{module}.time", machine.clock())
    jobs = [Job(str(number), "", machine.load) for number in range(20)]
    kept: list[SuiteRecord] = []
    found = run_suite(begun, jobs, seconds=2, until=240, tune_until=280, keep=kept.append)
    assert [figures.name for figures in found.models] == [each.name for each in jobs]
    measured = [figures for figures in found.models if figures.runs]
    assert len(kept) == len(measured) + len([figures for figures in measured if figures.tuned_ms is not None])
    assert all(figures.note == NO_TIME for figures in found.models if not figures.runs)
    # What has begun by the end of the time is finished: compiled, run for the first time, timed, profiled.
    assert machine.now <= 280 + 2 + 3 * run_seconds
    if run_seconds <= 1:
        assert len(measured) == len(jobs)
        assert min(figures.runs for figures in measured) >= 3
    else:
        assert measured[0].runs
        assert 1 <= len(measured) <= 1 + 240 / (1 + run_seconds)
    if run_seconds <= 0.1:
        assert all(figures.tuned_ms for figures in found.models)


def test_models_of_an_unfinished_run_are_noted(context: wn.MLContext) -> None:
    record = SuiteRecord.begin(context).with_model(ModelFigures(name="one", description="first", runs=3))
    jobs = [Job(*each, job(context).load) for each in (("one", "first"), ("one", "second"), ("two", ""))]
    notes = [(figures.name, figures.note) for figures in left_out(record, jobs).models]
    assert notes == [("one", ""), ("one", NO_TIME), ("two", NO_TIME)]
    assert NO_TIME in report(left_out(record, jobs))


def test_the_page_shows_the_record_and_carries_it(context: wn.MLContext) -> None:
    figures = measure("small", "</script>", job(context).load, 0)
    figures = replace(figures, peers={"another": PeerFigures(wall_ms=1234.5), "absent": PeerFigures(note="not there")})
    record = replace(
        SuiteRecord.begin(context).with_model(figures),
        conformance=Conformance(passed=3, failed={"add: one": "2 is not 3"}, not_run=4, seconds=1),
    )
    page = report(record)
    for text in ("1234.50", "not there", "add: one: 2 is not 3", "3 cases passed, 1 failed, 4 not run", "&lt;/script&gt;"):
        assert text in page
    carried = re.search(r'<script type="application/json" id="record">(.*)</script>', page, re.DOTALL)
    assert carried is not None
    assert SuiteRecord.from_json(carried[1].replace("<\\/", "</")) == record
    assert "http" not in page.replace(carried[1], "")


def test_what_is_no_record_is_refused() -> None:
    for text in ("", "[]", "{}", json.dumps({"format": 0})):
        with pytest.raises(wn.WebNNError, match="no record of a benchmark"):
            SuiteRecord.from_json(text)


def test_differences_are_parts_of_the_largest_number() -> None:
    wanted = {"x": np.array([4.0, -8.0], np.float32), "n": np.array([1])}
    assert relative_difference({"x": np.array([4.0, -6.0]), "n": np.array([7])}, wanted) == 0.25


def test_models_are_chosen_by_name(context: wn.MLContext) -> None:
    assert [each.name for each in built_in(context)] == list(MODELS)
    assert [each.name for each in built_in(context, ["recurrent"])] == ["recurrent"]
