"""float16 on devices without the type: every bit pattern, every rounding, and words that two invocations share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings

from tests.random_graphs.graphs import graphs
from tests.support import Sketch, assert_same, check_op, open_profile, random_array, run_graph
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)


@pytest.fixture
def plain() -> Device:
    """A device without features."""
    return open_profile("default-limits")


def test_every_half_is_read_exactly(plain: Device) -> None:
    for x in (HALVES, HALVES[:-1], HALVES[::-1].copy()):
        check_op(plain, "cast", [x], {"data_type": "float32"}, tolerance=0)


def test_every_half_is_written_exactly(plain: Device) -> None:
    check_op(plain, "cast", [HALVES.astype(np.float32)], {"data_type": "float16"}, tolerance=0)


def numbers_to_round() -> Array:
    """Return what lies halfway between two halves and next to that, the ends of the range, and anything."""
    finite = HALVES[np.isfinite(HALVES)].astype(np.float64)
    middles = ((finite[:-1] + finite[1:]) / 2).astype(np.float32)
    above, below = (np.nextafter(middles, np.float32(end)) for end in (np.inf, -np.inf))
    anything = np.random.default_rng(0).integers(0, 2**32, 300_000, np.uint32).view(np.float32)
    ends = np.array([65519.996, 65520, 65536, 3e38, 2**-24, 2**-25, 2**-26, 1e-45, 2**-14, 6.1e-5, 0.0], np.float32)
    return np.concatenate([middles, above, below, anything, ends, -ends])


def test_rounding_to_nearest_even(plain: Device) -> None:
    check_op(plain, "cast", [numbers_to_round()], {"data_type": "float16"}, tolerance=0)


@pytest.mark.parametrize("profile", ["full", "default-limits"])
def test_rounding_within_a_kernel(profile: str) -> None:
    device, s = open_profile(profile), Sketch()
    half = s.apply("cast", s.input(numbers_to_round()), data_type="float16")
    graph = s.graph(s.apply("cast", half, data_type="float32"))
    optimized, _ = run_passes(graph, device.target)
    assert len(make_plan(optimized, device.target).dispatches) == 1
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))


@pytest.mark.parametrize("forced", ["plain", "workgroup"])
@pytest.mark.parametrize("rows", [1, 2, 1001])
def test_neighbors_in_a_word_keep_each_other(plain: Device, rows: int, forced: str) -> None:
    # Each result is stored by itself, the two halves of a word by different invocations or workgroups.
    x = random_array(np.random.default_rng(1), "float16", (rows, 40))
    check_op(plain, "reduceMax", [x], {"axes": [1]}, forced={"reduceMax": forced})
    check_op(plain, "softmax", [random_array(np.random.default_rng(2), "float16", (rows, 41), 1.0)], {"axis": 1}, tolerance=1)


@pytest.mark.parametrize("N", [1, 2, 3, 5, 64, 65])
@pytest.mark.parametrize("variant", ["plain", "tiled", "gemv"])
def test_products_round_once_before_what_follows(plain: Device, variant: str, N: int) -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(-9, 10, shape).astype(np.float16) / np.float16(8) for shape in ((7, 24), (24, N), (N,)))
    s = Sketch()
    product = s.apply("matmul", s.input(a), s.input(b))
    graph = s.graph(s.apply("sigmoid", s.apply("add", product, s.input(c))))
    fused = run_graph(plain, graph, s.feeds, forced={"matmul": variant})
    assert_same(fused, run_graph(plain, graph, s.feeds, forced={"matmul": variant}, disabled_passes=("fuse_epilogues",)))
    np.testing.assert_allclose(fused["0"].astype(np.float64), interpret(graph, s.feeds)["0"].astype(np.float64), rtol=2e-3)


SAME_BITS = (
    *(op.name for op in OPS.values() if (op.elementwise is not None or op.moves) and not op.internal),
    *("matmul", "softmax", "x.log_softmax", "reduceSum", "reduceMax", "layerNormalization"),
)
"""Operators for which features choose no other order of summation."""


def run_with(device: Device, graph: Graph, feeds: dict[str, Array], *without: str) -> dict[str, Array]:
    """Run a graph planned for the device without some of its features."""
    optimized, _ = run_passes(graph, device.target)
    program = Program(
        device, make_plan(optimized, Target.of(replace(device.caps, features=device.caps.features - set(without))))
    )
    try:
        return program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()


@settings(max_examples=30)
@given(drawn=graphs(SAME_BITS, data_types=("float16", "int64", "uint64", "float16", "float32")))
def test_random_graphs_give_the_same_bits(drawn: tuple[Graph, dict[str, Array]]) -> None:
    device = open_profile("full")
    graph, feeds = drawn
    native = run_with(device, graph, feeds)
    assert_same(run_with(device, graph, feeds, "shader-f16", "shader-int64"), native)
    assert_same(run_with(device, graph, feeds, "shader-f16"), native)
