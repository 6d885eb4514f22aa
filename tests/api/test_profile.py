from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.runtime.graphs import ROWS, network
from tests.support import open_profile
from webnn_wgpu.debug import GraphProfile, KernelTime, Limit, Stage
from webnn_wgpu.inspection import NO_KERNELS, NO_TIMESTAMPS, joined
from webnn_wgpu.inspection.trace import trace
from webnn_wgpu.runtime.peak import Peak

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webnn_wgpu.inspection.profile import Plot


@pytest.fixture
def timed(context: wn.MLContext) -> Iterator[wn.MLContext]:
    if "timestamp-query" not in context.caps.features:
        pytest.skip(f"{context.description} takes no timestamps")
    return context


def test_every_kernel_of_the_plan_has_a_time(timed: wn.MLContext) -> None:
    graph = network(timed)
    profile = graph.profile({"x": ROWS}, runs=3)
    assert graph.plan is not None
    assert [(k.name, k.kernel, k.grid, k.reason) for k in profile.kernels] == [
        (d.label, str(d.spec), d.grid, d.reason) for d in graph.plan.dispatches
    ]
    assert (profile.runs, profile.note, profile.device) == (3, "", timed.description)
    assert all(k.microseconds > 0 for k in profile.kernels)
    assert profile.gpu_ms == pytest.approx(sum(k.microseconds for k in profile.kernels) / 1e3)


def test_kernels_have_what_they_are_held_against(timed: wn.MLContext) -> None:
    graph = network(timed)
    peak = Peak(1e9, 1e9, True)
    profile = graph.profile({"x": ROWS}, runs=2, peak=peak)
    assert graph.plan is not None
    assert profile.peak == peak
    assert [k.live_bytes for k in profile.kernels] == graph.plan.live_bytes()
    assert [k.touched_bytes for k in profile.kernels] == [d.touched_bytes for d in graph.plan.dispatches]
    product = next(k for k in profile.kernels if "matmul_0" in k.labels)
    assert product.operations == 2 * 4 * 16 * 32 + 2 * 4 * 32  # and an addend and gelu for each element
    assert product.gflop_per_s == pytest.approx(product.operations / product.microseconds / 1e3)
    assert [stage.wall_ms > 0 for stage in profile.stages] == [True] * 3
    assert profile.wall_ms == pytest.approx(sum(stage.wall_ms for stage in profile.stages[1:]), rel=0.5)
    assert profile.fixed_bytes == graph.plan.total_bytes - graph.plan.slot_bytes


def test_peaks_are_measured_where_none_are_given(timed: wn.MLContext) -> None:
    assert negation(timed).profile({"x": X}).peak == wn.measured_peak(timed)


def test_a_fused_kernel_names_all_its_operators(timed: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(timed)
    x = builder.input("x", {"dataType": "float32", "shape": [4]})
    graph = builder.build({"y": builder.relu(builder.add(x, x, label="twice"))})
    (kernel,) = graph.profile({"x": [1, 2, 3, 4]}).kernels
    assert kernel.labels == ("twice", "relu_1")


def test_the_variant_is_told(timed: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_FORCE", "matmul=plain,softmax=workgroup")
    kernels = network(timed).profile({"x": ROWS}).kernels
    found = {(k.template, k.variant, k.shader) for k in kernels}
    assert {("matmul.plain", "plain", "matmul.plain"), ("softmax", "workgroup", "softmax.workgroup")} <= found
    assert ("strided", "", "strided") in found


def test_results_after_a_profile_are_those_before(anywhere: wn.MLContext) -> None:
    graph = network(anywhere)
    before = anywhere.compute(graph, {"x": ROWS})
    graph.profile({"x": ROWS * 2})
    after = anywhere.compute(graph, {"x": ROWS})
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


def test_where_nothing_takes_timestamps_the_wall_time_is_left() -> None:
    limited = wn.ml.create_context(open_profile("default-limits").gpu)
    for context, note in ((limited, NO_TIMESTAMPS), (wn.ml.create_context(backend="reference"), NO_KERNELS)):
        profile = negation(context).profile({"x": X})
        assert (profile.kernels, profile.gpu_ms, profile.note) == ((), None, note)
        assert profile.wall_ms > 0
        assert str(profile).startswith(f"{note}; wall ")


@pytest.mark.parametrize(
    ("inputs", "runs", "message"),
    [
        ({}, 1, "profile: .*'x'"),
        ({"x": np.zeros(3)}, 1, "profile: .*float64"),
        ({"x": X, "z": X}, 1, "profile: .*'z'"),
        ({"x": X}, 0, "profile: runs must be counted from 1; got 0"),
    ],
)
def test_what_is_refused(anywhere: wn.MLContext, inputs: dict[str, object], runs: int, message: str) -> None:
    with pytest.raises(wn.MLTypeError, match=message):
        negation(anywhere).profile(inputs, runs=runs)


def test_a_destroyed_graph_is_refused(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="profile: the graph was destroyed"):
        graph.profile({"x": X})


# what it shows ----------------------------------------------------------------------------------------------------


def made_up() -> GraphProfile:
    def kernel(
        template: str, variant: str, labels: tuple[str, ...], us: float, operations: float | None, touched: int
    ) -> KernelTime:
        return KernelTime(
            name=labels[0],
            kernel=f"{template}[]",
            template=template,
            variant=variant,
            labels=labels,
            reason="a reason",
            grid=(2, 3, 1),
            microseconds=us,
            operations=operations,
            touched_bytes=touched,
            live_bytes=touched // 2,
        )

    kernels = (
        kernel("strided", "", ("turn",), 250.0, 0, 1_000_000),
        kernel("matmul.tiled", "tiled", ("a", "b[red]", "c", "d", "e"), 1500.0, 90e6, 600_000),
        kernel("softmax", "subgroup", ("last",), 250.0, None, 100_000),
    )
    stages = (Stage("check", 0.5, 0.25), Stage("submit", 0.5, 0.5), Stage("wait", 2.0, 0.125))
    return GraphProfile(
        kernels=kernels,
        gpu_ms=2.0,
        wall_ms=2.5,
        runs=5,
        device="some device",
        note="",
        peak=Peak(100e9, 5e9, True),
        stages=stages,
        fixed_bytes=4096,
    )


def test_the_table() -> None:
    assert str(made_up()) == (
        "GPU 2.000 ms, 80% of wall 2.500 ms (medians of 5 runs)\n"
        "    us  share  GB/s  GFLOP/s  of peak  limit       shader            workgroups  operators                why\n"
        " 250.0  12.5%   4.0               80%  memory      strided           2 x 3 x 1   turn                     a reason\n"
        "1500.0  75.0%   0.4     60.0      60%  arithmetic  matmul.tiled      2 x 3 x 1   a, b[red], c and 2 more  a reason\n"
        " 250.0  12.5%   0.4                                softmax.subgroup  2 x 3 x 1   last                     a reason"
    )


@pytest.mark.parametrize(("width", "left_out"), [(200, []), (100, ["GFLOP/s", "workgroups", "why"])])
def test_the_table_by_rich(width: int, left_out: list[str]) -> None:
    console = Console(width=width)
    with console.capture() as written:
        console.print(made_up())
    lines = written.get().splitlines()
    assert lines[0].strip() == "GPU 2.000 ms, 80% of wall 2.500 ms (medians of 5 runs)"
    row = next(line for line in lines if "1500.0" in line)
    # A narrow table leaves out columns, and cuts neither numbers nor names.
    assert all(cell in row for cell in ("75.0%", "60%", "arithmetic", "matmul.tiled", "a, b[red], c and 2 more"))
    assert ("60.0" in row) == (not left_out)
    assert [heading for heading in ("GFLOP/s", "workgroups", "why") if heading not in lines[2]] == left_out


def test_the_slowest_first() -> None:
    profile = made_up()
    assert [k.name for k in profile.slowest().kernels] == ["a", "turn", "last"]
    assert [k.name for k in profile.slowest(1).kernels] == ["a"]
    assert "1500.0  75.0%" in str(profile.slowest(1))


def test_what_bounds_a_kernel() -> None:
    profile = made_up()
    assert [profile.limit(k) for k in profile.kernels] == [Limit("memory", 0.8), Limit("arithmetic", 0.6), None]
    faster = replace(profile, peak=Peak(1e12, 1e12, True))
    assert [limit and limit.name for limit in map(faster.limit, profile.kernels)] == ["neither", "neither", None]
    unknown = replace(profile, peak=None)
    assert [unknown.limit(k) for k in profile.kernels] == [None] * 3


def test_json_has_everything() -> None:
    record = json.loads(made_up().to_json())
    assert (record["gpu_ms"], record["wall_ms"], record["runs"], record["device"]) == (2.0, 2.5, 5, "some device")
    assert record["kernels"][1] == {
        "name": "a",
        "kernel": "matmul.tiled[]",
        "template": "matmul.tiled",
        "variant": "tiled",
        "labels": ["a", "b[red]", "c", "d", "e"],
        "reason": "a reason",
        "grid": [2, 3, 1],
        "microseconds": 1500.0,
        "operations": 90e6,
        "touched_bytes": 600_000,
        "live_bytes": 300_000,
        "places": [],
    }
    assert GraphProfile.from_json(made_up().to_json()) == made_up()
    without = replace(made_up(), peak=None, gpu_ms=None)
    assert GraphProfile.from_json(without.to_json()) == without


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 2}', '{"format": 1, "kernels": [{}]}', made_up().to_json().replace('"us"', '"u"')[:-20]],
)
def test_what_is_no_profile(text: str) -> None:
    with pytest.raises(
        wn.MLTypeError, match=r"from_json: the text is no profile; got .*; allowed: a text of GraphProfile\.to_json"
    ):
        GraphProfile.from_json(text)


def test_two_profiles() -> None:
    before = made_up()
    turn, product, last = before.kernels
    after = replace(
        before,
        kernels=(replace(turn, microseconds=300.0), replace(product, microseconds=500.0, template="matmul.plain"), last),
        gpu_ms=1.05,
        wall_ms=1.5,
    )
    found = before.compare(after)
    assert str(found) == (
        "GPU 2.000 -> 1.050 ms, wall 2.500 -> 1.500 ms: 0.53 times\n"
        "before us  after us  change  kernel  shader\n"
        "   1500.0     500.0  x 0.33  a       matmul.tiled -> matmul.plain.tiled\n"
        "    250.0     300.0  x 1.20  turn    strided\n"
        "    250.0     250.0  x 1.00  last    softmax.subgroup"
    )
    fewer = before.compare(replace(before, kernels=(turn, replace(last, name="other")), gpu_ms=None, device="another"))
    assert {k.name: row[2] for k, row in zip(fewer.kernels, fewer.rows(), strict=True)} == {
        "a": "gone",
        "turn": "x 1.00",
        "last": "gone",
        "other": "new",
    }
    assert fewer.summary() == "GPU 2.000 -> ? ms, wall 2.500 -> 2.500 ms: 1.00 times; some device, then another"


def test_profiles_of_graphs_that_follow_each_other() -> None:
    one = made_up()
    both = joined([one, one])
    assert (len(both.kernels), both.gpu_ms, both.wall_ms, both.note) == (6, 4.0, 5.0, "")
    assert joined([one, replace(one, gpu_ms=None, note=NO_TIMESTAMPS)]).gpu_ms is None


def test_a_trace() -> None:
    events = trace(made_up())["traceEvents"]
    assert json.loads(json.dumps(events)) == events
    kernels = [e for e in events if e["ph"] == "X" and e["pid"] == 2]
    # They follow each other from the end of the submit on, in microseconds.
    assert [(e["name"], e["ts"], e["dur"]) for e in kernels] == [
        ("turn", 1000.0, 250.0),
        ("a", 1250.0, 1500.0),
        ("last", 2750.0, 250.0),
    ]
    assert kernels[1]["args"] == {
        "operators": "a, b[red], c, d, e",
        "shader": "matmul.tiled[]",
        "why": "a reason",
        "workgroups": "2 x 3 x 1",
        "GB/s": 0.4,
        "GFLOP/s": 60.0,
        "limit": "arithmetic",
        "share of peak": 0.6,
    }
    assert [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"] == [
        (1000.0, 500_000),
        (1250.0, 300_000),
        (2750.0, 50_000),
        (3000.0, 0),
    ]
    assert [(e["name"], e["ts"]) for e in events if e["ph"] == "X" and e["pid"] == 1] == [
        ("check", 0.0),
        ("submit", 500.0),
        ("wait", 1000.0),
    ]


@pytest.mark.parametrize("what", ["roofline", "timeline", "memory"])
def test_plots(what: Plot) -> None:
    svg = made_up().plot(what)
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert svg == made_up().plot(what)
    text = "".join(root.itertext())
    assert {"roofline": "100 GFLOP/s", "timeline": "matmul.tiled", "memory": "MiB"}[what] in text


def test_what_cannot_be_plotted(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = replace(made_up(), kernels=(), gpu_ms=None, note=NO_TIMESTAMPS)
    with pytest.raises(wn.MLTypeError, match="plot: the profile has no kernels to plot; got the device takes no timestamps"):
        empty.plot("timeline")
    with pytest.raises(wn.MLTypeError, match="plot: unknown plot; got 'pie'; allowed: 'roofline', 'timeline', 'memory'"):
        made_up().plot("pie")  # pyright: ignore[reportArgumentType] - that is the point
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(wn.NotSupportedError, match=r"plot: plots need matplotlib.*pip install 'webnn-wgpu\[viz\]'"):
        made_up().plot("memory")


@pytest.mark.parametrize("plots", [True, False])
def test_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plots: bool) -> None:
    if not plots:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    made_up().to_html(tmp_path / "report.html", "<a title>")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>&lt;a title&gt;</title>" in text
    assert text.count("<svg") == (3 if plots else 0)
    assert ("pip install" in text) != plots
    for shown in ("matmul.tiled", "60.0", "60%", "arithmetic", "b[red]", "80%"):
        assert shown in text
    assert not re.search(r"\b(?:src|href)=\"(?!#)", text)  # nothing is loaded
    assert "in a pass of its own" not in text


def test_a_sum_of_kernels_above_the_time_of_a_run_is_explained(tmp_path: Path) -> None:
    profile = replace(made_up(), wall_ms=1.5)
    assert made_up().excess() == ""
    assert profile.excess().startswith("The kernels' sum exceeds a run: each kernel was timed in a pass of its own")
    profile.to_html(tmp_path / "report.html")
    assert profile.excess() in unescape((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_a_report_without_kernels(tmp_path: Path) -> None:
    replace(made_up(), kernels=(), gpu_ms=None, note=NO_TIMESTAMPS).to_html(tmp_path / "report.html")
    assert NO_TIMESTAMPS in unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
