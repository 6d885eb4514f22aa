"""Graphs with the specification's operators alone compute what the graphs that they stand for do."""

from __future__ import annotations

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu.exporters.standard import standard


def test_forms_of_2024_are_composed() -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = wn.MLGraphBuilder(context, profile="2024")
        x = builder.input("x", [3, 4], "float32")
        graph = builder.build(
            {
                "of several axes": builder.arg_max(x, axes=[0, 1]),
                "last": builder.arg_min(x, axes=[1], select_last_index=True, keep_dimensions=True),
                "steep": builder.softplus(x, steepness=2.0),
                "padded": builder.pad(x, [1, 2], [2, 1], mode="symmetric"),
            }
        )
        composed = standard(graph, context)
        assert all(node.op != "pad" for node in composed.source.nodes)
        feeds = {"x": np.random.default_rng(0).integers(0, 3, (3, 4)).astype(np.float32)}
        expected, results = (context.compute(each, feeds) for each in (graph, composed))
        for name, array in expected.items():
            assert results[name].dtype == array.dtype
            np.testing.assert_allclose(results[name], array, rtol=1e-6)


def test_a_graph_of_standard_operators_stays_the_same_object() -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = wn.MLGraphBuilder(context)
        graph = builder.build({"y": builder.relu(builder.input("x", [2], "float32"))})
        assert standard(graph, context) is graph


@pytest.mark.parametrize(("begin", "end"), [(3, 0), (0, 5), (2, 2), (7, 4), (1, 1)])
def test_symmetric_pads_may_be_larger_than_what_they_mirror(begin: int, end: int) -> None:
    reference = wn.ml.create_context(backend="reference")
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
    graph = builder.build({"y": builder.pad(x, [0, begin], [1, end], mode="symmetric")})
    again = standard(graph, reference)
    array = np.float32([[1, 2], [3, 4]])
    found = reference.compute(again, {"x": array})["y"]
    assert np.array_equal(found, np.pad(array, [(0, 1), (begin, end)], mode="symmetric"))
