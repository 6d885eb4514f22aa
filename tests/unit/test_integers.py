"""Integers that products of quantized numbers leave on their way: where floats take their place, and where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, assert_same, run_graph
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.integers import keep_integers_as_floats

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


def whole(*shape: int, most: int = 127) -> Array:
    return np.random.default_rng(5).integers(-most, most + 1, shape).astype(np.float32)


def centered(s: Sketch, x: int, scale: int, zero: int, subtracted: int | None = None) -> int:
    """Quantize a value and subtract the zero point, or another number."""
    steps = s.apply("cast", s.apply("quantizeLinear", x, scale, zero), data_type="float32")
    return s.apply("sub", steps, s.apply("cast", zero, data_type="float32") if subtracted is None else subtracted)


def as_integers(s: Sketch, sums: int) -> int:
    return s.apply("cast", sums, data_type="int32")


def as_floats(s: Sketch, sums: int) -> int:
    return s.apply("cast", sums, data_type="float32")


def test_what_is_quantized_as_it_comes_is_one_operator(device: Device) -> None:
    s = Sketch()
    x = s.input(normal(5, 24))
    scale, zero = s.apply_all("x.quantization_parameters", [x])
    flat = s.apply("reshape", s.apply("cast", s.apply("reshape", zero, new_shape=[]), data_type="float32"), new_shape=[1])
    sums = s.apply("matmul", centered(s, x, scale, zero, flat), s.constant(whole(24, 8)))
    steps = s.apply("mul", scale, number(s, 0.01))
    graph = s.graph(s.apply("add", s.apply("mul", as_floats(s, as_integers(s, sums)), steps), s.constant(normal(8))))
    ops = ["x.quantization_parameters", "quantizeCentered", "matmul", "mul", "mul", "add"]
    check(keep_integers_as_floats, graph, s.feeds, ops, tolerance=None)
    kernels = [node.op for node in run_passes(graph, device.target)[0].nodes]
    assert kernels == ["x.quantization_parameters", "quantizeCentered", "linear", "fused"]
    before = run_graph(device, graph, s.feeds, disabled_passes=["keep_integers_as_floats"])
    assert_same(run_graph(device, graph, s.feeds), before)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero", [0, 3, 120])
def test_numbers_known_beforehand_are_options(dtype: Any, zero: int, device: Device) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 5, 5) * 40)
    point = s.constant(np.full((1, 1, 1, 1), zero, dtype))
    left = centered(s, x, number(s, 0.25, shape=(1, 1, 1, 1)), point, number(s, zero))
    sums = s.apply("conv2d", left, s.constant(whole(4, 3, 2, 2)))
    biased = s.apply("add", as_integers(s, sums), s.constant(np.int32([[[7]], [[-900]], [[0]], [[65536]]])))
    biased = s.apply("add", s.constant(np.int32(-5)), biased)
    graph = s.graph(s.apply("mul", as_floats(s, biased), number(s, 0.125)))
    ops = ["quantizeDequantize", "conv2d", "add", "add", "mul"]
    check(keep_integers_as_floats, graph, s.feeds, ops, tolerance=None)
    before = run_graph(device, graph, s.feeds, disabled_passes=["keep_integers_as_floats"])
    assert_same(run_graph(device, graph, s.feeds), before)


@pytest.mark.parametrize("zero", [0, 7])
def test_all_readers_of_integers_share_their_floats(zero: int, device: Device) -> None:
    s = Sketch()
    x = s.input(normal(3, 16) * 9)
    point = s.constant(np.full((1, 1), zero, np.int8))
    steps = s.apply("quantizeLinear", x, number(s, 0.25, shape=(1, 1)), point)
    left = s.apply("cast", steps, data_type="float32")
    if zero:
        left = s.apply("sub", left, number(s, zero))
    product = s.apply("matmul", left, s.constant(whole(16, 8)))
    real = s.apply("dequantizeLinear", steps, number(s, 0.5, shape=(1, 1)), point)
    graph = s.graph(s.apply("mul", product, number(s, 0.125)), s.apply("exp", real))
    ops = ["quantizeDequantize", "matmul", "mul", "mul", "exp"]
    check(keep_integers_as_floats, graph, s.feeds, ops, tolerance=None)
    before = run_graph(device, graph, s.feeds, disabled_passes=["keep_integers_as_floats"])
    assert_same(run_graph(device, graph, s.feeds), before)


@pytest.mark.parametrize("reason", ["an output", "another zero point", "the integers themselves"])
def test_integers_that_others_read_too_stay_integers(reason: str) -> None:
    s = Sketch()
    point = s.constant(np.full((1, 1), 7, np.int8))
    steps = s.apply("quantizeLinear", s.input(normal(3, 4)), number(s, 0.1, shape=(1, 1)), point)
    other = s.constant(np.full((1, 1), 8, np.int8)) if reason == "another zero point" else point
    results = [s.apply("dequantizeLinear", steps, number(s, 0.5, shape=(1, 1)), z) for z in (point, other)]
    if reason == "an output":
        results.append(steps)
    if reason == "the integers themselves":
        results.append(s.apply("relu", steps))
    unchanged(keep_integers_as_floats, s.graph(*results))


def test_a_zero_point_of_zero_needs_no_difference() -> None:
    s = Sketch()
    zero = s.constant(np.zeros((1, 1), np.int8))
    steps = s.apply(
        "cast", s.apply("quantizeLinear", s.input(normal(3, 4)), number(s, 0.1, shape=(1, 1)), zero), data_type="float32"
    )
    check(keep_integers_as_floats, s.graph(s.apply("neg", steps)), s.feeds, ["quantizeDequantize", "neg"], tolerance=None)


@pytest.mark.parametrize("reason", ["another zero point", "another number", "by column", "other readers", "float16", "32 bits"])
def test_what_stays_quantized(reason: str) -> None:
    s = Sketch()
    x = s.input(normal(3, 4, dtype=np.float16 if reason == "float16" else np.float32))
    shape = (1, 4) if reason == "by column" else (1, 1)
    dtype = np.int32 if reason == "32 bits" else np.uint8
    scale = s.constant(np.full(shape, 0.1, np.float16 if reason == "float16" else np.float32))
    zero, other = (s.input(np.full(shape, n, dtype)) for n in (3, 4))
    subtracted = {"another number": number(s, 3), "another zero point": as_floats(s, other)}.get(reason)
    result = centered(s, x, scale, zero, subtracted)
    kept = [node.outputs[0] for node in s.nodes if node.op == "quantizeLinear"] if reason == "other readers" else []
    unchanged(keep_integers_as_floats, s.graph(result, *kept))


@pytest.mark.parametrize(
    "reason", ["large", "fractions", "no integers", "a fraction in them", "large addend", "unknown addend"]
)
def test_sums_that_have_to_be_integers(reason: str) -> None:
    s = Sketch()
    left = s.input(normal(5, 300)) if reason == "no integers" else as_floats(s, s.input(np.ones((5, 300), np.uint8)))
    left = s.apply("mul", left, number(s, 0.5)) if reason == "a fraction in them" else left
    weights = whole(300, 8, most=255) + np.float32(300) if reason == "large" else whole(300, 8)
    sums = as_integers(s, s.apply("matmul", left, s.constant(weights + np.float32(0.5) if reason == "fractions" else weights)))
    if reason == "large addend":
        sums = s.apply("add", s.apply("add", sums, s.constant(np.int32([3]))), s.constant(np.int32([2**24])))
    if reason == "unknown addend":
        sums = s.apply("add", sums, s.input(np.int32([5])))
    unchanged(keep_integers_as_floats, s.graph(as_floats(s, sums)))


@pytest.mark.parametrize("moved", ["transpose", "slice", "pad", "product of both"])
def test_whole_numbers_stay_whole_where_they_are_moved(moved: str) -> None:
    s = Sketch()
    x = as_floats(s, s.input(np.random.default_rng(2).integers(-128, 128, (6, 6)).astype(np.int8)))
    weights = s.constant(whole(6, 4))
    if moved == "pad":
        x = s.apply("pad", x, beginning_padding=[1, 0], ending_padding=[0, 0])
    elif moved == "slice":
        x = s.apply("slice", x, starts=[2, 0], sizes=[3, 6])
    elif moved == "transpose":
        x = s.apply("transpose", x)
    else:
        weights = as_floats(s, s.input(np.random.default_rng(3).integers(0, 256, (6, 4)).astype(np.uint8)))
    graph = s.graph(s.apply("neg", as_floats(s, as_integers(s, s.apply("matmul", x, weights)))))
    ops = [node.op for node in graph.nodes if node.op != "cast"]
    after = check(
        keep_integers_as_floats, graph, s.feeds, [*["cast"] * (1 + (moved == "product of both")), *ops], tolerance=None
    )
    assert "int32" not in {after.type(value).data_type for node in after.nodes for value in node.outputs}
