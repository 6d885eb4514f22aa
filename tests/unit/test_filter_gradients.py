"""Gradients of filters are products over pixels on GPUs, and stay convolutions elsewhere."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.golden.planning import planning_context
from tests.support import Sketch
from tests.unit.plans import caps_of
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes.filter_gradients import recognize_filter_gradients
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.plan import ExecutionPlan

GPU, SOFTWARE = Target.of(caps_of("nvidia")), Target.of(caps_of("lavapipe"))

OPTIONS: list[dict[str, Any]] = [
    {},
    {"padding": [1, 1, 1, 1]},
    {"padding": [1, 0, 2, 1], "strides": [2, 2]},
    {"strides": [2, 3], "dilations": [2, 1]},
]


def step(caps: Caps, layout: str, channels: int = 8, size: int = 12, **options: Any) -> ExecutionPlan:
    """Return the plan of two convolutions and the gradients of their filters."""
    context, planning = planning_context(caps.to_json())
    b = wn.MLGraphBuilder(context)
    shape = [4, channels, size, size] if layout == "nchw" else [4, size, size, channels]
    x = b.input("x", {"dataType": "float32", "shape": shape})
    order = "oihw" if layout == "nchw" else "ohwi"
    shapes = ([8, channels, 3, 3], [12, 8, 3, 3])
    filters = [
        b.input(f"f{i}", {"dataType": "float32", "shape": [sizes["oihw".index(letter)] for letter in order]})
        for i, sizes in enumerate(shapes)
    ]
    y = b.relu(b.conv2d(x, filters[0], input_layout=layout, filter_layout=order, padding=[1, 1, 1, 1]))
    y = b.conv2d(y, filters[1], input_layout=layout, filter_layout=order, **options)
    gradients = b.gradients(b.reduce_sum_square(y), filters)
    b.build({f"gradient{i}": gradient for i, gradient in enumerate(gradients)})
    return planning.plans[0]


def operators(plan: ExecutionPlan) -> list[str]:
    """Return the operators of a plan, those of fused nodes among them."""
    return [
        op
        for node in plan.graph.nodes
        for op in ([n.op for n in node.attrs["body"].nodes] if "body" in node.attrs else [node.op])
    ]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_gpus_sum_over_pixels(layout: str, options: dict[str, Any]) -> None:
    plan = step(caps_of("nvidia"), layout, **options)
    found = [node for node in plan.graph.nodes if node.op == "filterGradient"]
    assert [node.attrs["kernel"] for node in found] == [(3, 3)] * 2
    assert operators(plan).count("conv2d") == 2
    feeds = {
        name: np.random.default_rng(i).standard_normal(t.shape, np.float32) for i, (name, t) in enumerate(plan.inputs.items())
    }
    exact = step(caps_of("lavapipe"), layout, **options)
    for name, wanted in interpret(exact.graph, feeds).items():
        np.testing.assert_allclose(interpret(plan.graph, feeds)[name], wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_no_kernel_copies_an_image(layout: str) -> None:
    plan = step(caps_of("nvidia"), layout, channels=32, size=56)
    copies = [node for node in plan.graph.nodes if node.op == "transpose" and node.origins]
    largest = max(math.prod(plan.graph.type(node.outputs[0]).shape) for node in copies)
    # Filters are copied, and the input of the graph where it has its channels first.
    assert largest <= (4 * 32 * 56 * 56 if layout == "nchw" else 12 * 8 * 3 * 3)


def test_software_adapters_keep_convolutions() -> None:
    assert "filterGradient" not in operators(step(caps_of("lavapipe"), "nchw"))


def test_images_larger_than_a_binding_stay_convolutions() -> None:
    caps = caps_of("nvidia")
    limits = dict(caps.limits) | {"max-storage-buffer-binding-size": 1 << 16}
    plan = step(replace(caps, limits=tuple(limits.items())), "nhwc", channels=32, size=32)
    assert operators(plan).count("filterGradient") == 0


def stated(s: Sketch, x: int, gradient: int, permutations: tuple[tuple[int, ...], tuple[int, ...]], **options: Any) -> Graph:
    """Return the graph of a convolution of transposed images by transposed images."""
    moved = [s.apply("transpose", value, permutation=p) for value, p in zip((x, gradient), permutations, strict=True)]
    return s.graph(s.apply("conv2d", *moved, None, **options))


FIRST, LAST = (1, 0, 2, 3), (3, 0, 1, 2)
"""The permutations from [N, C, H, W] and [N, H, W, C] to [C, N, H, W]."""


@pytest.mark.parametrize(("x", "order"), [((2, 3, 6, 5), FIRST), ((2, 6, 5, 3), LAST)])
@pytest.mark.parametrize(("g", "gradient_order"), [((2, 4, 5, 4), FIRST), ((2, 5, 4, 4), LAST)])
def test_both_layouts_are_recognized(
    x: tuple[int, ...], order: tuple[int, ...], g: tuple[int, ...], gradient_order: tuple[int, ...]
) -> None:
    s = Sketch()
    rng = np.random.default_rng(0)
    operands = (s.input(rng.standard_normal(shape, np.float32)) for shape in (x, g))
    graph = stated(s, *operands, (order, gradient_order))
    after = verify(recognize_filter_gradients(graph, GPU))
    assert [node.op for node in after.nodes if node.op != "transpose"] == ["filterGradient"]
    for found, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels", [3, 32])
def test_large_images_are_recognized(channels: int) -> None:
    s = Sketch()
    operands = (s.input(np.ones((4, 28, 28, n), np.float32)) for n in (channels, 64))
    graph = stated(s, *operands, (LAST, LAST), padding=[1, 1, 1, 1])
    after = verify(recognize_filter_gradients(graph, GPU))
    assert [node.op for node in after.nodes] == ["filterGradient", "transpose"]
    (found,) = interpret(after, s.feeds).values()
    np.testing.assert_array_equal(
        found[0, 0],
        [
            [4 * 27 * 27, 4 * 27 * 28, 4 * 27 * 27],
            [4 * 28 * 27, 4 * 28 * 28, 4 * 28 * 27],
            [4 * 27 * 27, 4 * 27 * 28, 4 * 27 * 27],
        ],
    )


def test_other_convolutions_stay() -> None:
    def images(s: Sketch, *shapes: tuple[int, ...]) -> list[int]:
        return [s.input(np.random.default_rng(i).standard_normal(shape, np.float32)) for i, shape in enumerate(shapes)]

    def of_one_channel(s: Sketch) -> Graph:
        return s.graph(s.apply("conv2d", *images(s, (1, 4, 6, 5), (1, 4, 3, 3)), None))

    def of_groups(s: Sketch) -> Graph:
        return stated(s, *images(s, (4, 3, 6, 5), (2, 4, 3, 3)), (FIRST, FIRST), groups=2)

    def of_rows(s: Sketch) -> Graph:
        return stated(s, *images(s, (2, 3, 6, 5), (2, 4, 3, 3)), ((1, 0, 3, 2), FIRST))

    def of_a_constant(s: Sketch) -> Graph:
        (x,) = images(s, (2, 3, 6, 5))
        return stated(s, x, s.constant(np.ones((2, 4, 3, 3), np.float32)), (FIRST, FIRST))

    for draw in (of_one_channel, of_groups, of_rows, of_a_constant):
        s = Sketch()
        graph = draw(s)
        assert recognize_filter_gradients(graph, GPU) is graph, draw.__name__
        assert recognize_filter_gradients(graph, SOFTWARE) is graph
