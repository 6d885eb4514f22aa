"""Rewrites that gradients need most: sums in one kernel, residuals of normalizations, and chains beside a chain."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, assert_same
from tests.unit.plans import caps_of
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops.column_sums import MOST_TENSORS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.added_products import merge_added_products
from webnn_wgpu.passes.fuse import fuse_elementwise, fuse_epilogues
from webnn_wgpu.passes.residuals import add_to_gradients
from webnn_wgpu.passes.results import merge_results
from webnn_wgpu.passes.sums import merge_sums
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Graph

GPU, SOFTWARE = Target.of(caps_of("nvidia")), Target.of(caps_of("lavapipe"))
ROWS = np.random.default_rng(0).standard_normal((96, 64)).astype(np.float32)
SQUARE = ROWS[:64]


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def bodies(graph: Graph) -> list[list[str]]:
    return [names(node.attrs["body"]) if "body" in node.attrs else [node.op] for node in graph.nodes]


# Sums -----------------------------------------------------------------------------------------------------------------


def sums(s: Sketch, count: int) -> list[int]:
    return [s.apply("reduceSum", s.input(ROWS + i), axes=[0]) for i in range(count)]


@pytest.mark.parametrize(("count", "kernels"), [(1, 1), (2, 1), (4, 1), (5, 2), (6, 2), (9, 3)])
def test_sums_of_one_type_are_one_kernel(count: int, kernels: int) -> None:
    s = Sketch()
    graph = s.graph(*sums(s, count))
    for target in (GPU, SOFTWARE):
        after = verify(merge_sums(graph, target))
        assert len(after.nodes) == kernels
        assert len(make_plan(after, target).dispatches) == kernels
        assert all(len(node.outputs) <= MOST_TENSORS for node in after.nodes)
        assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_software_adapters_sum_up_few_or_long_columns_alone() -> None:
    for shape in ((96, 8), (97, 64), (96, 60), (1 << 14, 64)):
        s = Sketch()
        x = s.input(np.zeros(shape, np.float32))
        graph = s.graph(*(s.apply("reduceSum", s.apply("mul", x, x), axes=[0]) for _ in range(2)))
        assert merge_sums(graph, SOFTWARE) is graph, shape


def test_a_sum_that_the_next_one_needs_is_apart() -> None:
    s = Sketch()
    first = s.apply("reduceSum", x := s.input(ROWS), axes=[0])
    second = s.apply("reduceSum", s.apply("sub", x, first), axes=[0])
    graph = s.graph(first, second)
    assert merge_sums(graph, GPU) is graph


def test_other_sums_are_apart() -> None:
    s = Sketch()
    x, halves = s.input(ROWS), s.input(ROWS.astype(np.float16))
    graph = s.graph(
        s.apply("reduceSum", x, axes=[1]),
        s.apply("reduceSum", s.input(ROWS), axes=[1]),
        s.apply("reduceSum", s.input(ROWS[:, :63]), axes=[0]),
        s.apply("reduceSum", s.input(ROWS[:, 1:]), axes=[0]),
        s.apply("reduceSum", x, axes=[0]),
        s.apply("reduceSum", halves, axes=[0]),
        s.apply("reduceMax", s.input(ROWS), axes=[0]),
    )
    assert merge_sums(graph, GPU) is graph


def test_operands_do_not_wait_for_long() -> None:
    s = Sketch()
    first, between = s.apply("reduceSum", s.input(ROWS), axes=[0]), s.input(ROWS)
    for _ in range(20):
        between = s.apply("exp", between)
    graph = s.graph(first, s.apply("reduceSum", between, axes=[0]))
    assert merge_sums(graph, GPU) is graph


# Residuals ------------------------------------------------------------------------------------------------------------


def gradient(s: Sketch, addend: int | None = None) -> tuple[int, ...]:
    given = [s.input(ROWS), s.input(ROWS), None, addend]
    return s.apply_all("x.normalization_gradient", given, axes=[1], products=True)


@pytest.mark.parametrize("swapped", [False, True])
def test_the_gradient_of_a_normalization_adds_the_one_that_passes_by(swapped: bool) -> None:
    s = Sketch()
    residual = s.input(ROWS)
    of_input, products = gradient(s)
    scale = s.apply("reduceSum", products, axes=[0])
    graph = s.graph(s.apply("add", *([residual, of_input] if swapped else [of_input, residual])), scale)
    after = verify(add_to_gradients(graph))
    assert names(after) == ["x.normalization_gradient", "reduceSum"]
    for name, array in interpret(graph, s.feeds).items():
        np.testing.assert_allclose(interpret(after, s.feeds)[name], array, rtol=1e-5, atol=1e-5)


def test_other_sums_of_gradients_stay() -> None:
    def of_products(s: Sketch) -> Graph:
        return s.graph(s.apply("add", s.input(ROWS), gradient(s)[1]))

    def read_twice(s: Sketch) -> Graph:
        found = gradient(s)[0]
        return s.graph(s.apply("add", s.input(ROWS), found), s.apply("exp", found))

    def made_later(s: Sketch) -> Graph:
        found = gradient(s)[0]
        return s.graph(s.apply("add", s.apply("exp", s.input(ROWS)), found))

    def broadcast(s: Sketch) -> Graph:
        return s.graph(s.apply("add", s.input(ROWS[:1]), gradient(s)[0]))

    def second_addend(s: Sketch) -> Graph:
        return s.graph(s.apply("add", s.input(ROWS), gradient(s, s.input(ROWS))[0]))

    for draw in (of_products, read_twice, made_later, broadcast, second_addend):
        graph = draw(Sketch())
        assert add_to_gradients(graph) is graph, draw.__name__


# Chains beside a chain ------------------------------------------------------------------------------------------------


def derivative(s: Sketch, x: int) -> int:
    """Add the derivative of gelu."""
    cumulated = s.apply("linear", s.apply("erf", s.apply("linear", x, alpha=0.7)), alpha=0.5, beta=0.5)
    return s.apply("add", cumulated, s.apply("mul", x, s.apply("exp", s.apply("neg", s.apply("mul", x, x)))))


def test_a_product_computes_the_derivative_that_it_is_multiplied_by() -> None:
    s = Sketch()
    product = s.apply("matmul", s.input(ROWS), s.input(SQUARE))
    graph = s.graph(s.apply("mul", product, derivative(s, s.input(ROWS))))
    after = verify(fuse_epilogues(graph, GPU))
    assert [body[0] for body in bodies(after)] == ["matmul"]
    assert len(bodies(after)[0]) == len(graph.nodes)
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_a_mask_is_computed_behind_a_product() -> None:
    s = Sketch()
    seen = s.apply("greater", s.input(ROWS), s.constant(np.float32(0)))
    product = s.apply("matmul", s.input(ROWS), s.input(SQUARE))
    graph = s.graph(s.apply("where", seen, product, s.constant(np.float32(0))))
    after = verify(fuse_epilogues(graph, GPU))
    assert bodies(after) == [["matmul", "greater", "where"]]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_a_sum_of_two_chains_is_one_kernel() -> None:
    s = Sketch()
    graph = s.graph(derivative(s, s.input(ROWS)))
    after = verify(fuse_elementwise(graph, GPU))
    assert len(after.nodes) == 1
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_chains_that_others_need_or_that_products_end_with_stay() -> None:
    def read_twice(s: Sketch) -> tuple[Graph, int]:
        chain = s.apply("exp", s.input(ROWS))
        return s.graph(s.apply("mul", s.apply("matmul", s.input(ROWS), s.input(SQUARE)), chain), chain), 2

    def behind_a_product(s: Sketch) -> tuple[Graph, int]:
        first, second = (s.apply("matmul", s.input(ROWS), s.input(SQUARE)) for _ in range(2))
        return s.graph(s.apply("add", first, s.apply("exp", second))), 2

    def in_front(s: Sketch) -> tuple[Graph, int]:
        return s.graph(s.apply("exp", s.apply("matmul", s.apply("neg", s.input(SQUARE)), s.input(SQUARE)))), 2

    def smaller(s: Sketch) -> tuple[Graph, int]:
        row = s.apply("exp", s.input(ROWS[:1]))
        return s.graph(s.apply("mul", s.apply("matmul", s.input(ROWS), s.input(SQUARE)), row)), 2

    for draw in (read_twice, behind_a_product, in_front, smaller):
        s = Sketch()
        graph, kernels = draw(s)
        after = verify(fuse_epilogues(graph, GPU))
        assert len(after.nodes) == kernels, draw.__name__
        assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


# Several results ------------------------------------------------------------------------------------------------------


def test_a_product_stores_results_of_its_value_alone() -> None:
    s = Sketch()
    x = s.apply("add", s.apply("matmul", s.input(ROWS), s.input(SQUARE)), s.input(ROWS[0]))
    first, second = (s.apply(name, x) for name in ("sin", "cos"))
    graph = s.graph(first, s.apply("mul", s.apply("matmul", s.input(ROWS), s.input(SQUARE)), second))
    after = verify(fuse_epilogues(graph, GPU))
    assert bodies(after) == [["matmul", "add", "sin", "cos"], ["matmul", "mul"]]
    assert [node.outputs for node in after.nodes] == [(first, second), tuple(graph.outputs.values())[1:]]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_products_store_a_value_that_others_need() -> None:
    def output(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("cos", x), x)

    def other_operand(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("add", x, s.input(ROWS)))

    def other_type(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("isNaN", x))

    def other_operator(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("cos", x), s.apply("reduceSum", x))

    for draw in (output, other_operand, other_type, other_operator):
        s = Sketch()
        graph = draw(s, s.apply("matmul", s.input(ROWS), s.input(SQUARE)))
        after = verify(fuse_epilogues(graph, GPU))
        assert bodies(after)[0] == ["matmul"], draw.__name__


def test_convolutions_store_their_value() -> None:
    s = Sketch()
    image, weights = ROWS[:, :36].reshape(1, 96, 6, 6), ROWS[:16].reshape(16, 64, 1, 1)[:, :1].repeat(96, 1)
    x = s.apply("conv2d", s.input(image), s.input(weights))
    assert bodies(fuse_epilogues(s.graph(s.apply("sin", x), s.apply("cos", x)), GPU)) == [["conv2d"], ["sin"], ["cos"]]


def updates(s: Sketch, states: int) -> Graph:
    """Return the updates of some states by one gradient, and of a parameter by all of them."""
    gradient, *held = (s.input(ROWS + i) for i in range(states + 1))
    moved = [s.apply("add", s.apply("mul", gradient, state), state) for state in held]
    parameter = s.input(ROWS)
    for state in moved:
        parameter = s.apply("sub", parameter, state)
    return s.graph(*moved, parameter)


def test_neighbors_that_read_the_same_are_one_kernel() -> None:
    s = Sketch()
    graph = updates(s, 2)
    for target in (GPU, SOFTWARE):
        after = verify(run_passes(graph, target)[0])
        assert len(after.nodes) == len(make_plan(after, target).dispatches) == 1
        assert after.nodes[0].outputs == tuple(graph.outputs.values())
        assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_kernels_have_no_more_buffers_than_every_device_binds() -> None:
    s = Sketch()
    graph = updates(s, 5)
    apart = verify(run_passes(graph, GPU)[0])
    assert 1 < len(apart.nodes) < 6
    assert all(len(dispatch.spec.bindings) <= 8 for dispatch in make_plan(apart, GPU).dispatches)
    # Results that replace inputs need no buffers of their own.
    inputs, names = list(graph.inputs), list(graph.outputs)
    whole = replace(graph, aliases=dict(zip(names, inputs[1:], strict=True)))
    after = verify(run_passes(whole, GPU)[0])
    assert len(after.nodes) == 1
    (dispatch,) = make_plan(after, GPU).dispatches
    assert [binding.access for binding in dispatch.spec.bindings] == ["read", *["write"] * 6]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))


def test_inputs_that_a_later_kernel_reads_are_not_replaced() -> None:
    s = Sketch()
    graph = updates(s, 5)
    inputs, names = list(graph.inputs), list(graph.outputs)
    late = [s.apply("reduceSum", graph.inputs[name]) for name in inputs[1:3]]
    read = replace(s.graph(*graph.outputs.values(), *late), aliases=dict(zip(names, inputs[1:], strict=True)))
    after = verify(merge_results(fuse_elementwise(read, GPU), GPU))
    assert len(after.nodes) > 3
    assert all(len(dispatch.spec.bindings) <= 8 for dispatch in make_plan(after, GPU).dispatches)


def test_other_neighbors_stay_apart() -> None:
    def another_shape(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("add", x, s.input(ROWS[None] + np.zeros((2, 1, 1), np.float32))))

    def nothing_in_common(s: Sketch, x: int) -> Graph:
        return s.graph(s.apply("sin", x), s.apply("cos", s.input(ROWS)))

    def a_scalar_in_common(s: Sketch, x: int) -> Graph:
        one = s.input(np.ones((), np.float32))
        return s.graph(s.apply("add", x, one), s.apply("mul", s.input(ROWS), one))

    def a_kernel_between(s: Sketch, x: int) -> Graph:
        first = s.apply("sin", x)
        return s.graph(first, s.apply("reduceSum", x), s.apply("cos", x))

    for draw in (another_shape, nothing_in_common, a_scalar_in_common, a_kernel_between):
        s = Sketch()
        graph = draw(s, s.input(ROWS))
        assert merge_results(graph, GPU) is graph, draw.__name__


# Products that are added up -------------------------------------------------------------------------------------------


def added(s: Sketch, order: Sequence[int] = (0, 1, 2), data_type: str = "float32", shared: bool = False) -> Graph:
    """Return the sum of products of three stacked matrices with the transposes of parts of one tensor, and of a residual."""
    rng = np.random.default_rng(0)
    stack = s.input(rng.standard_normal((3, 1024, 128)).astype(data_type))
    arena = s.input(rng.standard_normal(4 * 128 * 128).astype(data_type))
    total = s.input(rng.standard_normal((1024, 128)).astype(data_type))
    parts = s.apply_all("split", [stack], axis=0, splits=[1, 1, 1])
    others: list[int] = []
    for part, place in zip(parts, order, strict=True):
        matrix = s.apply("reshape", part, new_shape=[1024, 128])
        weights = s.apply("slice", arena, starts=[(place + 1) * 128 * 128], sizes=[128 * 128])
        turned = s.apply("transpose", s.apply("reshape", weights, new_shape=[128, 128]), permutation=[1, 0])
        product = s.apply("matmul", matrix, turned)
        total = s.apply("add", total, product)
        others += [product] * shared
    return s.graph(total, *others)


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 1, -1)])
def test_gpus_compute_added_products_together(order: tuple[int, ...]) -> None:
    s = Sketch()
    graph = added(s, order)
    after = verify(merge_added_products(graph, GPU))
    assert names(after).count("transposedMatmul") == names(after).count("reduceSum") == 1
    assert names(after).count("matmul") == (0 if order[-1] == 2 else 1)
    for found, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_other_added_products_stay_apart() -> None:
    for options in ({"order": (2, 1, 0)}, {"shared": True}):
        graph = added(Sketch(), **options)
        assert merge_added_products(graph, GPU) is graph, options
    graph = added(Sketch())
    for target in (SOFTWARE, Target.of(caps_of("apple"))):
        assert merge_added_products(graph, target) is graph


# Functions and kernels of gradients -----------------------------------------------------------------------------------


def test_the_gradient_of_gelu_is_a_product_with_its_derivative() -> None:
    s = Sketch()
    x = s.input(ROWS)
    one = s.constant(np.float32(-1))
    below = s.apply("lesser", x, one)
    half = s.apply("linear", s.apply("erf", s.apply("linear", x, alpha=math.sqrt(0.5), beta=-0.0)), alpha=1.0, beta=1.0)
    quotient = s.apply("div", gelu := s.apply("gelu", x), s.apply("where", below, x, one))
    cumulated = s.apply("where", below, quotient, s.apply("linear", half, alpha=0.5, beta=-0.0))
    gauss = s.apply("exp", s.apply("linear", s.apply("mul", x, x), alpha=-0.5, beta=-0.0))
    density = s.apply("linear", gauss, alpha=1 / math.sqrt(2 * math.pi), beta=-0.0)
    slope = s.apply("add", cumulated, s.apply("mul", x, density))
    graph = s.graph(gelu, s.apply("mul", s.input(ROWS), slope))
    for target in (GPU, SOFTWARE):
        after = verify(run_passes(graph, target)[0])
        assert bodies(after) == [["gelu", "geluSlope", "mul"]]
        for found, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_software_adapters_compute_gradients_of_attention_by_products() -> None:
    s = Sketch()
    given = [s.input(np.random.default_rng(i).standard_normal((2, 24, 32)).astype(np.float32)) for i in range(4)]
    options = {"heads": 4, "kv_heads": 4, "scale": 0.35, "causal": True, "offset": 0}
    outputs = s.apply_all("x.attention_gradient", [*given, None, None], **options)
    graph = s.graph(*outputs)
    after = verify(run_passes(graph, SOFTWARE)[0])
    assert names(after).count("weightsGradient") == 1
    assert "softmax" not in names(after)
    assert [node.op for node in run_passes(graph, GPU)[0].nodes] == ["x.attention_gradient"]
    for found, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
