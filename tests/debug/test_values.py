"""`debug.values`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rich.console import Console

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.ops.test_cache_update import decoder
from tests.runtime.graphs import ROWS, network
from webnn_wgpu import debug


def overflowing(context: wn.MLContext) -> wn.MLGraph:
    """A float16 overflow that the graph's output hides: tanh of it is 1."""
    builder = wn.MLGraphBuilder(context)
    x = builder.cast(builder.input("x", {"dataType": "float32", "shape": [4]}), "float16", label="half")
    cube = builder.mul(builder.mul(x, x, label="square"), x, label="cube")
    return builder.build({"y": builder.tanh(builder.abs(cube, label="size"), label="squashed")})


def test_every_result_has_its_numbers(context: wn.MLContext) -> None:
    graph = network(context)
    found = debug.values(graph, {"x": ROWS})
    assert [(v.label, v.operator) for v in found.values] == [
        ("x", "input"),
        ("matmul_0", "matmul"),
        ("add_1", "add"),
        ("gelu_2", "gelu"),
        ("layer_normalization_3", "layerNormalization"),
        ("softmax_4", "softmax"),
        ("slice_5", "slice"),
        ("transpose_6", "transpose"),
    ]
    outputs = context.compute(graph, {"x": ROWS})
    for label, array in (("x", ROWS), ("softmax_4", outputs["probability"]), ("transpose_6", outputs["columns"])):
        (value,) = found.of(label)
        assert (value.type, value.elements) == (f"float32{list(array.shape)}", array.size)
        assert [value.min, value.max, value.mean] == pytest.approx([array.min(), array.max(), array.mean()], rel=1e-5, abs=1e-7)
        assert (value.nan, value.inf) == (0, 0)
    assert found.first is None
    assert found.summary() == "8 values, none with NaN or infinity"


def test_values_that_are_written_into_their_place_in_another(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x, y = (builder.input(name, {"dataType": "float32", "shape": [2, 4]}) for name in "xy")
    weights = [builder.constant(np.arange(n * 4, dtype=np.float32).reshape(4, n) - 9) for n in (8, 4)]
    made = [builder.matmul(x, w, label=f"product {i}") for i, w in enumerate(weights)]
    whole = builder.concat([made[0], made[1]], 1, label="whole")
    mixed = builder.concat([y, builder.matmul(x, weights[0], label="third")], 1, label="mixed")
    graph = builder.build({"a": builder.relu(whole), "b": builder.neg(mixed)})
    feeds = {"x": np.float32([[1, 2, 3, 4], [0, -1, 2, 5]]), "y": np.ones((2, 4), np.float32)}
    found = debug.values(graph, feeds)
    for i, n in enumerate((8, 4)):
        product = feeds["x"] @ (np.arange(n * 4, dtype=np.float32).reshape(4, n) - 9)
        (value,) = found.of(f"product {i}")
        assert [value.type, value.min, value.max] == [f"float32[2, {n}]", product.min(), product.max()]
    difference = debug.diff(graph, feeds)
    assert not difference.uncompared
    assert difference.first is None


def test_the_operator_of_an_overflow_that_the_output_hides(context: wn.MLContext) -> None:
    graph = overflowing(context)
    x = np.float32([1, 2, 100, -60])
    assert np.isfinite(context.compute(graph, {"x": x})["y"]).all()
    assert [kernel.labels for kernel in graph.kernels.values()] == [("half", "square", "cube", "size", "squashed")]
    found = debug.values(graph, {"x": x})
    assert found.first is not None
    assert (found.first.label, found.first.inf, found.first.nan, found.first.max) == ("cube", 2, 0, 8.0)
    assert found.summary() == "first at cube (mul): 0 NaN and 2 infinite of 4 elements"
    assert debug.values(graph, {"x": x}, inf=False).first is None


def test_what_is_looked_for(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    graph = builder.build({"y": builder.sqrt(builder.reciprocal(x, label="inverse"), label="root")})
    feeds = {"x": np.float32([0, -1])}
    firsts = [debug.values(graph, feeds, nan=nan, inf=inf).first for nan, inf in ((True, True), (True, False), (False, False))]
    assert [first and first.label for first in firsts] == ["inverse", "root", None]
    root = debug.values(graph, feeds).of("root")[0]
    assert (root.nan, root.inf) == (1, 1)
    assert all(map(math.isnan, (root.min, root.max, root.mean)))


def test_an_input_that_is_given_nan_is_named(anywhere: wn.MLContext) -> None:
    found = debug.values(negation(anywhere), {"x": np.float32([1, np.nan, 3])})
    assert found.first is not None
    assert (found.first.label, found.first.operator, found.first.nan) == ("x", "input", 1)


def test_operators_of_several_outputs(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "int32", "shape": [4]})
    graph = builder.build({"y": builder.split(x, 2, label="halves")[1]})
    found = debug.values(graph, {"x": np.int32([1, 2, 3, 5])})
    assert [(v.name, v.type, v.min, v.max, v.mean) for v in found.of("halves")] == [
        ("halves", "int32[2]", 1, 2, 1.5),
        ("halves[1]", "int32[2]", 3, 5, 4),
    ]


def test_what_is_printed(anywhere: wn.MLContext) -> None:
    found = debug.values(negation(anywhere), {"x": np.float32([1, -2, np.inf])})
    assert str(found).splitlines() == [
        "first at x (input): 0 NaN and 1 infinite of 3 elements",
        "value  operator  type        min  max  mean  NaN  infinite",
        "x      input     float32[3]   -2    1  -0.5    0         1",
        "neg_0  neg       float32[3]   -1    2   0.5    0         1",
    ]
    console = Console(width=200)
    with console.capture() as written:
        console.print(found)
    assert "first at x (input)" in written.get()
    assert "neg_0" in written.get()


def test_a_graph_that_updates_an_input_in_place(context: wn.MLContext) -> None:
    graph = decoder(context)
    feeds = {"past": np.ones((1, 1, 4, 4)), "new": np.full((1, 1, 1, 4), np.nan), "at": np.int32([2])}
    given = {name: np.asarray(array, graph.inputs[name].numpy) for name, array in feeds.items()}
    found = debug.values(graph, given)
    assert [(v.operator, v.nan) for v in found.values[3:]] == [("x.cache_update", 4), ("reduceSum", 4)]
    assert found.first is not None
    assert found.first.label == "new"


def test_the_graph_stays_as_it_is(context: wn.MLContext) -> None:
    graph = negation(context)
    debug.values(graph, {"x": X})
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], -X)


def test_what_is_refused(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    with pytest.raises(wn.MLTypeError, match=r"values: .*'x'"):
        debug.values(graph, {})
    graph.destroy()
    with pytest.raises(wn.InvalidStateError, match="values: the graph was destroyed"):
        debug.values(graph, {"x": X})
