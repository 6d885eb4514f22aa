"""Reshapes that move behind operators, so that the convolution in front computes these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch, assert_same, random_array
from tests.targets import SOFTWARE
from tests.unit.plans import caps_of
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.moved_reshapes import move_reshapes
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Graph

GPU = Target.of(caps_of("amd"))
LAST = {"input_layout": "nhwc", "filter_layout": "ohwi"}


class Line:
    """A convolution over one dimension: over two, between reshapes.

    Attributes:
        sketch: the graph.
        result: the result of the convolution with the shape that is asked for.
    """

    def __init__(self, *shape: int) -> None:
        self.sketch = s = Sketch()
        image, weights = self.array(1, 1, 9, 8), self.array(12, 1, 3, 8)
        self.result = s.apply("reshape", s.apply("conv2d", image, weights, None, **LAST), new_shape=shape or (1, 7, 12))

    def array(self, *shape: int) -> int:
        """Return a new graph input."""
        return self.sketch.input(random_array(np.random.default_rng(len(self.sketch.feeds)), "float32", shape, 1))

    def moved(self, *outputs: int) -> list[str]:
        """Return the operators in order, after a check that the pass keeps the results."""
        graph = self.sketch.graph(*outputs)
        after = verify(move_reshapes(graph, GPU))
        assert_same(interpret(after, self.sketch.feeds), interpret(graph, self.sketch.feeds))
        return [node.op for node in after.nodes]


def operators(graph: Graph) -> list[list[str]]:
    return [[each.op for each in node.attrs["body"].nodes] if "body" in node.attrs else [node.op] for node in graph.nodes]


@pytest.mark.parametrize("shape", [(12,), (1, 1), (7, 12), (1, 7, 12)])
def test_element_wise_operators_are_computed_before_a_reshape(shape: tuple[int, ...]) -> None:
    line = Line()
    s = line.sketch
    activated = s.apply("relu", line.result)
    y = s.apply("add", line.array(*shape), activated)
    assert line.moved(y) == ["conv2d", "relu", *["reshape"] * (shape[-2:] == (7, 12)), "add", "reshape"]
    optimized, _ = run_passes(s.graph(y), GPU)
    assert ["conv2d", "relu", "add"] in operators(optimized)


def test_normalizations_are_computed_before_a_reshape() -> None:
    line = Line()
    s = line.sketch
    y = s.apply("add", line.result, line.array(1, 7, 12))
    normalized = s.apply("layerNormalization", y, line.array(12), axes=(2,))
    assert line.moved(y, normalized) == ["conv2d", "reshape", "add", "reshape", "layerNormalization", "reshape"]


@pytest.mark.parametrize("axes", [(1,), (1, 2)])
def test_normalizations_of_other_dimensions_stay(axes: tuple[int, ...]) -> None:
    line = Line()
    assert line.moved(line.sketch.apply("layerNormalization", line.result, axes=axes)) == [
        "conv2d",
        "reshape",
        "layerNormalization",
    ]


@pytest.mark.parametrize(
    ("shape", "other"),
    [((1, 84), (84,)), ((7, 3, 4), (4,)), ((1, 7, 12), (2, 7, 12)), ((7, 1, 12), (7, 7, 12))],
    ids=["joined dimensions", "divided dimensions", "larger results", "repeated dimensions"],
)
def test_other_reshapes_stay(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    line = Line(*shape)
    assert line.moved(line.sketch.apply("mul", line.result, line.array(*other))) == ["conv2d", "reshape", "mul"]


def test_reshapes_with_other_consumers_stay() -> None:
    line = Line()
    y = line.sketch.apply("relu", line.result)
    assert line.moved(y, line.sketch.apply("transpose", line.result)) == ["conv2d", "reshape", "relu", "transpose"]


def test_operators_in_front_of_a_reshape_are_part_of_the_same_kernel() -> None:
    s = Sketch()
    y = s.apply("averagePool2d", s.input(random_array(np.random.default_rng(1), "float32", (1, 6, 7, 5))))
    flat = s.apply("reshape", s.apply("relu", y), new_shape=(1, 6))
    graph = s.graph(s.apply("tanh", flat))
    after = verify(move_reshapes(graph, GPU))
    assert [node.op for node in after.nodes] == ["averagePool2d", "relu", "tanh", "reshape"]
    assert_same(interpret(after, s.feeds), interpret(graph, s.feeds))
    optimized, _ = run_passes(graph, GPU)
    assert operators(optimized) == [["averagePool2d", "relu", "tanh"], ["reshape"]]


def test_results_with_other_consumers_in_front_of_a_reshape_end_the_search() -> None:
    s = Sketch()
    y = s.apply("relu", s.apply("averagePool2d", s.input(random_array(np.random.default_rng(1), "float32", (1, 6, 7, 5)))))
    graph = s.graph(s.apply("tanh", s.apply("reshape", y, new_shape=(1, 6))), y)
    assert move_reshapes(graph, GPU) is graph


def test_reshapes_of_other_operators_stay() -> None:
    s = Sketch()
    x = s.input(np.ones((1, 1, 7, 12), np.float32))
    y: Any = s.apply("softmax", x, axis=3)
    graph = s.graph(s.apply("relu", s.apply("reshape", y, new_shape=(7, 12))))
    assert move_reshapes(graph, GPU) is graph


def test_reshapes_stay_on_software_adapters() -> None:
    line = Line()
    graph = line.sketch.graph(line.sketch.apply("relu", line.result))
    assert move_reshapes(graph, Target.of(SOFTWARE)) is graph
