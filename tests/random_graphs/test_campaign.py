"""Random graphs on every profile, and proof that the comparison would find what may go wrong."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.random_graphs.campaign import Pretence, run_campaign, smallest
from tests.random_graphs.check import MismatchError, check_graph, evaluated
from tests.random_graphs.graphs import DRAWERS, graphs, seeded_graph
from tests.rotation import SHARES, share_of
from tests.support import PROFILES, new_profile
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.accuracy.judging import differs
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import planner
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime import pipelines

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.kernels.spec import KernelCall, KernelSpec
    from webnn_wgpu.plan.slots import Lifetime, Place
    from webnn_wgpu.runtime.device import Device

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from Linux's /proc")


@pytest.fixture(scope="module")
def numbers(request: pytest.FixtureRequest) -> dict[str, int]:
    """The first of a seed's graphs and how many: 8 for each share, of which a run with --profiles=rotate takes one."""
    share, profiles = share_of(request.config)
    if profiles == "all":
        return {"first": 0, "count": 8 * SHARES}
    return {"first": 8 * ((share or 1) - 1), "count": 8}


@pytest.mark.parametrize("profile", PROFILES)
def test_random_graphs(profile: str, numbers: dict[str, int]) -> None:
    report = run_campaign(seed=2, **numbers, profiles=[profile])
    assert report.clean, str(report)


@pytest.mark.repeats
@pytest.mark.parametrize("pretence", [Pretence(hardware=True), Pretence(binding_bytes=2048)], ids=["hardware", "windows"])
def test_random_graphs_in_other_kernels(pretence: Pretence, numbers: dict[str, int]) -> None:
    report = run_campaign(seed=4, **numbers, pretence=pretence)
    assert report.clean, str(report)
    assert report.refused <= numbers["count"] / 6


def test_random_graphs_whose_results_replace_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_most", lambda assigned: 1 << 62)  # not just where that saves memory
    replace_operands, replaced = planner.replace_operands, list[int]()

    def counted(*args: Any, products: bool) -> tuple[list[KernelCall], dict[int, int]]:
        found = replace_operands(*args, products=products)
        if products:  # all that can, which is tried after those of element-wise kernels
            replaced.append(len(found[1]))
        return found

    monkeypatch.setattr(planner, "replace_operands", counted)
    report = run_campaign(seed=5, first=0, count=10)
    assert report.clean, str(report)
    assert sum(map(bool, replaced)) >= 10


@pytest.mark.campaign
def test_many_random_graphs() -> None:
    report = run_campaign(seed=3, first=0, count=2000)
    assert report.clean, str(report)
    assert min(report.tally.nodes[name] for name in DRAWERS) >= 40


@settings(max_examples=10)
@given(drawn=graphs())
def test_graphs_that_shrink(profile_device: Device, drawn: tuple[Graph, dict[str, Array]]) -> None:
    check_graph(profile_device, *drawn)


def test_every_operator_is_drawn() -> None:
    # Extension operators (x.name) have tests of their own, and only tests of operators that move elements draw them.
    public = (op for op in OPS.values() if not op.internal)
    missing = {op.name for op in public if op.moves or not op.name.startswith("x.")} - set(DRAWERS)
    assert not missing, f"{sorted(missing)} need a row in OPERATORS of tests/random_graphs/operators.py, which draws a call"


def test_a_seed_is_a_graph() -> None:
    (graph, feeds), (again, fed) = (seeded_graph("7:7") for _ in range(2))
    assert to_text(graph) == to_text(again)
    assert all(np.array_equal(fed[name].view(np.uint8), feeds[name].view(np.uint8)) for name in feeds if feeds[name].ndim)
    assert to_text(graph) != to_text(seeded_graph("7:8")[0])


# What is planted is found --------------------------------------------------------------------------------------------

FAULTS = {
    # Operator: the template's file, what stands in it, what is put there instead.
    "transpose": ("strided", "offset_input(i + 3u)", "offset_input(i + 2u)"),
    "gather": ("gather", "% params.slice_length", "% (params.slice_length + 1u)"),
    "triangular": ("triangular", ">= params.bound", "> params.bound"),
    "concat": ("concat", "c -= params.length_0;", "c -= params.length_0 - 1u;"),
    "cumulativeSum": ("cumulative_sum", "+ params.chunk, params.items)", "+ params.chunk, params.items - 1u)"),
    "averagePool2d": ("pool2d", "across.first * params.across_dilation", "across.first"),
    "resample2d": ("resample2d", "2u * o + 1u", "2u * o"),
    "pad": ("pad", "2u * size - 1u - around", "2u * size - 2u - around"),
    "conv2d": ("conv2d.depthwise", "x * params.stride_x", "x"),
    "matmul": ("matmul.plain", "k < params.K; k++", "k + 1u < params.K; k++"),
    "gru": ("recurrent.steps", "batch, h0 + i)", "batch, h0)"),
    "scatterND": ("scatter.search", "Places(i + 1u)", "Places(i)"),
    "exp": ("elementwise", "= exp_f32(", "= 1.000001 * exp_f32("),
}


def plant(monkeypatch: pytest.MonkeyPatch, template: str, old: str, new: str) -> list[str]:
    """Change what templates render to; return the list that tells which kernels were hit."""
    hit: list[str] = []
    render = pipelines.source_of

    def faulty(spec: KernelSpec) -> str:
        text = render(spec)
        if spec.template != template or old not in text:
            return text
        hit.append(str(spec))
        return text.replace(old, new)

    monkeypatch.setattr(pipelines, "source_of", faulty)
    return hit


def complaint(device: Device, graph: Graph, feeds: dict[str, Array]) -> str:
    """Return what the comparison finds, or nothing."""
    try:
        check_graph(device, graph, feeds)
    except MismatchError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_kernels_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    hit = plant(monkeypatch, *FAULTS[name])
    # Which kernels there are must not depend on the device.
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "software")
    device = new_profile("default-limits")
    try:
        cases = (seeded_graph(f"fault:{i}", (name, "add", "identity"), fused=False) for i in range(60))
        graph, feeds, message = next(((g, f, m) for g, f in cases if (m := complaint(device, g, f))), (None, {}, ""))
        assert graph is not None, f"60 graphs did not find it, though it was in {len(hit)} kernels"
        assert name in message
        # Of the graph nothing is left but the operator.
        lines = [line for line in smallest(device, graph, feeds).splitlines() if line.startswith("  %")]
        assert len(lines) == 1
        assert f" = {name}(" in lines[0]
    finally:
        device.close()


def test_values_that_share_memory_too_early_are_found(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    assign = planner.assign_slots

    def short(lifetimes: dict[int, Lifetime], *others: Any, **options: Any) -> tuple[dict[int, Place], list[int]]:
        shortened = {v: replace(life, last=min(life.last, life.first + 1)) for v, life in lifetimes.items()}
        return assign(shortened, *others, **options)

    monkeypatch.setattr(planner, "assign_slots", short)
    found = 0
    for i in range(40):
        graph, feeds = seeded_graph(f"slots:{i}", ("transpose", "reverse", "concat", "add", "reduceMax"))
        try:
            found += bool(complaint(device, graph, feeds))
        except AssertionError:  # the planner noticed
            found += 1
    assert found > 4


def test_bounds_are_tight() -> None:
    judged, missed = Counter[str](), Counter[str]()
    for i in range(400):
        graph, feeds = seeded_graph(f"bounds:{i}")
        everything = replace(graph, outputs={str(v): v for v in graph.values})
        values = {int(name): array for name, array in interpret(everything, feeds).items()}
        for node in graph.nodes:
            operands = [None if v is None else values[v] for v in node.inputs]
            expected = evaluated(graph, node, operands)
            allowed = bounds(graph, node, operands, expected)
            if allowed is None:
                continue
            wanted, bound = expected[0], allowed[0]
            with np.errstate(all="ignore"):
                off = wanted * wanted.dtype.type(1.02) if str(wanted.dtype) in FLOATS else wanted + wanted.dtype.type(3)
            if np.any(np.isfinite(off) & (np.abs(off.astype(np.float64)) > 1e-3)):
                judged[node.op] += 1
                missed[node.op] += not np.any(differs(off, wanted, bound))
    assert set(judged) == set(DRAWERS)
    assert {name: missed[name] / judged[name] for name in judged if missed[name] > judged[name] / 8} == {}
