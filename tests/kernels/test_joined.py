"""Concatenations whose operands are written into their places by the kernels that make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.products import Chain, whole_numbers
from tests.ops.rows import as_hardware
from tests.support import PROFILES, open_profile, run_graph
from webnn_wgpu.core.caps import DEFAULT_LIMITS, Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

NHWC = {"input_layout": "nhwc", "filter_layout": "ohwi"}


class Joined(Chain):
    """A graph of operators that work on one image of 8 channels."""

    def __init__(self, data_type: str = "float32") -> None:
        super().__init__()
        self.rng = np.random.default_rng(0)
        self.type = data_type
        self.image = self.input(self.random(2, 6, 7, 8))

    def random(self, *shape: int) -> np.ndarray:
        """Return small whole numbers."""
        return whole_numbers(self.rng, self.type, *shape)

    def convolution(self, channels: int, taps: int = 1, groups: int = 1, *, bias: bool = True) -> int:
        """Return a convolution of the image that keeps its extents."""
        weights = self.constant(self.random(channels, taps, taps, 8 // groups))
        given = self.constant(self.random(channels)) if bias else None
        pad = (taps // 2,) * 4
        return self.apply("conv2d", [self.image, weights, given], padding=pad, groups=groups, **NHWC)

    def product(self, columns: int) -> int:
        """Return a matrix product of the image's pixels with a constant."""
        return self.apply("matmul", [self.image, self.constant(self.random(8, columns))])

    def joined(self, *values: int, axis: int = 3) -> Graph:
        """Return the graph whose result is the concatenation of values."""
        return self.graph(self.apply("concat", values, axis=axis))


def fire(j: Joined) -> Graph:
    return j.joined(*(j.apply("relu", [j.convolution(c, taps)]) for c, taps in ((16, 1), (8, 3))))


def kinds_of_convolutions(j: Joined) -> Graph:
    depthwise = j.convolution(8, 3, groups=8)
    return j.joined(depthwise, j.convolution(8, 3, groups=2, bias=False), j.convolution(16, 3), j.convolution(8, 1))


def epilogues(j: Joined) -> Graph:
    residual, scale = j.input(j.random(2, 6, 7, 8)), j.constant(j.random(8))
    sum_ = j.apply("add", [j.apply("mul", [j.product(8), scale]), residual])
    return j.joined(j.apply("relu", [sum_]), j.apply("add", [j.convolution(8, 3), residual]))


def products(j: Joined) -> Graph:
    a = j.constant(j.random(5, 8))
    gemm = j.apply("gemm", [a, j.input(j.random(8, 16)), j.constant(j.random(16))], alpha=2.0)
    matmul = j.apply("matmul", [a, j.input(j.random(8, 72))])
    return j.joined(gemm, matmul, axis=1)


def halves(j: Joined) -> Graph:
    # What is cut and turned is read where it lies, beside what is joined to it.
    both = j.apply("relu", [j.convolution(16, 3)])
    first, second = (j.apply("slice", [both], starts=(0, 0, 0, at), sizes=(2, 6, 7, 8)) for at in (0, 8))
    inner = j.apply("matmul", [second, j.constant(j.random(8, 8))])
    outer = j.apply("add", [j.apply("matmul", [inner, j.constant(j.random(8, 8))]), second])
    whole = j.apply("concat", [both, outer], axis=3)
    turned = j.apply("transpose", [both], permutation=(0, 3, 1, 2))
    sums = [j.apply("reduceMax", [v], axes=(axis,), keep_dimensions=True) for v, axis in ((first, 3), (turned, 0))]
    return j.graph(j.apply("add", [j.apply("sub", [whole, sums[0]]), j.apply("reduceMax", [sums[1]])]))


def runs(j: Joined) -> Graph:
    # Behind each other, as rows of other lengths too.
    a = j.constant(j.random(1, 6, 8))
    wide, narrow = (j.apply("matmul", [a, j.input(j.random(8, columns))]) for columns in (16, 8))
    rows = [j.apply("reshape", [v], new_shape=shape) for v, shape in ((wide, (1, 12, 8)), (narrow, (1, 6, 8)))]
    last = j.apply("relu", [j.apply("matmul", [a, j.input(j.random(8, 8))])])
    cut = j.apply("slice", [last], starts=(0, 1, 0), sizes=(1, 1, 8))
    return j.graph(j.apply("sub", [j.apply("concat", [*rows, last], axis=1), cut]))


JOINED: dict[str, Callable[[Joined], Graph]] = {
    f.__name__: f for f in (fire, kinds_of_convolutions, epilogues, products, halves, runs)
}


def plan_of(graph: Graph, caps: Caps, forced: dict[str, str] | None = None) -> ExecutionPlan:
    return make_plan(run_passes(graph, Target.of(caps))[0], Target.of(caps), forced)


def copies(plan: ExecutionPlan) -> list[int]:
    """Return how many tensors each concatenation that is left copies."""
    return [d.spec.param("inputs") for d in plan.dispatches if d.spec.template == "concat"]


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("name", JOINED)
def test_nothing_is_copied(device: Device, name: str, data_type: str) -> None:
    j = Joined(data_type)
    graph = JOINED[name](j)
    assert not copies(plan_of(graph, device.caps))
    np.testing.assert_array_equal(run_graph(device, graph, j.feeds)["0"], interpret(graph, j.feeds)["0"])


@pytest.mark.parametrize("profile", PROFILES)
def test_on_every_profile(profile: str) -> None:
    for make in JOINED.values():
        j = Joined()
        graph = make(j)
        np.testing.assert_array_equal(run_graph(open_profile(profile), graph, j.feeds)["0"], interpret(graph, j.feeds)["0"])


@pytest.mark.repeats
@pytest.mark.parametrize(
    "forced", [{"conv2d": v} for v in ("tiled", "plain")] + [{"matmul": v, "gemm": v} for v in ("tiled", "gemv", "plain")]
)
def test_of_every_variant(device: Device, forced: dict[str, str]) -> None:
    for make in JOINED.values():
        j = Joined()
        graph = make(j)
        plan = plan_of(graph, as_hardware(device.caps), forced)
        assert not copies(plan)
        program = Program(device, plan)
        try:
            result = program.start(j.feeds, ["0"]).result()["0"]
        finally:
            program.destroy()
        np.testing.assert_array_equal(result, interpret(graph, j.feeds)["0"])


def test_winograd(device: Device) -> None:
    j = Joined()
    graph = j.joined(j.convolution(8, 3), j.convolution(16, 3))
    assert not copies(plan_of(graph, device.caps, {"conv2d": "winograd"}))
    found = run_graph(device, graph, j.feeds, forced={"conv2d": "winograd"})["0"]
    np.testing.assert_allclose(found, interpret(graph, j.feeds)["0"], atol=1e-3)


def test_what_others_read_or_make_is_copied(device: Device) -> None:
    """Values that come from elsewhere, or are wanted elsewhere, keep a memory of their own; their neighbors do not."""
    j = Joined()
    shared = j.convolution(16)
    made = [j.apply("sqrt", [j.apply("abs", [j.image])]), j.convolution(8, 3), shared, j.image, j.convolution(4, 3)]
    whole = j.apply("concat", made, axis=3)
    graph = j.graph(j.apply("add", [whole, j.apply("reduceSum", [shared], axes=(3,), keep_dimensions=True)]))
    assert copies(plan_of(graph, device.caps)) == [1, 2]
    np.testing.assert_allclose(run_graph(device, graph, j.feeds)["0"], interpret(graph, j.feeds)["0"], rtol=1e-6)


def test_pools_have_a_memory_of_their_own() -> None:
    device = open_profile("hardware")
    j = Joined()
    pool = j.apply("maxPool2d", [j.image], window_dimensions=(3, 3), padding=(1,) * 4, layout="nhwc")
    graph = j.joined(j.apply("relu", [pool]), j.convolution(8), j.apply("neg", [j.convolution(16, 3)]))
    assert copies(make_plan(run_passes(graph, device.target)[0], device.target)) == [1]
    np.testing.assert_array_equal(run_graph(device, graph, j.feeds)["0"], interpret(graph, j.feeds)["0"])


def test_where_no_part_can_be_written(device: Device) -> None:
    """Twice the same value, columns that are no whole quads, another dimension, and results that a device cannot bind whole."""
    twice, narrow, rows = Joined(), Joined(), Joined()
    value = twice.convolution(8)
    narrow_graph = narrow.joined(narrow.convolution(6), narrow.convolution(6, 3))
    for j, graph in (
        (twice, twice.joined(value, value)),
        (narrow, narrow_graph),
        (rows, rows.joined(rows.convolution(8), rows.convolution(8, 3), axis=1)),
    ):
        assert copies(plan_of(graph, device.caps))
        np.testing.assert_array_equal(run_graph(device, graph, j.feeds)["0"], interpret(graph, j.feeds)["0"])
    small = Caps(limits=tuple((DEFAULT_LIMITS | {"max-storage-buffer-binding-size": 6000}).items()))
    assert copies(plan_of(fire(Joined()), small))
