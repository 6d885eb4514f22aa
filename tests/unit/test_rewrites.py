"""Passes that merge operators with each other and with constants: when they may, and when not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

from tests.support import Sketch, assert_same, run_graph
from tests.targets import DEFAULT_TARGET
from tests.unit.rewrites import check, normal, number, unchanged
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.casts import merge_casts
from webnn_wgpu.passes.channels import decompose_batch_normalization
from webnn_wgpu.passes.convolution import fold_into_convolutions, fold_padding
from webnn_wgpu.passes.numbers import take_numbers_along
from webnn_wgpu.passes.quantized import merge_quantization, recognize_matmul_nbits
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.runtime.device import Device

# --------------------------------------------------------------------------------------------------------- convolutions

LAYOUTS = [("nchw", "oihw"), ("nhwc", "ohwi"), ("nchw", "hwio")]


def convolution(s: Sketch, layout: str = "nchw", filters: str = "oihw", bias: bool = True, groups: int = 1) -> int:
    sizes = {"n": 2, "c": 4, "h": 5, "w": 6}
    taps = {"o": 6, "i": 4 // groups, "h": 3, "w": 2}
    x, weights = normal(*(sizes[d] for d in layout)), normal(*(taps[d] for d in filters), seed=1)
    operands = [s.input(x), s.constant(weights), *([s.constant(normal(6, seed=2))] if bias else [])]
    return s.apply("conv2d", *operands, input_layout=layout, filter_layout=filters, groups=groups)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 2])
def test_batch_normalization_goes_into_a_convolution(layouts: tuple[str, str], bias: bool, groups: int) -> None:
    s = Sketch()
    y = convolution(s, *layouts, bias, groups)
    mean, variance = s.constant(normal(6, seed=3)), s.constant(np.abs(normal(6, seed=4)) + 0.1)
    parameters = [s.constant(normal(6, seed=5)), s.constant(normal(6, seed=6))] if bias else []
    y = s.apply("batchNormalization", y, mean, variance, *parameters, axis=layouts[0].index("c"), label="bn")
    check(fold_into_convolutions, s.graph(y), s.feeds, ["conv2d"])


def test_factors_and_addends_of_channels_go_into_a_convolution() -> None:
    s = Sketch()
    y = convolution(s, bias=False)
    y = s.apply("mul", s.constant(normal(6, 1, 1, seed=3)), y)
    y = s.apply("sub", s.apply("add", y, s.constant(normal(1, 6, 1, 1, seed=4))), number(s, 0.25))
    y = s.apply("div", y, s.constant(np.abs(normal(1, 6, 1, 1, seed=5)) + 0.5))
    check(fold_into_convolutions, s.graph(y), s.feeds, ["conv2d"])


def test_factors_go_into_a_transposed_convolution() -> None:
    s = Sketch()
    x, weights = s.input(normal(1, 4, 3, 3)), s.constant(normal(4, 6, 2, 2, seed=1))
    y = s.apply("convTranspose2d", x, weights, strides=[2, 2])
    y = s.apply("add", s.apply("mul", y, s.constant(normal(6, 1, 1, seed=2))), s.constant(normal(6, 1, 1, seed=3)))
    check(fold_into_convolutions, s.graph(y), s.feeds, ["convTranspose2d"])


WHATS = ["varies along rows", "not constant", "an output", "overflow", "underflow", "two readers", "subtracted from", "rank 5"]


@pytest.mark.parametrize("what", WHATS)
def test_what_stays_behind_a_convolution(what: str) -> None:
    s = Sketch()
    y = convolution(s)
    shape = {"varies along rows": (5 - 2, 1), "rank 5": (1, 1, 6, 1, 1)}.get(what, (6, 1, 1))
    factor = normal(*shape) * np.float32({"overflow": 3e38, "underflow": 1e-38}.get(what, 1))
    z = s.apply("mul", y, s.input(factor) if what == "not constant" else s.constant(factor))
    if what == "subtracted from":
        z = s.apply("sub", s.constant(factor), y)
    extra = {"an output": (y,), "two readers": (s.apply("neg", y),)}
    unchanged(fold_into_convolutions, s.graph(z, *extra.get(what, ())))


def test_convolutions_pad_for_themselves() -> None:
    s = Sketch()
    x = s.apply("pad", s.input(normal(1, 2, 5, 6)), beginning_padding=[0, 0, 1, 0], ending_padding=[0, 0, 2, 3])
    y = s.apply("conv2d", x, s.constant(normal(3, 2, 3, 3)), padding=[1, 0, 0, 2])
    after = check(fold_padding, s.graph(y), s.feeds, ["conv2d"], tolerance=None)
    assert after.nodes[0].attrs["padding"] == (2, 2, 0, 5)


@pytest.mark.parametrize(("op", "value"), [("l2Pool2d", 0.0), ("maxPool2d", -np.inf)])
def test_pools_pad_for_themselves(op: str, value: float) -> None:
    s = Sketch()
    x = s.input(normal(1, 5, 6, 2))
    x = s.apply("pad", x, beginning_padding=[0, 1, 1, 0], ending_padding=[0, 1, 2, 0], value=value)
    y = s.apply(op, x, window_dimensions=[3, 3], strides=[2, 2], layout="nhwc")
    check(fold_padding, s.graph(y), s.feeds, [op], tolerance=None)


@pytest.mark.parametrize("what", ["edge", "ones", "channels", "average", "maximum of zeros", "wide"])
def test_padding_that_stays(what: str) -> None:
    s = Sketch()
    x = s.input(normal(1, 2, 5, 6))
    value = 1.0 if what == "ones" else -np.inf if what == "wide" else 0.0
    end = [0, 1, 0, 0] if what == "channels" else [0, 0, 3 if what == "wide" else 1, 1]
    mode = "edge" if what == "edge" else "constant"
    x = s.apply("pad", x, beginning_padding=[0, 0, 0, 0], ending_padding=end, mode=mode, value=value)
    if what in ("average", "maximum of zeros", "wide"):
        y = s.apply("averagePool2d" if what == "average" else "maxPool2d", x, window_dimensions=[2, 2])
    else:
        y = s.apply("conv2d", x, s.constant(normal(3, 3 if what == "channels" else 2, 2, 2)))
    unchanged(fold_padding, s.graph(y))


def normalization(s: Sketch, x: int, axis: int, dtype: Any = np.float32) -> int:
    size = s.type(x).shape[axis]
    mean, scale, bias = (s.constant(normal(size, seed=i, dtype=dtype)) for i in range(3))
    spread = s.constant(np.abs(normal(size, seed=3, dtype=dtype)))
    return s.apply("batchNormalization", x, mean, spread, scale, bias, axis=axis)


@pytest.mark.parametrize("axis", [1, 3])
def test_batch_normalization_before_an_activation_is_fused_with_it(axis: int) -> None:
    s = Sketch()
    graph = s.graph(s.apply("relu", normalization(s, s.input(normal(2, 3, 4, 5)), axis)))
    check(decompose_batch_normalization, graph, s.feeds, ["mul", "add", "relu"])
    assert [node.op for node in run_passes(graph, DEFAULT_TARGET)[0].nodes] == ["fused"]


@pytest.mark.parametrize("op", ["matmul", "gemm"])
def test_batch_normalization_of_a_product_is_fused_to_it(op: str) -> None:
    s = Sketch()
    graph = s.graph(normalization(s, s.apply(op, s.input(normal(5, 8)), s.constant(normal(8, 6))), 1))
    check(decompose_batch_normalization, graph, s.feeds, [op, "mul", "add"])
    assert [node.op for node in run_passes(graph, DEFAULT_TARGET)[0].nodes] == ["fused"]


def test_batch_normalization_that_does_not_fit_a_filter_is_fused_to_the_convolution() -> None:
    s = Sketch()
    filter_ = s.constant(normal(4, 3, 3, 3))
    graph = s.graph(normalization(s, s.apply("convTranspose2d", s.input(normal(1, 4, 5, 5)), filter_, groups=2), 1))
    unchanged(fold_into_convolutions, graph)
    check(decompose_batch_normalization, graph, s.feeds, ["convTranspose2d", "mul", "add"])
    assert [node.op for node in run_passes(graph, DEFAULT_TARGET)[0].nodes if node.op not in ("reshape", "transpose")] == [
        "fused"
    ]


def test_batch_normalization_between_an_activation_and_a_convolution_is_fused_with_the_activation() -> None:
    s = Sketch()
    y = s.apply("relu", s.apply("conv2d", s.input(normal(1, 3, 5, 5)), s.constant(normal(4, 3, 3, 3))))
    graph = s.graph(s.apply("conv2d", normalization(s, y, 1), s.constant(normal(2, 4, 1, 1))))
    check(decompose_batch_normalization, graph, s.feeds, ["conv2d", "relu", "mul", "add", "conv2d"])
    assert [node.op for node in run_passes(graph, DEFAULT_TARGET)[0].nodes if node.op not in ("reshape", "transpose")] == [
        "fused",
        "conv2d",
    ]


@pytest.mark.parametrize("what", ["alone", "float16", "an output", "beyond numbers", "no constants"])
def test_batch_normalization_that_stays(what: str) -> None:
    s = Sketch()
    x = s.input(normal(2, 3, 4, 5, dtype=np.float16 if what == "float16" else np.float32))
    if what == "no constants":
        y = s.apply("batchNormalization", x, s.input(normal(3)), s.input(np.abs(normal(3))), axis=1)
    elif what == "beyond numbers":
        huge = s.constant(np.full(3, 3e38, np.float32))
        y = s.apply("batchNormalization", x, huge, s.constant(np.zeros(3, np.float32)), huge, axis=1, epsilon=1e-12)
    else:
        y = normalization(s, x, 1, np.float16 if what == "float16" else np.float32)
    if what == "alone":
        unchanged(decompose_batch_normalization, s.graph(y))
    else:
        end = s.apply("relu", y)
        unchanged(decompose_batch_normalization, s.graph(end, y) if what == "an output" else s.graph(end))


# ------------------------------------------------------------------------------------------------- numbers, data types


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, -3.0])
def test_numbers_become_options(op: str, value: float, swapped: bool, dtype: Any) -> None:
    s = Sketch()
    x = s.input(np.array([0.0, -0.0, 0.1, -3.0, np.inf, -np.inf, np.nan, 6e4], dtype))
    operands = (number(s, value, dtype), x) if swapped else (x, number(s, value, dtype))
    check(take_numbers_along, s.graph(s.apply(op, *operands)), s.feeds, ["linear"], tolerance=None)


def test_numbers_that_no_option_can_be_stay() -> None:
    s = Sketch()
    x, i = s.input(normal(3)), s.input(np.arange(3, dtype=np.int32))
    outputs = [s.apply("add", x, number(s, np.inf)), s.apply("mul", i, number(s, 2, np.int32))]
    unchanged(take_numbers_along, s.graph(*outputs, s.apply("mul", x, number(s, 2, shape=(1, 1)))))


@pytest.mark.parametrize(
    ("first", "second", "third", "merges"),
    [
        (np.float16, "float32", "float16", True),
        (np.float32, "float16", "float32", False),
        (np.float16, "float32", "int8", True),
        (np.uint8, "float32", "float16", True),
        (np.uint8, "float16", "int8", False),
        (np.uint8, "int32", "int8", True),
        (np.int8, "float16", "int64", True),
        (np.int32, "float32", "int64", False),
        (np.int32, "int64", "uint8", True),
        (np.int32, "uint64", "int32", False),
        (np.float32, "int32", "float32", False),
    ],
)
def test_casts_that_lose_nothing_merge(first: Any, second: str, third: str, merges: bool) -> None:
    s = Sketch()
    x = np.array([0, 1, 100, 255, 60000], np.float64)
    x = np.clip(x, np.iinfo(first).min, np.iinfo(first).max) if np.dtype(first).kind != "f" else x
    graph = s.graph(s.apply("cast", s.apply("cast", s.input(x.astype(first)), data_type=second), data_type=third))
    if merges:
        check(merge_casts, graph, s.feeds, ["cast"], tolerance=None)
    else:
        unchanged(merge_casts, graph)


# --------------------------------------------------------------------------------------------------------- quantization

STEPS = np.array([-np.inf, -1e30, -7.3, -0.31, -0.0, 0.0, 0.05, 0.15, 0.25, 12.7, 300, np.inf, np.nan], np.float32)


def round_trip(s: Sketch, x: int, dtype: Any, scale: float = 0.1, zero: int = 3, after: float | None = None) -> int:
    def numbers(scale: float) -> list[int]:
        return [number(s, scale, shape=(1,)), number(s, zero, dtype, (1,))]

    return s.apply("dequantizeLinear", s.apply("quantizeLinear", x, *numbers(scale)), *numbers(after or scale))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero", [0, 3, 100])
def test_quantizing_to_dequantize_is_one_operator(dtype: Any, zero: int, device: Device) -> None:
    s = Sketch()
    graph = s.graph(round_trip(s, s.input(STEPS), dtype, zero=zero))
    check(merge_quantization, graph, s.feeds, ["quantizeDequantize"], tolerance=None)
    assert_same(run_graph(device, graph, s.feeds), run_graph(device, graph, s.feeds, disabled_passes=["merge_quantization"]))


def test_quantizing_that_stays() -> None:
    s = Sketch()
    x = s.input(STEPS)
    zero = s.constant(np.zeros(1, np.int8))
    bytes_ = s.apply("quantizeLinear", x, number(s, 0.5, shape=(1,)), zero)
    varies = s.input(np.ones(1, np.float32))
    outputs = [
        round_trip(s, x, np.int8, after=0.2),
        round_trip(s, x, np.int32),
        bytes_,
        s.apply("dequantizeLinear", bytes_, number(s, 0.5, shape=(1,)), zero),
        s.apply("dequantizeLinear", s.apply("quantizeLinear", x, varies, zero), varies, zero),
    ]
    unchanged(merge_quantization, s.graph(*outputs))


def weights(s: Sketch, dtype: Any, K: int, N: int, blocks: int, transposed: bool, seed: int = 0) -> int:
    rng = np.random.default_rng(seed)
    low, high = (-8, 7) if dtype == ml_dtypes.int4 else (0, 15) if dtype == ml_dtypes.uint4 else (-128, 127)
    b = rng.integers(low, high + 1, (K, N)).astype(dtype)
    scales = rng.uniform(0.01, 0.1, (blocks, N)).astype(np.float32)
    zeros = rng.integers(low, high + 1, (blocks, N)).astype(dtype)
    return s.apply("dequantizeLinear", *(s.constant(a.T if transposed else a) for a in (b, scales, zeros)))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, np.int8])
@pytest.mark.parametrize("form", ["matmul", "transpose", "gemm", "gemm, transposed"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_weights_in_blocks_are_multiplied_as_they_are(dtype: Any, form: str, blocks: int, device: Device) -> None:
    s = Sketch()
    K, N = 96, 7
    turned = "trans" in form
    x, b = s.input(normal(5, K)), weights(s, dtype, K, N, blocks, turned)
    if form in ("matmul", "transpose"):
        y = s.apply("matmul", x, s.apply("transpose", b, permutation=[1, 0]) if turned else b)
    else:
        y = s.apply("gemm", x, b, s.constant(normal(N)), b_transpose=turned)
    graph = s.graph(y)
    if dtype == np.int8 and blocks == 1:
        unchanged(recognize_matmul_nbits, graph)
        return
    after = check(recognize_matmul_nbits, graph, s.feeds, ["x.matmul_nbits"], tolerance=2e-6)
    (found,) = run_graph(device, graph, s.feeds).values()
    (wanted,) = interpret(after, s.feeds).values()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * float(np.max(np.abs(wanted))))


def test_weights_of_few_bits_keep_them_through_the_pipeline() -> None:
    s = Sketch()
    graph = s.graph(s.apply("matmul", s.input(normal(1, 64)), weights(s, ml_dtypes.uint4, 64, 32, 2, False)))
    after, _ = run_passes(graph, DEFAULT_TARGET)
    assert [node.op for node in after.nodes] == ["x.matmul_nbits"]
    assert sum(a.nbytes for a in after.constants.values()) == 64 * 32 // 2 + 2 * 32 * 4 + 32


# ---------------------------------------------------------------------------------------------- graphs without measure


def test_long_chains_are_no_patterns_and_take_no_time() -> None:
    s = Sketch()
    x = s.input(normal(1, 2, 4, 4))
    mask = s.constant(normal(4, 4))
    for _ in range(2000):
        x = s.apply("add", x, mask)
    table = s.apply("reshape", s.input(normal(4, 4)), new_shape=[1, 1, 4, 4])
    for _ in range(2000):
        table = s.apply("cos", table)
    halves = s.apply_all("split", [x], splits=2, axis=3)
    turned = s.apply("concat", s.apply("neg", halves[1]), halves[0], axis=3)
    scores = s.apply("add", s.apply("mul", x, table), s.apply("mul", turned, table))
    graph = s.graph(s.apply("matmul", s.apply("softmax", scores, axis=3), s.input(normal(1, 2, 4, 4))))
    assert run_passes(graph, DEFAULT_TARGET)[0].nodes


@pytest.mark.parametrize("op", ["add", "sub", "concat"])
def test_what_is_joined_with_itself_again_and_again_takes_no_time(op: str) -> None:
    s = Sketch()
    x = s.apply("cast", s.input(np.ones((1, 2, 4, 4), np.uint8)), data_type="float32")
    if op == "concat":
        x = s.apply("concat", s.input(normal(1, 2, 4, 1)), s.input(normal(1, 2, 4, 2)), axis=3)
    for _ in range(18 if op == "concat" else 200):
        x = s.apply(op, x, x, axis=2) if op == "concat" else s.apply(op, x, x)
    if op == "add":
        end = s.apply("matmul", s.apply("softmax", x, axis=3), s.input(normal(1, 2, 4, 4)))
    elif op == "concat":
        end = s.apply("slice", x, starts=[0, 0, 0, 1], sizes=[*s.type(x).shape[:3], 2])
    else:
        sums = s.apply("cast", s.apply("matmul", x, s.constant(np.ones((4, 4), np.float32))), data_type="int32")
        end = s.apply("cast", sums, data_type="float32")
    assert run_passes(s.graph(end), DEFAULT_TARGET)[0].nodes
