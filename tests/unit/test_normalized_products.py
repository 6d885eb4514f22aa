"""Normalizations that become part of the products which read them: which ones, and that the results stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.rows import as_hardware
from tests.support import Sketch, run_graph
from tests.unit.plans import caps_of
from tests.unit.rewrites import normal
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.passes.normalized_products import normalize_in_products
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

GPU, SOFTWARE = Target.of(caps_of("amd")), Target.of(caps_of("lavapipe"))


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def normalized(
    s: Sketch,
    shape: Sequence[int] = (1, 200, 64),
    *,
    scale: bool = True,
    bias: bool = True,
    rms: bool = False,
    axes: Sequence[int] | None = None,
    x: Array | None = None,
) -> int:
    """Return normalized rows of an input."""
    given = s.input(normal(*shape) if x is None else x)
    parameters = [s.constant(normal(shape[-1], seed=i + 1)) if has else None for i, has in enumerate((scale, bias))]
    last = [len(shape) - 1] if axes is None else axes
    if rms:
        return s.apply("x.rms_normalization", given, parameters[0], axes=last)
    return s.apply("layerNormalization", given, *parameters, axes=last)


def multiplied(s: Sketch, rows: int, columns: int = 96, *, bias: bool = True, seed: int = 3) -> int:
    """Return the product of rows with a constant."""
    product = s.apply("matmul", rows, s.constant(normal(s.type(rows).shape[-1], columns, seed=seed)))
    return s.apply("add", product, s.constant(normal(columns, seed=seed + 1))) if bias else product


def check(s: Sketch, graph: Graph, *, products: int = 1, sums: int = 1) -> Graph:
    """Check that all normalizations become part of products, and return the graph then."""
    after = verify(normalize_in_products(graph, GPU))
    found = names(after)
    assert found.count("normalizedMatmul") == products
    assert found.count("add") == sums
    assert not {"layerNormalization", "x.rms_normalization", "matmul", "gemm"} & set(found)
    for actual, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-4)
    return after


@pytest.mark.parametrize(
    "options",
    [{}, {"scale": False}, {"bias": False}, {"scale": False, "bias": False}, {"rms": True}, {"rms": True, "scale": False}],
    ids=str,
)
@pytest.mark.parametrize("bias", [True, False])
def test_scale_and_bias_become_part_of_the_product(options: dict[str, bool], bias: bool) -> None:
    s = Sketch()
    graph = s.graph(multiplied(s, normalized(s, **options), bias=bias))
    has_bias = bias or (options.get("bias", True) and not options.get("rms", False))
    after = check(s, graph, sums=int(has_bias))
    if not options.get("rms"):
        weights = after.constants[after.nodes[0].operands[1]]
        assert np.abs(weights.sum(0, dtype=np.float64)).max() < 1e-4


def test_all_readers_normalize_the_rows() -> None:
    s = Sketch()
    rows = normalized(s)
    flat = s.apply("reshape", rows, new_shape=[200, 64])
    joined = s.apply("matmul", rows, s.constant(normal(3, 64, 64, seed=5)))
    results = [
        multiplied(s, rows),
        multiplied(s, flat, 64, bias=False, seed=6),
        s.apply("add", joined, s.constant(normal(3, 1, 64, seed=7))),
        s.apply("gemm", flat, s.constant(normal(48, 64, seed=8)), s.constant(normal(48, seed=9)), b_transpose=True),
        s.apply("gemm", flat, s.constant(normal(64, 32, seed=10)), None),
    ]
    after = check(s, s.graph(*results), products=5, sums=5)
    # Each product stands for the normalization too.
    assert all({0, 1} & {origin.node for origin in node.origins} for node in after.nodes if node.op == "normalizedMatmul")


def graph_of(case: str) -> Graph:
    """Return a graph whose normalization stays as it is."""
    s = Sketch()
    shape = {"few rows": (1, 4, 64), "sums in parts": (1, 16, 4096)}.get(case, (1, 200, 64))
    K, columns = shape[-1], 768 if case == "sums in parts" else 96
    weights, outputs = normal(K, columns, seed=3), list[int]()
    match case:
        case "a float16 input":
            rows = normalized(s, shape, scale=False, bias=False, x=normal(*shape).astype(np.float16))
            weights = weights.astype(np.float16)
        case "other axes":
            rows = normalized(s, shape, scale=False, bias=False, axes=[1])
        case "a scale that is computed":
            rows = s.apply("layerNormalization", s.input(normal(*shape)), s.input(normal(K)), None, axes=[2])
        case _:
            rows = normalized(s, shape)
    match case:
        case "weights of float16":
            weights = weights.astype(np.float16).astype(np.float32)
        case "weights of 8 bits":
            weights = np.rint(20 * weights)
        case "weights beyond float32":
            weights = np.float32(2e38) * np.sign(weights)
        case "another reader":
            outputs = [s.apply("relu", rows)]
        case "an output":
            outputs = [rows]
        case _:
            pass
    if case == "a left factor":
        return s.graph(s.apply("matmul", s.constant(normal(96, 200, seed=4)), rows))
    if case == "a factor":
        flat = s.apply("reshape", rows, new_shape=shape[1:])
        return s.graph(s.apply("gemm", flat, s.constant(weights), None, alpha=2))
    right = s.input(weights) if case == "a right factor that is no constant" else s.constant(weights)
    if case == "shared weights":
        outputs = [s.apply("matmul", s.input(normal(*shape)), right)]
    return s.graph(s.apply("matmul", rows, right), *outputs)


@pytest.mark.parametrize(
    "case",
    [
        *("few rows", "sums in parts", "a float16 input", "other axes", "a scale that is computed"),
        *("a right factor that is no constant", "a left factor", "another reader", "an output", "weights of float16"),
        *("weights of 8 bits", "shared weights", "a factor", "weights beyond float32"),
    ],
)
def test_other_normalizations_stay(case: str) -> None:
    graph = graph_of(case)
    assert normalize_in_products(graph, GPU) is graph


def test_long_rows_keep_their_normalization(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Sketch()
    graph = s.graph(multiplied(s, normalized(s)))
    monkeypatch.setattr("webnn_wgpu.passes.normalized_products.LONGEST", 63)
    assert normalize_in_products(graph, GPU) is graph


def test_software_adapters_keep_normalizations() -> None:
    s = Sketch()
    graph = s.graph(multiplied(s, normalized(s)))
    assert normalize_in_products(graph, SOFTWARE) is graph


def test_many_columns_take_longer_than_a_normalization() -> None:
    # Each workgroup of 100 panels would find the deviations of its rows again.
    s = Sketch()
    graph = s.graph(multiplied(s, normalized(s, (1, 4096, 64)), 12_288))
    assert normalize_in_products(graph, GPU) is graph


def test_an_epilogue_follows(device: Device) -> None:
    s = Sketch()
    x = normalized(s, (1, 50, 96))
    gelu = s.apply("gelu", multiplied(s, x, 80))
    graph = s.graph(s.apply("add", gelu, s.input(normal(1, 50, 80, seed=5))))
    target = Target.of(as_hardware(device.caps))
    after, _ = run_passes(graph, target)
    plan = make_plan(after, target)
    assert [dispatch.spec.template for dispatch in plan.dispatches] == ["matmul.tiled"]
    assert plan.dispatches[0].spec.param("normal") == "layer"
    found, wanted = run_graph(device, after, s.feeds), interpret(graph, s.feeds)
    np.testing.assert_allclose(found["0"], wanted["0"], rtol=1e-5, atol=1e-4)


def test_products_of_normalized_rows_count_as_both(device: Device) -> None:
    s = Sketch()
    after, reports = run_passes(s.graph(multiplied(s, normalized(s))), GPU)
    (report,) = (report for report in reports if report.name == "normalize_in_products")
    assert (report.nodes_before, report.nodes_after) == (3, 2)
    (node,) = after.nodes
    body: Any = node.attrs["body"]
    assert names(body) == ["normalizedMatmul", "add"]
    assert {origin.node for origin in node.origins} == {0, 1, 2}
