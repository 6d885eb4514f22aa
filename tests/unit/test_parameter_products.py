"""Products of the same rows with parameters that follow each other in an arena are one, and no others."""

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
from webnn_wgpu.passes.products import merge_products
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Graph

ROWS, K, N = 8, 12, 16
GPU, SOFTWARE = Target.of(caps_of("nvidia")), Target.of(caps_of("lavapipe"))


def merged(graph: Graph) -> Graph:
    return merge_products(graph, GPU)


def part(s: Sketch, arena: int, start: int, *shape: int) -> int:
    """Return a part of an arena with a shape."""
    return s.apply("reshape", s.apply("slice", arena, starts=[start], sizes=[int(np.prod(shape))]), new_shape=list(shape))


def products(s: Sketch, a: int, places: Sequence[int], vectors: Sequence[int | None], *, n: int = N) -> list[int]:
    """Return what reads products with the matrices at some places of an arena, plus the vectors at others."""
    arena = s.input(normal(1024, seed=5))
    parts = [
        (part(s, arena, p, K, n), None if v is None else part(s, arena, v, n)) for p, v in zip(places, vectors, strict=True)
    ]
    found: list[int] = []
    for matrix, vector in parts:
        value = s.apply("matmul", a, matrix)
        value = value if vector is None else s.apply("add", value, vector)
        found.append(s.apply("softmax", value, axis=s.type(value).rank - 1))
    return found


@pytest.mark.parametrize("shape", [(ROWS, K), (2, ROWS // 2, K)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_consecutive_parameters_are_one_factor(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    s = Sketch()
    places, vectors = [i * K * N for i in order], [640 + i * N for i in order]
    graph = s.graph(*products(s, s.input(normal(*shape)), places, vectors))
    after = merged(graph)
    names = [node.op for node in after.nodes]
    assert (names.count("matmul"), names.count("add"), names.count("split"), names.count("slice")) == (1, 1, 1, 2)
    check(merged, graph, s.feeds, names, tolerance=1e-6)


def test_without_a_bias_and_beside_others() -> None:
    s = Sketch()
    a = s.input(normal(ROWS, K))
    found = products(s, a, [192, 384, 0], [None, None, 900])
    other = s.apply("matmul", a, s.input(normal(K, N)))
    after = merged(s.graph(*found, s.apply("softmax", other, axis=1)))
    assert [node.op for node in after.nodes].count("matmul") == 3


def test_other_products_stay() -> None:
    def apart(s: Sketch) -> list[int]:
        return products(s, s.input(normal(ROWS, K)), [0, 256], [None, None])

    def vectors_apart(s: Sketch) -> list[int]:
        return products(s, s.input(normal(ROWS, K)), [0, 192], [640, 700])

    def one_vector(s: Sketch) -> list[int]:
        return products(s, s.input(normal(ROWS, K)), [0, 192], [640, None])

    def other_rows(s: Sketch) -> list[int]:
        return [products(s, s.input(normal(ROWS, K)), [i * 192], [None])[0] for i in range(2)]

    def not_aligned(s: Sketch) -> list[int]:
        return products(s, s.input(normal(3, K)), [0, 48], [None, None], n=4)

    def activated(s: Sketch) -> list[int]:
        arena, a = s.input(normal(1024)), s.input(normal(ROWS, K))
        parts = [part(s, arena, i * 192, K, N) for i in range(2)]
        return [s.apply("tanh", s.apply("matmul", a, matrix)) for matrix in parts]

    for draw in (apart, vectors_apart, one_vector, other_rows, not_aligned, activated):
        s = Sketch()
        unchanged(merged, s.graph(*draw(s)))


def test_results_that_fit_no_binding_stay_apart() -> None:
    s = Sketch()
    graph = s.graph(*products(s, s.input(normal(ROWS, K)), [0, 192], [None, None]))
    limits = {**dict(GPU.caps.limits), "max-storage-buffer-binding-size": 2 * K * N * 4 - 16}
    small = Target.of(replace(GPU.caps, limits=tuple(limits.items())))
    unchanged(lambda graph: merge_products(graph, small), graph)


@pytest.mark.parametrize("target", [GPU, SOFTWARE], ids=["gpu", "software"])
def test_one_dispatch_makes_all(target: Target) -> None:
    s = Sketch()
    graph = s.graph(*products(s, s.input(normal(ROWS, K)), [0, 192, 384], [640, 656, 672]))
    plan = make_plan(run_passes(graph, target)[0], target)
    assert [d.spec.template.partition(".")[0] for d in plan.dispatches] == ["matmul", *["softmax"] * 3]


@pytest.mark.parametrize("profile", PROFILES)
def test_devices_compute_the_same(profile: str) -> None:
    device = open_profile(profile)
    s = Sketch()
    rng = np.random.default_rng(0)
    a, arena = (s.input(rng.integers(-4, 4, size).astype(np.float32)) for size in ((ROWS, K), (1024,)))
    parts = [(part(s, arena, i * K * N, K, N), part(s, arena, 640 + i * N, N)) for i in range(3)]
    found: list[int] = []
    for matrix, vector in parts:
        value = s.apply("add", s.apply("matmul", a, matrix), vector)
        found.append(s.apply("reduceMax", value, axes=[0]))
    graph = s.graph(*found)
    assert_same(run_graph(device, graph, s.feeds), run_graph(device, graph, s.feeds, disabled_passes=["merge_products"]))
