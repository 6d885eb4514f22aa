"""Projection shortcuts that become part of the product before them: which ones, and that the results stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.rows import as_hardware
from tests.support import Sketch, run_graph
from tests.unit.plans import caps_of
from tests.unit.projections import block, convolved
from tests.unit.rewrites import normal
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.projected_products import project_in_products
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.runtime.device import Device

GPU, SOFTWARE = Target.of(caps_of("amd")), Target.of(caps_of("lavapipe"))


def check(s: Sketch, graph: Graph, *, sums: int = 1, tolerance: float = 1e-4) -> Graph:
    """Check that a projection becomes part of a product, and return the graph then."""
    after = verify(project_in_products(graph, GPU))
    assert [node.op for node in after.nodes] == ["projectedMatmul"] + ["add"] * sums
    for actual, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=20 * tolerance)
    return after


@pytest.mark.parametrize("bias", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize("strides", [1, 2, 3])
def test_a_projection_becomes_part_of_a_product(strides: int, swapped: bool, bias: tuple[bool, bool]) -> None:
    s = Sketch()
    after = check(s, s.graph(block(s, strides=strides, bias=bias, swapped=swapped)), sums=int(any(bias)))
    assert {origin.node for node in after.nodes for origin in node.origins} == {0, 1, 2}


@pytest.mark.parametrize("layout", ["oihw", "hwio", "ohwi", "ihwo"])
def test_filters_have_any_layout(layout: str) -> None:
    s = Sketch()
    check(s, s.graph(block(s, filter_layout=layout)))


def test_float16() -> None:
    s = Sketch()
    check(s, s.graph(block(s, dtype=np.float16)), tolerance=4e-3)


CASES: dict[str, dict[str, Any]] = {
    "groups": {"groups": 2},
    "weights of float16": {"weights": normal(64, 1, 1, 64).astype(np.float16).astype(np.float32)},
    "weights of 8 bits": {"weights": np.rint(20 * normal(64, 1, 1, 64))},
    "3 x 3 taps": {"taps": 3, "padding": [1, 1, 1, 1]},
}
"""Options of the projection."""

SHAPES = {
    "a broadcast": (1, 1, 1, 64),
    "channels that are no quads": (1, 12, 12, 30),
    "padding": (1, 12, 11, 64),
}
"""Images of the projection, of which every pixel is read."""


def graph_of(case: str) -> Graph:
    """Return a graph whose convolutions stay as they are."""
    s = Sketch()
    if case in CASES:
        return s.graph(block(s, **CASES[case]))
    if case in SHAPES:
        options = {"padding": [0, 0, 0, 1]} if case == "padding" else {}
        last = convolved(s, s.input(normal(1, 12, 12, 32)))
        return s.graph(s.apply("add", last, convolved(s, s.input(normal(*SHAPES[case], seed=9)), **options)))
    small, strides = case == "few rows", [2, 2] if case == "two strides" else [1, 1]
    side = 2 if small else 12
    near, image = (s.input(normal(1, side, side, 64, seed=seed)) for seed in range(2))
    last = convolved(s, near, strides=strides)
    if case == "a filter that is computed":
        weights = s.input(normal(64, 1, 1, 64))
        projection = s.apply("conv2d", image, weights, None, input_layout="nhwc", filter_layout="ohwi")
    else:
        projection = last if case == "added to itself" else convolved(s, image, strides=strides)
    others = {"another reader": [s.apply("relu", last)], "an output": [last]}.get(case, [])
    return s.graph(s.apply("add", last, projection), *others)


@pytest.mark.parametrize(
    "case",
    [
        *(*CASES, *SHAPES, "two strides", "another reader", "an output", "added to itself", "few rows"),
        "a filter that is computed",
    ],
)
def test_other_sums_stay(case: str) -> None:
    graph = graph_of(case)
    assert project_in_products(graph, GPU) is graph


def test_software_adapters_keep_projections() -> None:
    s = Sketch()
    graph = s.graph(block(s))
    assert project_in_products(graph, SOFTWARE) is graph


def test_an_epilogue_follows(device: Device) -> None:
    s = Sketch()
    graph = s.graph(s.apply("relu", block(s)))
    target = Target.of(as_hardware(device.caps))
    after, reports = run_passes(graph, target)
    (report,) = (report for report in reports if report.name == "project_in_products")
    assert (report.nodes_before, report.nodes_after) == (4, 3)
    plan = make_plan(after, target)
    assert plan.dispatches[0].spec.template == "matmul.tiled"
    assert plan.dispatches[0].spec.param("projection")
    found, wanted = run_graph(device, after, s.feeds), interpret(graph, s.feeds)
    np.testing.assert_allclose(found["0"], wanted["0"], rtol=1e-5, atol=1e-4)
