"""`debug.watch`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.debug.faults import graph_of
from tests.debug.test_values import overflowing
from tests.ops.test_cache_update import decoder
from tests.runtime.graphs import ROWS, network, outputs, source
from tests.support import profile_context
from webnn_wgpu import debug

LARGE = np.float32([1, 2, 100, -60])
"""What `overflowing` cubes beyond float16."""


def test_a_float16_overflow_that_the_output_hides(context: wn.MLContext) -> None:
    graph = overflowing(context)
    assert [kernel.labels for kernel in graph.kernels.values()] == [("half", "square", "cube", "size", "squashed")]
    with debug.watch(graph) as watch:
        hidden = context.compute(graph, {"x": LARGE})["y"]
    np.testing.assert_array_equal(hidden, np.float16([np.tanh(1), 1, 1, 1]))
    first = watch.first
    assert first is not None
    assert (first.label, first.op, first.what, first.stored) == ("cube", "mul", "beyond float16", False)
    assert (first.count, first.elements, first.index, first.run) == (2, 4, (2,), 0)
    assert watch.alarms == [first]


def test_a_float16_value_that_is_stored(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.cast(builder.input("x", {"dataType": "float32", "shape": [4]}), "float16")
    square = builder.mul(x, x, label="square")
    graph = builder.build({"y": builder.softmax(square, 0), "z": builder.relu(square)})
    with debug.watch(graph, f16_range=False) as watch:
        context.compute(graph, {"x": np.float32([1, 2, 300, 4])})
    assert watch.first is not None
    assert (watch.first.what, watch.first.stored, watch.first.index) == ("infinite", True, (2,))
    with debug.watch(graph, f16_range=False, inf=False) as watch:
        context.compute(graph, {"x": np.float32([1, 2, 300, 4])})
    assert [alarm.what for alarm in watch.alarms] == ["NaN"]


def test_each_result_of_a_kernel_has_its_operator(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 4]})
    product = builder.matmul(x, builder.constant(np.eye(4, dtype=np.float32)), label="product")
    graph = builder.build({"y": builder.tanh(product, label="small"), "z": builder.exp(product, label="large")})
    assert [kernel.labels for kernel in graph.kernels.values()] == [("product", "small", "large")]
    with debug.watch(graph) as watch:
        context.compute(graph, {"x": np.float32([[1, 2, 300, 4]])})
    assert [(a.label, a.op, a.what, a.stored, a.index) for a in watch.alarms] == [("large", "exp", "infinite", True, (0, 2))]


@pytest.mark.parametrize("behind", [True, False])
def test_numbers_between_two_products(behind: bool) -> None:
    context = profile_context("hardware")
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [1, 4]})
    hidden = builder.matmul(x, builder.constant(np.eye(4, dtype=np.float32)), label="first")
    hidden = builder.tanh(builder.exp(hidden, label="large"), label="between")
    y = builder.matmul(hidden, builder.constant(np.eye(4, dtype=np.float32)), label="second")
    graph = builder.build({"y": builder.relu(y, label="behind") if behind else y})
    labels = ("first", "large", "between", "second", *["behind"] * behind)
    assert [kernel.labels for kernel in graph.kernels.values()] == [labels]
    with debug.watch(graph, values=True) as watch:
        context.compute(graph, {"x": np.float32([[1, 2, 300, 4]])})
    assert [(a.label, a.op, a.what, a.stored, a.index) for a in watch.alarms] == [("large", "exp", "infinite", False, (0, 2))]
    assert watch.values is not None
    assert [value.label for value in watch.values.values] == ["x", *labels]


def test_float32_in_place_of_float16(context: wn.MLContext) -> None:
    """A value that float32 holds is told of where the graph's own float16 would overflow."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float16", "shape": [4]})
    product = builder.mul(x, x, label="square")
    graph = builder.build({"y": builder.div(product, x, label="back")}, wide_float16=True)
    given = {"x": np.float16([1, 2, 300, 4])}
    with debug.watch(graph) as watch:
        np.testing.assert_array_equal(context.compute(graph, given)["y"], given["x"])
    assert [(alarm.label, alarm.what) for alarm in watch.alarms] == [("square", "beyond float16")]
    with debug.watch(graph, f16_range=False) as watch:
        context.compute(graph, given)
    assert watch.first is None


def test_masks_are_no_alarms(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    mask = builder.constant(np.float32([[0, -np.inf, 0], [0, 0, -np.inf]]))
    graph = builder.build({"y": builder.softmax(builder.add(x, mask), 1)})
    with debug.watch(graph) as watch:
        anywhere.compute(graph, {"x": np.ones((2, 3), np.float32)})
    assert (watch.first, watch.runs) == (None, 1)
    assert str(watch) == "1 run watched: nothing left the range"


def test_an_input_that_is_given_nan_is_named(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    with debug.watch(graph) as watch:
        anywhere.compute(graph, {"x": X})
        anywhere.compute(graph, {"x": np.float32([1, np.nan, 3])})
    assert [(a.run, a.label, a.op, a.what, a.index) for a in watch.alarms] == [(1, "x", "input", "NaN", (1,))]


@pytest.mark.parametrize("by", ["compute", "dispatch"])
def test_an_overridden_kernel(context: wn.MLContext, by: str) -> None:
    graph = network(context)
    wgsl = graph.kernels["layer_normalization_3"].wgsl
    graph.override("layer_normalization_3", wgsl.replace("output[q] = vec4<f32>(a,", "output[q] = vec4<f32>(a * 3e38,"))
    made = outputs(context)
    with debug.watch(graph) as watch:
        if by == "compute":
            found = context.compute(graph, {"x": ROWS})["probability"]
        else:
            context.dispatch(graph, {"x": source(context)}, made)
            found = context.read_tensor(made["probability"])
    first = watch.first
    assert first is not None
    assert (first.label, first.op, first.what) == ("layer_normalization_3", "layerNormalization", "infinite")
    graph.restore()
    assert found.shape == (4, 32)


def test_runs_give_what_they_do_unwatched(context: wn.MLContext) -> None:
    graph = network(context)
    expected = context.compute(graph, {"x": ROWS})
    made, given = outputs(context), source(context)
    with debug.watch(graph) as watch:
        watched = context.compute(graph, {"x": ROWS})
        later = context.compute_async(graph, {"x": ROWS}).result()
        context.dispatch(graph, {"x": given}, made)
        tensors = {name: context.read_tensor(tensor) for name, tensor in made.items()}
        for _ in context.dispatch_steps(graph, {"x": given}, made):
            pass
    assert (watch.runs, watch.alarms) == (3, [])
    for results in (watched, later, tensors):
        for name, array in expected.items():
            np.testing.assert_array_equal(results[name], array)


def test_a_cache_that_is_updated_in_place(context: wn.MLContext) -> None:
    graph = decoder(context)
    tensors = {
        name: context.create_tensor(t.shape, t.data_type, readable=True, writable=True) for name, t in graph.inputs.items()
    }
    context.write_tensor(tensors["new"], np.full(graph.inputs["new"].shape, np.inf, graph.inputs["new"].numpy))
    made: dict[str, Any] = {
        name: tensors[graph.aliases[name]] if name in graph.aliases else context.create_tensor(t.shape, t.data_type)
        for name, t in graph.outputs.items()
    }
    with debug.watch(graph) as watch:
        context.dispatch(graph, tensors, made)
    assert watch.first is not None
    assert (watch.first.label, watch.first.what) == ("new", "infinite")


def test_the_values_of_the_last_run(context: wn.MLContext) -> None:
    graph = overflowing(context)
    with debug.watch(graph, values=True) as watch:
        for x in (X[:1].repeat(4), LARGE):
            context.compute(graph, {"x": x})
    assert watch.values is not None
    assert [(v.label, v.type) for v in watch.values.values] == [
        ("x", "float32[4]"),
        *((label, "float16[4]") for label in ("half", "square", "cube", "size", "squashed")),
    ]
    (given,) = watch.values.of("x")
    assert (given.min, given.max, sum(given.histogram), given.histogram[0], given.histogram[-1]) == (-60, 100, 4, 1, 1)
    assert given.bars == "▄     █        ▄"
    assert "▄     █        ▄" in str(watch)
    assert replace(given, histogram=()).bars == ""


def test_what_is_inside_kernels_of_a_model_is_finite(context: wn.MLContext) -> None:
    model, graph, feeds = graph_of("mobilenet_v2", context)
    with model, debug.watch(graph, values=True) as watch:
        context.compute(graph, feeds)
    assert watch.first is None
    assert watch.values is not None
    assert {v.operator for v in watch.values.values} >= {"input", "conv2d", "clamp", "reduceMean", "gemm"}


def test_what_is_printed(context: wn.MLContext) -> None:
    graph = overflowing(context)
    with debug.watch(graph) as watch:
        context.compute(graph, {"x": LARGE})
    assert str(watch).splitlines() == [
        "1 run watched: cube (mul), inside a kernel: 2 of 4 elements beyond float16, first at [2]",
        "run  operator  kind  what            elements  first at",
        "  0  cube      mul   beyond float16  2 of 4    [2]",
    ]
    console = Console(width=200)
    with console.capture() as written:
        console.print(watch)
    assert "cube" in written.get()
    assert "<td>cube</td>" in watch._repr_html_()


def test_what_is_refused(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    with debug.watch(graph):
        with pytest.raises(wn.InvalidStateError, match="watch: only one observer may watch a graph"), debug.watch(graph):
            pass
        with pytest.raises(wn.InvalidStateError, match="diff: only one observer may watch a graph"):
            debug.diff(graph, {"x": X})
    with pytest.raises(RuntimeError, match="on the way"), debug.watch(graph):
        raise RuntimeError("on the way")
    assert debug.diff(graph, {"x": X}).first is None
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="watch: the graph was destroyed"), debug.watch(graph):
        pass
