"""Matrix products and convolutions of tensors larger than the device can bind at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.kernels.large import check_large, limited, run_limited
from tests.support import Sketch, op_graph, random_array
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# -------------------------------------------------------------------------------------------------------------- products

VARIANTS = ["subgroup", "tiled", "plain", "gemv"]


def narrow(device: Device) -> int:
    """Return the width and height of textures that hold no more than one step of a panel side by side."""
    return 8 * (device.caps.subgroup_size or 8)


@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((300, 20), (20, 24)),
        ((301, 19), (19, 23)),
        ((3, 64), (64, 300)),
        ((2, 63), (63, 301)),
        ((5, 40, 32), (5, 32, 28)),
        ((2, 1, 30, 32), (5, 32, 31)),
        ((4, 70, 8), (8, 30)),
    ],
)
def test_products(device: Device, a: tuple[int, ...], b: tuple[int, ...], variant: str, constants: tuple[int, ...]) -> None:
    rng = np.random.default_rng(10)
    inputs = [random_array(rng, "float32", shape) for shape in (a, b)]
    caps = limited(device.caps, 8192, max_texture_dimension_2d=64)
    check_large(device, "matmul", inputs, constants=constants, forced={"matmul": variant}, caps=caps, atol=1e-3)


@pytest.mark.repeats
@pytest.mark.parametrize("constants", [(), (0, 1, 2)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("a_transpose", "b_transpose"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("c", [(200, 120), (120,), (200, 1), ()])
def test_transposed_products(
    device: Device, a_transpose: bool, b_transpose: bool, variant: str, constants: tuple[int, ...], c: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(11)
    a, b = (200, 100), (100, 120)
    shapes = (a[::-1] if a_transpose else a, b[::-1] if b_transpose else b, c)
    inputs = [random_array(rng, "float32", shape) for shape in shapes]
    attrs = {"alpha": 0.5, "beta": 2.0, "a_transpose": a_transpose, "b_transpose": b_transpose}
    caps = limited(device.caps, 32768, max_texture_dimension_2d=128)
    check_large(device, "gemm", inputs, attrs, constants=constants, forced={"gemm": variant}, caps=caps, atol=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_epilogues_of_divided_products(device: Device, variant: str) -> None:
    rng = np.random.default_rng(12)
    s = Sketch()
    x, bias, other = (s.input(random_array(rng, "float32", shape)) for shape in ((90, 100), (120,), (90, 120)))
    product = s.apply("matmul", x, s.constant(random_array(rng, "float32", (100, 120))))
    graph, _ = run_passes(s.graph(s.apply("mul", s.apply("relu", s.apply("add", product, bias)), other)), device.target)
    caps = limited(device.caps, 32768, max_texture_dimension_2d=narrow(device))
    plan, actual = run_limited(device, graph, s.feeds, caps, {"matmul": variant})
    assert all(d.spec.template == f"matmul.{variant}" for d in plan.dispatches)
    assert len(plan.dispatches) > 1
    np.testing.assert_allclose(actual["0"], interpret(graph, s.feeds)["0"], rtol=1e-5, atol=1e-3)


def test_textures_hold_as_many_panels_as_they_can(device: Device) -> None:
    rng = np.random.default_rng(13)
    K, N = 3 * narrow(device) // 4, 8 * narrow(device) - 12
    inputs = [random_array(rng, "float32", shape) for shape in ((4, K), (K, N))]
    caps = limited(device.caps, 1 << 20, max_texture_dimension_2d=narrow(device))
    plan = check_large(device, "matmul", inputs, constants={1}, forced={"matmul": "subgroup"}, caps=caps, atol=1e-3)
    assert len(plan.dispatches) == len(plan.constants) > 1
    for use in plan.constants:
        assert use.packing is not None
        height, width, _ = use.packing.pack(inputs[1]).shape
        assert max(height, width) <= narrow(device)


def test_rows_too_long_for_a_tile_are_taken_one_by_one(device: Device) -> None:
    rng = np.random.default_rng(14)
    inputs = [random_array(rng, "float32", shape) for shape in ((20, 100), (100, 4))]
    (plan, *_) = [check_large(device, "matmul", inputs, atol=1e-3)]
    assert plan.dispatches[0].spec.template == "matmul.gemv"


# ---------------------------------------------------------------------------------------------------------- convolutions


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("variant", ["implicit", "tiled", "plain"])
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize(
    ("x", "weights", "groups"),
    [((2, 4, 24, 9), (8, 4, 3, 3), 1), ((1, 6, 20, 9), (6, 3, 3, 2), 2), ((1, 8, 5, 5), (50, 8, 3, 3), 1)],
)
def test_convolutions(
    device: Device,
    x: tuple[int, ...],
    weights: tuple[int, ...],
    groups: int,
    variant: str,
    constants: tuple[int, ...],
    layout: str,
) -> None:
    rng = np.random.default_rng(18)
    shape = x if layout == "nchw" else (x[0], x[2], x[3], x[1])
    inputs = [random_array(rng, "float32", s) for s in (shape, weights, weights[:1])]
    attrs = {"groups": groups, "input_layout": layout, "padding": [1, 0, 2, 1]}
    caps = limited(device.caps, 16384 if weights[0] == 50 else 3072)
    forced = {"conv2d": variant, "matmul": "plain"}
    check_large(device, "conv2d", inputs, attrs, constants=constants, forced=forced, caps=caps, atol=1e-3, divided=False)


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("x", "weights", "groups"),
    [
        ((1, 4, 40, 9), (4, 4, 3, 3), 1),
        ((5, 4, 6, 6), (4, 4, 3, 3), 1),
        ((2, 4, 20, 9), (4, 1, 3, 3), 4),
        ((1, 300, 3, 3), (4, 300, 2, 2), 1),
    ],
)
def test_epilogues_of_divided_convolutions(
    device: Device, x: tuple[int, ...], weights: tuple[int, ...], groups: int, layout: str, data_type: str
) -> None:
    rng = np.random.default_rng(19)
    n, c, h, w = x
    s = Sketch()
    image = s.input(random_array(rng, data_type, x if layout == "nchw" else (n, h, w, c), 1.0))
    filter_ = s.constant(random_array(rng, data_type, weights, 1.0))
    y = s.apply("conv2d", image, filter_, groups=groups, input_layout=layout)
    shape = s.type(y).shape
    scale = s.input(random_array(rng, data_type, (4, 1, 1) if layout == "nchw" else (4,), 1.0))
    y = s.apply("add", s.apply("relu", s.apply("mul", y, scale)), s.input(random_array(rng, data_type, shape, 1.0)))
    graph, _ = run_passes(s.graph(y), device.target)
    assert len(graph.nodes) == 1
    caps = limited(device.caps, 2048 if data_type == "float32" else 1024)
    plan, actual = run_limited(device, graph, s.feeds, caps)
    assert len(plan.dispatches) > 1
    wanted = interpret(graph, s.feeds)["0"]
    close = {"float32": 1e-4, "float16": 1e-2}[data_type]
    np.testing.assert_allclose(actual["0"], wanted, rtol=close, atol=close * 20)


# --------------------------------------------------------------------------------------------------------- the real limits


@pytest.fixture(scope="module")
def embeddings() -> Array:
    """As many as GPT-2 has: 154 MB."""
    return np.random.default_rng(16).standard_normal((50257, 768), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("constants", [(), (0,)])
def test_rows_of_a_large_embedding_table(device: Device, embeddings: Array, constants: tuple[int, ...]) -> None:
    indices = np.array([[0, 50256, -1], [43690, 43691, 20000]], np.int64)
    caps = limited(device.caps, DEFAULT_LIMITS["max-storage-buffer-binding-size"])
    check_large(device, "gather", [embeddings, indices], constants=constants, caps=caps)


@pytest.mark.repeats
@pytest.mark.slow
@pytest.mark.parametrize("variant", [None, "tiled", "gemv"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_a_large_embedding_table_as_a_factor(
    device: Device, embeddings: Array, transposed: bool, variant: str | None, constants: tuple[int, ...]
) -> None:
    a = np.random.default_rng(17).standard_normal((1, 768), np.float32)
    b = embeddings if transposed else np.ascontiguousarray(embeddings.T)
    graph = op_graph("gemm", [a, b, None], {"b_transpose": transposed}, constants)
    feeds = {"0": a} if constants else {"0": a, "1": b}
    _, actual = run_limited(device, graph, feeds, device.caps, {"gemm": variant} if variant else None)
    np.testing.assert_allclose(actual["0"], a @ embeddings.T, atol=1e-2)
