from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.console import Console

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.runtime.graphs import ROWS, network
from tests.support import open_profile
from webnn_wgpu.api.profile import NO_KERNELS, NO_TIMESTAMPS
from webnn_wgpu.debug import GraphProfile, KernelTime

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    def kernel(template: str, variant: str, labels: tuple[str, ...], microseconds: float) -> KernelTime:
        return KernelTime(labels[0], f"{template}[]", template, variant, labels, "a reason", (2, 3, 1), microseconds)

    kernels = (
        kernel("strided", "", ("turn",), 250.0),
        kernel("matmul.tiled", "tiled", ("a", "b[red]", "c", "d", "e"), 1500.0),
        kernel("softmax", "subgroup", ("last",), 250.0),
    )
    return GraphProfile(kernels, 2.0, 2.5, 5, "some device")


def test_the_table() -> None:
    assert str(made_up()) == (
        "GPU 2.000 ms; wall 2.500 ms (medians of 5 runs)\n"
        "    us  share  kernel            workgroups  operators                why\n"
        " 250.0  12.5%  strided           2 x 3 x 1   turn                     a reason\n"
        "1500.0  75.0%  matmul.tiled      2 x 3 x 1   a, b[red], c and 2 more  a reason\n"
        " 250.0  12.5%  softmax.subgroup  2 x 3 x 1   last                     a reason"
    )


def test_the_table_by_rich() -> None:
    console = Console(width=200)
    with console.capture() as written:
        console.print(made_up())
    lines = written.get().splitlines()
    assert lines[0].strip() == "GPU 2.000 ms; wall 2.500 ms (medians of 5 runs)"
    assert any("b[red]" in line and "matmul.tiled" in line and "75.0%" in line for line in lines)


def test_the_slowest_first() -> None:
    profile = made_up()
    assert [k.name for k in profile.slowest().kernels] == ["a", "turn", "last"]
    assert [k.name for k in profile.slowest(1).kernels] == ["a"]
    assert "1500.0  75.0%" in str(profile.slowest(1))


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
    }
