"""Products of few rows that are computed with the product of their result: which ones, and that the results stay the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.unit.pairs import GPU, NCHW, NHWC, PAIRS, Pair, multiplied, optimized, paired
from tests.unit.plans import caps_of, check_plan
from tests.unit.rewrites import normal
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.costs import ProductSize, Target
from webnn_wgpu.costs.product_pairs import INVOCATIONS, MOST_OWN, MOST_PARTS, pair_tile
from webnn_wgpu.kernels.source_map import map_of_kernel
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.reference.interpreter import evaluate

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph

SOFTWARE = Target.of(caps_of("lavapipe"))


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_found(name: str, data_type: str) -> None:
    graph, feeds = replace(PAIRS[name], data_type=data_type).graph()
    after = paired(graph)
    assert [node.op for node in after.nodes].count("productPair") == 1
    assert not any(node.op in ("gemm", "matmul", "conv2d") for node in after.nodes)
    assert {o.node for node in after.nodes for o in node.origins} == {o.node for node in graph.nodes for o in node.origins}
    np.testing.assert_array_equal(interpret(after, feeds)["0"], interpret(graph, feeds)["0"])
    plan = make_plan(optimized(graph), GPU)
    check_plan(plan, GPU.caps, rendered=True)
    assert [dispatch.spec.template for dispatch in plan.dispatches] == ["product_pair"]


@pytest.mark.parametrize("layout", ["oihw", "hwio", "ohwi", "ihwo"])
@pytest.mark.parametrize("images", [NHWC, NCHW])
def test_filters_have_any_layout(images: dict[str, Any], layout: str) -> None:
    graph, _ = Pair(product=images | {"filter_layout": layout}).graph()
    assert paired(graph).nodes[0].op == "productPair"


CASES: dict[str, dict[str, Any]] = {
    "many rows": {"rows": 9},
    "weights that workgroups would read for long": {"steps": 1152, "hidden": 48},
    "many hidden numbers": {"steps": 8, "hidden": 260},
    "more workgroups than cores": {"steps": 480, "hidden": 20, "columns": 1 << 15},
    "sums that are no quads": {"steps": 66},
}
"""Pairs that do not pay, or that the kernel does not compute."""


def graph_of(case: str) -> Graph:
    """Return a graph whose products stay as they are."""
    if case in CASES:
        return Pair(**CASES[case]).graph()[0]
    s = Sketch()
    x, options = s.input(normal(8, 64)), {"alpha": 0.5} if case == "a factor" else {}
    hidden = multiplied(s, x, 8, **options)
    between = s.apply("relu", hidden)
    if case == "a gate":
        between = s.apply("mul", between, s.apply("sigmoid", multiplied(s, x, 8, seed=9)))
    if case == "a number for each row":
        between = s.apply("mul", between, s.input(normal(s.type(between).shape[0], 1)))
    if case == "a reshape":
        between = s.apply("reshape", between, new_shape=[4, 16])
    if case == "weights that are computed":
        return s.graph(s.apply("gemm", between, s.input(normal(8, 64)), None))
    if case == "many operators":
        for _ in range(GPU.costs.passes.most_fused_steps):
            between = s.apply("tanh", between)
    y = multiplied(s, between, 64, seed=3)
    others = {"another reader": [s.apply("neg", hidden)], "an output": [hidden], "a result between": [between]}
    return s.graph(y, *others.get(case, []))


@pytest.mark.parametrize(
    "case",
    [
        *(*CASES, "a factor", "a gate", "a reshape", "weights that are computed", "another reader", "an output"),
        *("a result between", "a number for each row", "many operators"),
    ],
)
def test_other_products_stay(case: str) -> None:
    graph = graph_of(case)
    assert paired(graph) is graph


def test_larger_images_stay() -> None:
    s = Sketch()
    h = multiplied(s, s.input(normal(1, 2, 2, 64)), 8, **NHWC)
    graph = s.graph(multiplied(s, h, 64, seed=3, **NHWC))
    assert paired(graph) is graph


def test_narrow_weights_stay() -> None:
    s = Sketch()
    h = s.apply("matmul", s.input(normal(1, 512)), s.constant(normal(512, 8).astype(np.float16).astype(np.float32)))
    graph = s.graph(s.apply("matmul", h, s.constant(normal(8, 64))))
    assert "productPair" not in [node.op for node in optimized(graph).nodes]


def test_software_adapters_keep_products() -> None:
    graph, _ = Pair().graph()
    assert paired(graph, SOFTWARE) is graph


def test_a_third_product_stays() -> None:
    s = Sketch()
    h = multiplied(s, multiplied(s, s.input(normal(1, 64)), 8), 64, seed=3)
    after = paired(s.graph(multiplied(s, h, 8, seed=6)))
    assert [node.op for node in after.nodes] == ["productPair", "gemm"]


def test_lines_name_the_operators_between_and_behind() -> None:
    s = Sketch()
    h = s.apply("tanh", multiplied(s, s.input(normal(1, 64)), 8), label="between")
    graph = s.graph(s.apply("sigmoid", multiplied(s, h, 64, seed=3), label="behind"))
    (dispatch,) = make_plan(optimized(graph), GPU).dispatches
    labels = [tuple(origin.label for origin in step) for step in dispatch.steps]
    assert labels == [("between",), ("behind",)]
    found, lines = map_of_kernel(dispatch.spec, labels=labels), render(dispatch.spec).splitlines()
    for function, label in (("tanh_f32(x0)", "between"), ("sigmoid_f32(x0)", "behind")):
        (number,) = (i for i, line in enumerate(lines, 1) if "let " in line and function in line)
        assert found.place(number).operators == (label,)


def test_clamps_of_both_ends_have_uniforms_of_their_own() -> None:
    s = Sketch()
    results = []
    for seed, behind in enumerate(("relu", "", "clamp")):
        h = s.apply("clamp", multiplied(s, s.input(normal(1, 64)), 8, seed=seed), min_value=-1, max_value=1)
        y = multiplied(s, h, 64, seed=3)
        results.append(s.apply(behind, y) if behind else y)
    plan = make_plan(optimized(s.graph(*results)), GPU)
    check_plan(plan, GPU.caps, rendered=True)
    assert len({dispatch.spec for dispatch in plan.dispatches}) == 1
    names = [name for name, _ in plan.dispatches[0].spec.uniforms]
    assert len(set(names)) == len(names)


def test_errors_of_the_hidden_numbers_reach_the_results() -> None:
    # The weights of a result have both signs: errors of hidden numbers that all go up would cancel.
    s = Sketch()
    signs = np.where(np.arange(64) % 2, -1, 1).astype(np.float32)
    h = s.apply("tanh", s.apply("matmul", s.input(normal(1, 64)), s.constant(normal(64, 64) / 8)))
    graph = paired(s.graph(s.apply("matmul", h, s.constant(signs[:, None]))))
    node, operands = graph.nodes[0], [s.feeds["0"], *graph.constants.values()]
    found = bounds(graph, node, operands, evaluate(graph, node, operands))
    alone = bounds(graph, node.attrs["body"].nodes[-1], [np.ones((1, 64), np.float32), signs[:, None]], [np.zeros((1, 1))])
    assert found
    assert alone
    assert found[0].item() > 64 * 2.0**-24 + alone[0].item() / 2


@pytest.mark.parametrize("hidden", [1, 3, 8, 20, 48, 100, 256])
@pytest.mark.parametrize("columns", [1, 12, 96, 1000])
@pytest.mark.parametrize("steps", [4, 60, 672, 2048])
def test_tiles_fit_a_workgroup(steps: int, columns: int, hidden: int) -> None:
    tile = pair_tile(steps, hidden, columns)
    assert tile.invocations == tile.columns.invocations == INVOCATIONS
    assert hidden * tile.lanes <= MOST_PARTS
    assert hidden <= tile.own * tile.columns.shares <= INVOCATIONS
    assert tile.own <= MOST_OWN
    assert tile.columns.columns < max(17, 2 * columns + 4)


def test_costs_count_workgroups_for_each_core() -> None:
    costs = GPU.costs.products
    few, many = (ProductSize(1, columns, 28) for columns in (672, 1 << 15))
    first = ProductSize(1, 28, 672)
    assert costs.pairs(first, few, 4)
    assert not costs.pairs(first, many, 4)
