"""The pass that keeps values between convolutions channels last: what it rewrites, and that it changes no value."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, run_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import layout
from webnn_wgpu.passes.layout import keep_channels_last
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.costs import Target
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

SHAPE = (2, 6, 5, 7)


FREE_TRANSPOSES = replace(
    DEFAULT_TARGET,
    costs=replace(
        DEFAULT_TARGET.costs, passes=replace(DEFAULT_TARGET.costs.passes, transpose_ns=0.0, transpose_element_ns=0.0)
    ),
)
"""A target on which small graphs are rewritten too. On others their transposes cost more than convolutions save."""


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolution(s: Sketch, x: int, outputs: int = 6, taps: int = 3, **attrs: Any) -> int:
    channels = s.values[x].type.shape[1]
    weights = s.constant(normal(outputs, channels // attrs.get("groups", 1), taps, taps, seed=outputs))
    return s.apply("conv2d", x, weights, s.constant(normal(outputs)), **attrs)


def same(s: Sketch, x: int, outputs: int = 6) -> int:
    return convolution(s, x, outputs, padding=(1, 1, 1, 1))


def rewritten(graph: Graph, feeds: dict[str, Array], device: Device | None = None, target: Target = FREE_TRANSPOSES) -> Graph:
    """Run the pass; results and types must be those of the graph before."""
    after = verify(keep_channels_last(graph, target))
    expected, actual = interpret(graph, feeds), interpret(after, feeds)
    for name, wanted in expected.items():
        assert (actual[name].shape, actual[name].dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(actual[name], wanted, rtol=1e-5, atol=1e-5)
    if device is not None:
        for name, found in run_graph(device, after, feeds).items():
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-4)
    return after


def count(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def scales(s: Sketch) -> tuple[int, int]:
    return s.constant(np.full((1, 6, 1, 1), 0.1, np.float32)), s.constant(np.zeros((1, 6, 1, 1), np.int8))


MIDDLES: dict[str, Callable[[Sketch, int], int]] = {
    "relu": lambda s, x: s.apply("relu", x),
    "clamp": lambda s, x: s.apply("clamp", x, min_value=0, max_value=6),
    "bias": lambda s, x: s.apply("add", x, s.constant(normal(1, 6, 1, 1))),
    "bias of rank 3": lambda s, x: s.apply("mul", s.constant(normal(6, 1, 1)), x),
    "plane": lambda s, x: s.apply("sub", x, s.constant(normal(5, 7))),
    "number": lambda s, x: s.apply("mul", x, s.constant(normal(1))),
    "whole constant": lambda s, x: s.apply("max", x, s.constant(normal(*SHAPE))),
    "residual": lambda s, x: s.apply("add", x, s.apply("sigmoid", x)),
    "squeezed": lambda s, x: s.apply(
        "mul", x, s.apply("sigmoid", convolution(s, s.apply("reduceMean", x, axes=(2, 3), keep_dimensions=True), taps=1))
    ),
    "slope": lambda s, x: s.apply("prelu", x, s.constant(normal(6, 1, 1))),
    "where": lambda s, x: s.apply("where", s.apply("greater", x, s.constant(normal(1))), x, s.constant(normal(6, 1, 1))),
    "cast": lambda s, x: s.apply("cast", s.apply("cast", x, data_type="float16"), data_type="float32"),
    "maximum pool": lambda s, x: s.apply("maxPool2d", x, window_dimensions=(3, 3), padding=(1, 1, 1, 1)),
    "average pool": lambda s, x: s.apply("averagePool2d", x, window_dimensions=(2, 3), strides=(1, 2)),
    "instance normalization": lambda s, x: s.apply("instanceNormalization", x, s.constant(normal(6)), s.constant(normal(6))),
    "batch normalization": lambda s, x: s.apply(
        "batchNormalization", x, s.constant(normal(6)), s.constant(abs(normal(6, seed=2)) + 1), s.constant(normal(6)), axis=1
    ),
    "layer normalization": lambda s, x: s.apply("layerNormalization", x, s.constant(normal(6)), axes=(1,)),
    "resample": lambda s, x: s.apply("resample2d", x, sizes=(10, 9), mode="linear"),
    "pad": lambda s, x: s.apply(
        "pad", x, beginning_padding=(0, 0, 1, 2), ending_padding=(0, 0, 0, 1), mode="reflection", value=0
    ),
    "concat": lambda s, x: same(s, s.apply("concat", x, s.apply("relu", x), axis=1)),
    "concat of rows": lambda s, x: s.apply("concat", x, x, axis=2),
    "split": lambda s, x: s.apply("concat", *s.apply_all("split", (x,), splits=(2, 4), axis=1)[::-1], axis=1),
    "slice": lambda s, x: s.apply("slice", x, starts=(0, 0, 1, 0), sizes=(2, 6, 4, 6), strides=(1, 1, 2, 3)),
    "reverse": lambda s, x: s.apply("reverse", x, axes=(1, 3)),
    "tile": lambda s, x: s.apply("tile", x, repetitions=(1, 1, 2, 1)),
    "softmax": lambda s, x: s.apply("softmax", x, axis=1),
    "log_softmax": lambda s, x: s.apply("x.log_softmax", x, axis=1),
    "expand": lambda s, x: s.apply(
        "add", x, s.apply("expand", s.apply("reduceSum", x, axes=(2, 3), keep_dimensions=True), new_shape=SHAPE)
    ),
    "quantize": lambda s, x: s.apply(
        "dequantizeLinear",
        s.apply(
            "quantizeLinear", x, s.constant(np.full((1, 6, 1, 1), 0.1, np.float32)), s.constant(np.zeros((1, 6, 1, 1), np.int8))
        ),
        s.constant(np.full((1, 6, 1, 1), 0.1, np.float32)),
        s.constant(np.zeros((1, 6, 1, 1), np.int8)),
    ),
    "pixels as a row": lambda s, x: s.apply(
        "reshape", s.apply("relu", s.apply("reshape", x, new_shape=(2, 6, 35))), new_shape=SHAPE
    ),
    "there and back": lambda s, x: s.apply(
        "transpose", s.apply("tanh", s.apply("transpose", x, permutation=(0, 2, 3, 1))), permutation=(0, 3, 1, 2)
    ),
    "transposed convolution": lambda s, x: s.apply("convTranspose2d", x, s.constant(normal(6, 6, 2, 2)), strides=(2, 2)),
}


@pytest.mark.parametrize("middle", MIDDLES.values(), ids=MIDDLES)
def test_nothing_is_transposed_between_convolutions(device: Device, middle: Callable[[Sketch, int], int]) -> None:
    s = Sketch()
    x = middle(s, same(s, s.input(normal(*SHAPE))))
    after = rewritten(s.graph(convolution(s, x, taps=1)), s.feeds, device)
    assert {n.attrs["input_layout"] for n in after.nodes if n.op in ("conv2d", "convTranspose2d")} == {"nhwc"}
    assert count(after)["transpose"] == 2  # in and out


def test_what_is_read_in_both_orders_is_transposed_once(device: Device) -> None:
    s = Sketch()
    x = s.apply("relu", same(s, s.input(normal(*SHAPE))))
    product = s.apply("matmul", x, s.constant(normal(7, 3)))
    again = s.apply("matmul", x, s.constant(normal(7, 2)))
    after = rewritten(s.graph(product, again, same(s, x)), s.feeds, device)
    assert count(after)["transpose"] == 3


@pytest.mark.parametrize("keep", [True, False])
def test_pooled_values_are_views(device: Device, *, keep: bool) -> None:
    s = Sketch()
    x = s.apply("reduceMean", same(s, s.input(normal(*SHAPE))), axes=(2, 3), keep_dimensions=keep)
    flat = s.apply("reshape", x, new_shape=(2, 6))
    after = rewritten(s.graph(s.apply("matmul", flat, s.constant(normal(6, 4)))), s.feeds, device)
    assert count(after)["transpose"] == 1


def test_transposes_of_the_graph_are_taken_together(device: Device) -> None:
    s = Sketch()
    x = same(s, s.apply("transpose", s.input(normal(2, 5, 7, 6)), permutation=(0, 3, 1, 2)))
    turned = s.apply("transpose", x, permutation=(0, 3, 1, 2))
    last = s.apply("transpose", x, permutation=(0, 2, 3, 1))
    after = rewritten(s.graph(turned, s.apply("softmax", last, axis=3)), s.feeds, device)
    assert count(after)["transpose"] == 1


def test_an_output_is_there_even_if_it_is_another_value_renamed(device: Device) -> None:
    s = Sketch()
    x = same(s, s.input(normal(*SHAPE)))
    after = rewritten(s.graph(s.apply("transpose", x, permutation=(0, 2, 3, 1)), x), s.feeds, device)
    assert count(after)["transpose"] == 2


def test_pixels_become_tokens_without_a_transpose(device: Device) -> None:
    s = Sketch()
    x = convolution(s, s.input(normal(1, 3, 8, 8)), 6, taps=2, strides=(2, 2))
    tokens = s.apply("transpose", s.apply("reshape", x, new_shape=(1, 6, 16)), permutation=(0, 2, 1))
    after = rewritten(s.graph(s.apply("matmul", tokens, s.constant(normal(6, 4)))), s.feeds, device)
    assert count(after)["transpose"] == 1


def test_graphs_that_transposes_would_slow_down_are_left_alone() -> None:
    s = Sketch()
    small = s.graph(same(s, s.input(normal(*SHAPE))))
    assert keep_channels_last(small, DEFAULT_TARGET) is small
    s = Sketch()
    large = s.graph(same(s, same(s, s.input(normal(1, 16, 64, 64)), 32), 32))
    after = rewritten(large, s.feeds, target=DEFAULT_TARGET)
    assert count(after) == {"transpose": 2, "conv2d": 2}


def test_graphs_without_channels_first_convolutions_are_left_alone() -> None:
    s = Sketch()
    x = s.input(normal(2, 5, 7, 6))
    y = s.apply("conv2d", x, s.constant(normal(4, 3, 3, 6)), input_layout="nhwc", filter_layout="ohwi")
    graph = s.graph(s.apply("transpose", y, permutation=(0, 3, 1, 2)))
    assert keep_channels_last(graph, FREE_TRANSPOSES) is graph


def test_the_permutations_undo_each_other() -> None:
    for rank in (3, 4, 5):
        shape = tuple(range(2, rank + 2))
        array = np.zeros(shape)
        there = array.transpose(layout.to_last(rank))
        assert there.shape[-1] == shape[1]
        assert there.transpose(layout.to_first(rank)).shape == shape
        assert math.prod(there.shape) == math.prod(shape)
