"""Kernels that differ in their clamps or last addends alone become one, and compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn

SPECIALS = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.5, 2.5, 7.0])


def heads(builder, names):
    """Matrix products of one shape with different ends."""
    x = builder.input("x", {"dataType": "float32", "shape": [32, 8]})
    ends = {
        "none": builder.identity,
        "relu": builder.relu,
        "relu6": lambda y: builder.clamp(y, min_value=0, max_value=6),
        "tanh": builder.tanh,
    }
    outputs = {}
    for i, name in enumerate(names):
        w = builder.constant(np.eye(8, dtype=np.float32) * (i + 1))
        outputs[f"{name}{i}"] = builder.identity(ends[name](builder.matmul(x, w)))
    return outputs


@pytest.mark.parametrize(
    ("names", "kernels"),
    [
        (["none", "none"], 1),
        (["relu", "relu"], 1),
        (["none", "relu"], 1),
        (["none", "relu6"], 1),
        (["none", "relu", "relu6"], 1),
        (["none", "tanh"], 2),
        (["none", "relu", "tanh"], 2),
    ],
)
def test_ends_that_clamp_share_a_kernel(context, names, kernels):
    builder = wn.MLGraphBuilder(context)
    graph = builder.build(heads(builder, names))
    specs = {d.spec for d in graph.plan.dispatches if d.spec.template.startswith("matmul")}
    assert len(specs) == kernels
    x = np.zeros((32, 8), np.float32)
    x[:, 0] = np.resize(SPECIALS, 32)
    x[~np.isfinite(x)] = 1e38  # infinities would become NaN in the products with 0
    results = context.compute(graph, {"x": x})
    for i, name in enumerate(names):
        with np.errstate(over="ignore"):
            y = x * np.float32(i + 1)
        expected = {"none": y, "relu": np.maximum(y, 0), "relu6": np.clip(y, 0, 6), "tanh": np.tanh(y)}[name]
        np.testing.assert_allclose(results[f"{name}{i}"], expected, rtol=1e-6)


def test_reasons_tell_of_it(context):
    builder = wn.MLGraphBuilder(context)
    graph = builder.build(heads(builder, ["none", "relu6"]))
    reasons = [d.reason for d in graph.plan.dispatches if d.label.startswith("matmul")]
    assert sum("shares its kernel with operators that clamp" in r for r in reasons) == 1


def test_not_a_number_stays_one(context):
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 4]})
    w = builder.constant(np.full((4, 8), np.float32(1)))
    outputs = {
        "none": builder.matmul(x, w),
        "relu": builder.relu(builder.matmul(x, builder.constant(np.ones((4, 8), np.float32)))),
    }
    results = context.compute(builder.build(outputs), {"x": np.float32([[np.nan, 1, 2, 3]])})
    assert np.isnan(results["none"]).all()
    assert np.isnan(results["relu"]).all()


@pytest.mark.parametrize("columns", [8, 7], ids=["quads", "elements"])
@pytest.mark.parametrize(
    ("names", "kernels"),
    [
        (["sum", "none"], 1),
        (["sum", "relu", "none", "relu6"], 1),
        (["sum", "sum"], 1),
        (["biased sum", "biased"], 1),
        (["biased sum", "none"], 2),
        (["biased sum", "tanh"], 2),
        (["relu of sum", "none"], 2),
    ],
)
def test_products_with_and_without_an_addend_share_a_kernel(context, names, kernels, columns):
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [32, 8]})
    added = builder.input("added", {"dataType": "float32", "shape": [32, columns]})
    bias = builder.constant(np.arange(columns, dtype=np.float32))
    ends = {
        "none": builder.identity,
        "relu": builder.relu,
        "relu6": lambda y: builder.clamp(y, min_value=0, max_value=6),
        "tanh": builder.tanh,
        "sum": lambda y: builder.add(added, y),
        "biased": lambda y: builder.add(y, bias),
        "biased sum": lambda y: builder.add(builder.add(y, bias), added),
        "relu of sum": lambda y: builder.relu(builder.add(y, added)),
    }
    rng = np.random.default_rng(0)
    weights = [rng.integers(-4, 4, (8, columns)).astype(np.float32) for _ in names]
    products = [builder.matmul(x, builder.constant(w)) for w in weights]
    graph = builder.build({f"{i}": ends[name](y) for i, (name, y) in enumerate(zip(names, products, strict=True))})
    specs = {d.spec for d in graph.plan.dispatches if d.spec.template.startswith("matmul")}
    if all(spec.template == "matmul.subgroup" for spec in specs):
        assert len(specs) == kernels
    inputs = {n: rng.integers(-4, 4, shape).astype(np.float32) for n, shape in (("x", (32, 8)), ("added", (32, columns)))}
    results = context.compute(graph, inputs)
    b, extra = np.arange(columns, dtype=np.float32), inputs["added"]
    expected = {
        "none": lambda y: y,
        "relu": lambda y: np.maximum(y, 0),
        "relu6": lambda y: np.clip(y, 0, 6),
        "tanh": np.tanh,
        "sum": lambda y: y + extra,
        "biased": lambda y: y + b,
        "biased sum": lambda y: y + b + extra,
        "relu of sum": lambda y: np.maximum(y + extra, 0),
    }
    for i, (name, w) in enumerate(zip(names, weights, strict=True)):
        np.testing.assert_allclose(results[f"{i}"], expected[name](inputs["x"] @ w), rtol=1e-6)


def products(context, widths, rows=64):
    """A graph of products of one matrix with constants of some widths, its kernels of products, and what it should return."""
    builder, rng = wn.MLGraphBuilder(context), np.random.default_rng(1)
    x = builder.input("x", {"dataType": "float32", "shape": [rows, 64]})
    weights = [rng.integers(-4, 4, (64, n)).astype(np.float32) for n in widths]
    results = [builder.matmul(x, builder.constant(w)) for w in weights]
    graph = builder.build({f"{i}": builder.tanh(y) for i, y in enumerate(results)})
    source = rng.integers(-4, 4, (rows, 64)).astype(np.float32) / 256
    dispatches = [d for d in graph.plan.dispatches if d.spec.template.startswith("matmul")]
    return graph, dispatches, source, [source @ w for w in weights]


def quads_of(dispatches):
    """The quads per lane of each product, or nothing where the device has other kernels."""
    return [dict(d.spec.params).get("quads") for d in dispatches if d.spec.template == "matmul.subgroup"]


@pytest.mark.parametrize(
    ("widths", "rows", "shared"),
    [
        ((512, 32), 64, [2, 2]),  # the narrow one loses some microseconds
        ((32, 512), 64, [2, 2]),  # whichever comes first
        ((32, 32), 64, [1, 1]),  # alone it keeps what suits it
        ((64, 32), 4096, [2, 1]),  # here either would lose a tenth of a millisecond
    ],
)
def test_a_product_that_is_soon_done_is_computed_in_the_tiles_of_others(context, widths, rows, shared):
    graph, dispatches, x, expected = products(context, widths, rows)
    if context.device.adapter.info["adapter_type"] == "CPU" and "subgroup" in context.device.features:
        assert quads_of(dispatches) == shared
        moved = ["operators that its tiles suit better" in d.reason for d in dispatches]
        assert moved == [n == 32 and shared == [2, 2] for n in widths]
    results = context.compute(graph, {"x": x})
    for i, y in enumerate(expected):
        np.testing.assert_allclose(results[f"{i}"], np.tanh(y), rtol=1e-5, atol=1e-7)


def test_tiles_that_were_measured_are_kept(context):
    graph, dispatches, x, _ = products(context, (64, 32))
    tuning = graph.tune(save=False)
    builder = wn.MLGraphBuilder(context)
    source = builder.input("x", {"dataType": "float32", "shape": list(x.shape)})
    weights = [builder.constant(np.ones((64, n), np.float32)) for n in (64, 32)]
    again = builder.build({f"{i}": builder.tanh(builder.matmul(source, w)) for i, w in enumerate(weights)}, tuning=tuning)
    chosen = [name for key, name in tuning.choices.items() if key.startswith("matmul")]
    found = [d for d in again.plan.dispatches if d.spec.template.startswith("matmul")]
    assert len(chosen) == len(found) == len(dispatches)
    assert not any("operators that its tiles suit better" in d.reason for d in found)


@pytest.mark.parametrize("width", [32, 7], ids=["quads", "elements"])
def test_vectors_that_are_added_are_the_addends_of_products(context, width):
    builder, rng = wn.MLGraphBuilder(context), np.random.default_rng(2)
    x = builder.input("x", {"dataType": "float32", "shape": [16, 8]})
    w, b = rng.integers(-4, 4, (8, width)).astype(np.float32), np.arange(width, dtype=np.float32)
    outputs = {
        "gemm": builder.gemm(x, builder.constant(w), c=builder.constant(b)),
        "matmul": builder.add(builder.matmul(x, builder.constant(2 * w)), builder.constant(b)),
    }
    graph = builder.build(outputs)
    specs = {d.spec for d in graph.plan.dispatches}
    if all(spec.template == "matmul.subgroup" for spec in specs):
        assert len(specs) == 1
    source = rng.integers(-4, 4, (16, 8)).astype(np.float32)
    results = context.compute(graph, {"x": source})
    np.testing.assert_array_equal(results["gemm"], source @ w + b)
    np.testing.assert_array_equal(results["matmul"], source @ (2 * w) + b)
