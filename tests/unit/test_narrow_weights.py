"""Constant factors that the device stores as bytes: which ones, and that every kernel computes the same with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, assert_same, run_graph
from tests.unit.plans import caps_of
from tests.unit.rewrites import normal
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.ops._recurrent import VARIANTS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.narrow_weights import byte_zero_point, holds_halves, keep_weights_narrow
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device


@dataclass(frozen=True)
class Held:
    """Weights: whole numbers, the highest of which is `most`, times a unit. `data_type` is the narrowest that holds them."""

    data_type: str
    unit: float = 1.0
    most: int = 127

    def of(self, *shape: int) -> Array:
        """Return weights of a shape."""
        return self.unit * steps(*shape, most=self.most)


HELD = [Held("int8"), Held("int8", most=112), Held("int8", most=255), Held("float16", unit=0.5)]
"""The ways in which narrow weights are held: bytes, bytes with a zero point below and above 0, float16."""


def steps(*shape: int, most: int = 127, count: int = 256) -> Array:
    """Return whole numbers, the `count` numbers that end with the highest one, `most`."""
    low = most - count + 1
    found = np.random.default_rng(sum(shape)).integers(low, most + 1, shape).astype(np.float32)
    found.flat[:2] = low, most
    return found


def product(op: str, x: Array, weights: Array, **attrs: Any) -> tuple[Sketch, Graph]:
    s = Sketch()
    y = s.apply(op, s.input(x), s.constant(weights), **attrs)
    return s, s.graph(s.apply("relu", y))


def convolution(channels: int, outputs: int, taps: int, held: Held = HELD[0], **attrs: Any) -> tuple[Sketch, Graph]:
    attrs = {"input_layout": "nhwc", "filter_layout": "ohwi", "padding": (taps // 2,) * 4, **attrs}
    return product("conv2d", np.rint(8 * normal(1, 7, 9, channels)), held.of(outputs, taps, taps, channels), **attrs)


def types_of_weights(graph: Graph) -> set[str]:
    return {graph.type(value).data_type for value in graph.constants}


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize(
    ("variant", "K", "N", "transposed"),
    [
        ("subgroup", 40, 48, False),
        ("subgroup", 37, 30, True),
        ("tiled", 40, 48, True),
        ("tiled", 37, 30, False),
        ("gemv", 37, 32, False),
        ("plain", 38, 31, True),
    ],
)
def test_every_kernel_of_products_reads_narrow_weights(
    device: Device, variant: str, K: int, N: int, transposed: bool, held: Held
) -> None:
    x, weights = np.rint(8 * normal(9, K)), held.of(N, K) if transposed else held.of(K, N)
    s, graph = product("gemm", x, weights, b_transpose=True) if transposed else product("matmul", x, weights)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={graph.nodes[0].op: variant}), interpret(graph, s.feeds))


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize(
    ("variant", "channels", "outputs"),
    [("implicit", 12, 16), ("implicit", 13, 18), ("tiled", 12, 16), ("tiled", 13, 18), ("plain", 13, 18), ("winograd", 12, 16)],
)
def test_every_kernel_of_convolutions_reads_narrow_weights(
    device: Device, variant: str, channels: int, outputs: int, held: Held
) -> None:
    s, graph = convolution(channels, outputs, 3, held)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={"conv2d": variant}), interpret(graph, s.feeds))


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("variant", ["implicit", "tiled", "plain"])
def test_every_kernel_of_transposed_convolutions_reads_narrow_weights(
    device: Device, variant: str, stride: int, held: Held
) -> None:
    x, weights = np.rint(8 * normal(1, 7, 9, 12)), held.of(16, 3, 3, 12)
    options = {"input_layout": "nhwc", "filter_layout": "ohwi", "strides": (stride, stride)}
    s, graph = product("convTranspose2d", x, weights, **options)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={"convTranspose2d": variant}), interpret(graph, s.feeds))


@pytest.mark.parametrize("held", HELD, ids=str)
def test_the_kernel_of_depthwise_transposed_convolutions_reads_narrow_weights(device: Device, held: Held) -> None:
    x, weights = np.rint(8 * normal(1, 7, 9, 120)), held.of(1, 3, 3, 120)
    s, graph = product("convTranspose2d", x, weights, input_layout="nhwc", filter_layout="ohwi", groups=120)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={"convTranspose2d": "depthwise"}), interpret(graph, s.feeds))


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize(("channels", "outputs"), [(120, 120), (118, 118), (60, 120)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_the_kernel_of_depthwise_convolutions_reads_narrow_weights(
    device: Device, stride: int, channels: int, outputs: int, held: Held
) -> None:
    x, weights = np.rint(8 * normal(1, 7, 9, channels)), held.of(1, 3, 3, outputs)
    options = {"input_layout": "nhwc", "filter_layout": "ihwo", "groups": channels, "strides": (stride, stride)}
    s, graph = product("conv2d", x, weights, **options)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={"conv2d": "depthwise"}), interpret(graph, s.feeds))


@pytest.mark.parametrize("held", HELD, ids=str)
@pytest.mark.parametrize("variant", ["implicit", "tiled", "plain"])
def test_kernels_of_few_channels_read_narrow_weights(device: Device, variant: str, held: Held) -> None:
    s, graph = convolution(1, 128, 3, held)
    assert types_of_weights(keep_weights_narrow(graph)) == {held.data_type}
    assert_same(run_graph(device, graph, s.feeds, forced={"conv2d": variant}), interpret(graph, s.feeds))


def network(op: str, hidden: int, held: Held) -> tuple[Sketch, Graph]:
    s = Sketch()
    gates = 3 if op == "gru" else 4
    weights = [s.constant(held.of(1, gates * hidden, columns)) for columns in (41, hidden)]
    return s, s.graph(s.apply(op, s.input(normal(3, 2, 41)), *weights, steps=3, hidden_size=hidden))


@pytest.mark.parametrize("hidden", [36, 37])
@pytest.mark.parametrize("variant", [v for v in VARIANTS if v != "cooperative"])
@pytest.mark.parametrize("op", ["gru", "lstm"])
def test_every_kernel_of_recurrent_networks_reads_weights_of_float16(
    device: Device, op: str, variant: str, hidden: int
) -> None:
    s, graph = network(op, hidden, Held("float16", unit=2.0**-11))
    assert types_of_weights(keep_weights_narrow(graph)) == {"float16"}
    found, wanted = run_graph(device, graph, s.feeds, forced={op: variant}), interpret(graph, s.feeds)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=2.0**-20)


@pytest.mark.parametrize("op", ["gru", "lstm"])
def test_recurrent_networks_have_no_weights_of_bytes(op: str) -> None:
    _, graph = network(op, 40, Held("int8"))
    assert types_of_weights(keep_weights_narrow(graph)) == {"float16"}


@pytest.mark.parametrize("held", HELD[:3], ids=str)
@pytest.mark.parametrize("record", ["nvidia", "lavapipe"])
def test_bytes_take_a_quarter_of_the_memory(record: str, held: Held) -> None:
    target = Target.of(caps_of(record))
    options = {"groups": 128, "input_layout": "nhwc", "filter_layout": "ihwo"}
    depthwise = product("conv2d", normal(1, 9, 9, 128), held.of(1, 3, 3, 128), **options)
    made = (
        convolution(64, 64, 1, held),
        convolution(32, 64, 3, held),
        product("matmul", normal(40, 64), held.of(64, 64)),
        depthwise,
    )
    for _, graph in made:
        sizes: list[int] = []
        for disabled in ((), ("keep_weights_narrow",)):
            plan = make_plan(run_passes(graph, target, disabled)[0], target)
            (weights,) = [use for use in plan.constants if use.type.num_elements > 1]
            element_bytes = DATA_TYPES[weights.type.data_type].size_bytes
            shape, packing = weights.type.shape, weights.packing
            sizes.append(packing.size_bytes(shape, element_bytes) if packing is not None else weights.type.size_bytes)
        assert sizes[0] * 4 == sizes[1]


def shared() -> Graph:
    s = Sketch()
    weights = s.constant(steps(40, 40))
    return s.graph(s.apply("add", s.apply("matmul", s.input(normal(40, 40)), weights), s.apply("relu", weights)))


def output() -> Graph:
    s = Sketch()
    weights = s.constant(steps(40, 40))
    return s.graph(s.apply("matmul", s.input(normal(4, 40)), weights), weights)


@pytest.mark.parametrize(
    ("reason", "graph"),
    [
        ("too many digits for float16", product("matmul", normal(4, 40), steps(40, 40, most=4096, count=8192))[1]),
        ("too large for float16", product("matmul", normal(4, 40), 1024 * steps(40, 40))[1]),
        ("one element is no whole number", product("matmul", normal(4, 80), np.vstack([steps(79, 80), normal(1, 80)]))[1]),
        ("few elements", product("matmul", normal(4, 10), steps(10, 10))[1]),
        ("another node reads it", shared()),
        ("an output", output()),
        ("channels first", product("conv2d", normal(1, 40, 5, 5), steps(40, 40, 1, 1))[1]),
    ],
)
def test_other_constants_stay_as_they_are(reason: str, graph: Graph) -> None:
    assert keep_weights_narrow(graph) is graph, reason


def test_factors_of_channels_do_not_widen_a_filter_of_bytes(device: Device) -> None:
    s = Sketch()
    x, weights = s.input(np.rint(8 * normal(1, 7, 9, 12))), s.constant(steps(16, 3, 3, 12))
    y = s.apply("conv2d", x, weights, input_layout="nhwc", filter_layout="ohwi")
    graph = s.graph(s.apply("mul", y, s.constant(np.float32(2.0) ** np.arange(16, dtype=np.float32))))
    optimized, _ = run_passes(graph, device.target)
    assert "int8" in types_of_weights(optimized)
    assert len(optimized.nodes) == 1
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))


def test_bytes_are_whole_numbers_in_a_range_of_256() -> None:
    assert byte_zero_point(steps(40, 40)) == 0
    assert byte_zero_point(steps(40, 40, most=255)) == -128
    assert byte_zero_point(steps(40, 40, most=0)) == 127
    assert byte_zero_point(steps(40, 40, most=200, count=100)) == -128, "0 counts: padding adds it"
    for other in (np.nan, np.inf, -np.inf, 0.5, 128.0, -129.0):
        for place in (0, 5000):
            array = steps(80, 80)
            array.flat[place] = other
            assert byte_zero_point(array) is None


def test_the_reference_subtracts_the_zero_point_of_bytes() -> None:
    s, graph = convolution(12, 16, 3, Held("int8", most=112))
    narrow = keep_weights_narrow(graph)
    assert "int8[16, 3, 3, 12] minus 15" in to_text(narrow)
    assert_same(interpret(narrow, s.feeds), interpret(graph, s.feeds))


def test_numbers_of_float16_are_those_that_keep_their_digits() -> None:
    assert holds_halves(0.5 * steps(80, 80))
    assert holds_halves(np.float32(2.0**-24) * steps(80, 80))
    for other in (np.nan, np.inf, 2049.0, 65536.0, 2.0**-25):
        for place in (0, 5000):
            array = 0.5 * steps(80, 80)
            array.flat[place] = other
            assert not holds_halves(array)
