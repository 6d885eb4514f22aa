"""Gradients of parameters that follow each other, from the same rows, are one product, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import PROFILES, Sketch, assert_same, open_profile, run_graph
from tests.unit.plans import caps_of
from tests.unit.rewrites import check, normal, unchanged
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.stacked_gradients import stack_gradients
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array, Graph

M, K, N = 32, 12, 16
GPU, SOFTWARE = Target.of(caps_of("nvidia")), Target.of(caps_of("lavapipe"))


def stacked(graph: Graph) -> Graph:
    return stack_gradients(graph, GPU)


def made(s: Sketch, *shape: int, seed: int = 0) -> int:
    """Return the gradient of a result, which an operator computes."""
    return s.apply("softmax", s.input(normal(*shape, seed=seed)), axis=len(shape) - 1)


def product(s: Sketch, rows: int, of: int, alpha: float = 1.0) -> int:
    """Return the gradient of a parameter with one dimension."""
    flat = s.apply("reshape", of, new_shape=[M, N])
    return s.apply("reshape", s.apply("gemm", rows, flat, a_transpose=True, alpha=alpha), new_shape=[K * N])


def joined(s: Sketch, *parts: int) -> int:
    return s.apply_all("concat", parts, axis=0)[0]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("shape", [(M, N), (2, M // 2, N)])
def test_gradients_of_the_same_rows_are_one_product(shape: Sequence[int], order: Sequence[int]) -> None:
    s = Sketch()
    rows = s.input(normal(M, K))
    results = [made(s, *shape, seed=i) for i in range(3)]
    parts = [product(s, rows, result) for result in results]
    sums = [s.apply("reduceSum", result) for result in results]
    graph = s.graph(joined(s, *(parts[i] for i in order), s.input(normal(8))), *sums)
    after = stacked(graph)
    names = [node.op for node in after.nodes]
    assert (names.count("gemm"), names.count("matmul"), names.count("concat")) == (0, 1, 2)
    assert [len(node.operands) for node in after.nodes if node.op == "concat"] == [3, 2]
    check(stacked, graph, s.feeds, names, tolerance=1e-5)


def test_runs_beside_others() -> None:
    s = Sketch()
    rows, others = s.input(normal(M, K)), s.input(normal(M, K, seed=9))
    results = [made(s, M, N, seed=i) for i in range(5)]
    found = [product(s, rows if i < 2 else others, result) for i, result in enumerate(results)]
    after = stacked(s.graph(joined(s, *found)))
    assert [node.op for node in after.nodes].count("matmul") == 2
    assert [len(node.operands) for node in after.nodes if node.op == "concat"] == [2, 3, 2]


def test_other_gradients_stay() -> None:
    def one(s: Sketch) -> list[int]:
        return [joined(s, product(s, s.input(normal(M, K)), made(s, M, N)), s.input(normal(8)))]

    def between(s: Sketch) -> list[int]:
        rows, first, second = s.input(normal(M, K)), made(s, M, N), made(s, M, N, seed=1)
        return [joined(s, product(s, rows, first), s.input(normal(64)), product(s, rows, second))]

    def given(s: Sketch) -> list[int]:
        rows = s.input(normal(M, K))
        return [joined(s, *(product(s, rows, s.input(normal(M, N, seed=i))) for i in range(2)))]

    def twice(s: Sketch) -> list[int]:
        rows, result = s.input(normal(M, K)), made(s, M, N)
        return [joined(s, product(s, rows, result), product(s, rows, result))]

    def read_early(s: Sketch) -> list[int]:
        rows, first = s.input(normal(M, K)), made(s, M, N)
        second = s.apply("softmax", s.apply("tanh", first), axis=1)
        return [joined(s, product(s, rows, first), product(s, rows, second))]

    def output(s: Sketch) -> list[int]:
        rows, results = s.input(normal(M, K)), [made(s, M, N, seed=i) for i in range(2)]
        return [joined(s, *(product(s, rows, result) for result in results)), results[0]]

    def scaled(s: Sketch) -> list[int]:
        rows, results = s.input(normal(M, K)), [made(s, M, N, seed=i) for i in range(2)]
        return [joined(s, *(product(s, rows, result, alpha=2.0) for result in results))]

    for draw in (one, between, given, twice, read_early, output, scaled):
        s = Sketch()
        unchanged(stacked, s.graph(*draw(s)))


def test_gradients_that_fit_no_binding_stay_apart() -> None:
    s = Sketch()
    rows, results = s.input(normal(M, K)), [made(s, M, N, seed=i) for i in range(2)]
    graph = s.graph(joined(s, *(product(s, rows, result) for result in results)))
    limits = {**dict(GPU.caps.limits), "max-storage-buffer-binding-size": 2 * M * N * 4 - 16}
    unchanged(lambda graph: stack_gradients(graph, Target.of(replace(GPU.caps, limits=tuple(limits.items())))), graph)


def wholes(s: Sketch) -> Graph:
    """Return a graph of whole numbers, whose sums are exact."""

    def whole(*shape: int, seed: int) -> Array:
        return np.random.default_rng(seed).integers(-4, 4, shape).astype(np.float32)

    rows = s.input(whole(M, K, seed=7))
    results = [s.apply("reduceMax", s.input(whole(2, M, N, seed=i)), axes=[0]) for i in range(3)]
    rest = s.apply("reduceMax", s.input(whole(2, 64, seed=8)), axes=[0])
    parts = [product(s, rows, result) for result in results]
    return s.graph(joined(s, *parts, rest), *(s.apply("reduceSum", result) for result in results))


@pytest.mark.parametrize("target", [GPU, SOFTWARE], ids=["gpu", "software"])
def test_nothing_is_copied(target: Target) -> None:
    s = Sketch()
    plan = make_plan(run_passes(wholes(s), target)[0], target)
    templates = [d.spec.template.partition(".")[0] for d in plan.dispatches]
    assert [name for name in templates if name != "reduce"] == ["matmul"]


@pytest.mark.parametrize("profile", PROFILES)
def test_devices_compute_the_same(profile: str) -> None:
    s = Sketch()
    graph, device = wholes(s), open_profile(profile)
    assert_same(run_graph(device, graph, s.feeds), run_graph(device, graph, s.feeds, disabled_passes=["stack_gradients"]))
