"""Gradients of random graphs of differentiable operators agree with central differences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tests.random_graphs.graphs import DRAWERS, draw_graph
from tests.random_graphs.source import Seeded
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.family import Family
from webnn_wgpu.reference import interpret
from webnn_wgpu.testing import check_gradients

if TYPE_CHECKING:
    import webnn_wgpu as wn
    from webnn_wgpu.ir.graph import Graph

GRAPHS = 200

LEFT_OUT = {
    *("x.round_bfloat16", "x.round_float8"),  # straight through
    *("x.mod", "x.fmod"),  # of many steps
    *("x.acos", "x.acosh", "x.asin", "pow", "sqrt"),  # without a slope at the ends of what they take, such as 0 and 1
    "cast",  # to integers, and from them: of steps
    *(op.name for op in OPS.values() if op.family is Family.RECURRENT),  # whose references round to float32
}

OPERATORS = sorted(name for name in DRAWERS if OPS[name].gradient is not None and name not in LEFT_OUT)


def rebuilt(graph: Graph, builder: wn.MLGraphBuilder, operands: list[wn.MLOperand]) -> list[wn.MLOperand]:
    """Return the outputs of a graph, made anew by a builder."""
    values = dict(zip(graph.inputs.values(), operands, strict=True))
    values |= {value: builder.constant(np.array(array)) for value, array in graph.constants.items()}
    for node in graph.nodes:
        given = [None if value is None else values[value] for value in node.inputs]
        values |= zip(node.outputs, builder._operator(node.op, given, node.attrs, ""), strict=True)
    return [values[value] for value in graph.outputs.values()]


def test_gradients_of_random_graphs_agree_with_central_differences() -> None:
    """Check the graphs without infinities and NaN, even between operators: gradients there are 0 times infinity."""
    checked = 0
    for seed in range(GRAPHS):
        graph, feeds = draw_graph(Seeded(f"gradients:{seed}"), OPERATORS, ("float32",), (4, 9))
        if any(node.op in LEFT_OUT for node in graph.nodes):
            continue
        with np.errstate(all="ignore"):
            results = interpret(replace(graph, outputs={str(v): v for v in graph.values}), feeds).values()
        floats = any(array.dtype.kind == "f" for array in feeds.values())
        if not floats or not all(np.isfinite(array).all() for array in results if array.dtype.kind == "f"):
            continue
        checked += 1
        with np.errstate(all="ignore"):
            check_gradients(
                lambda builder, *operands, graph=graph: rebuilt(graph, builder, operands),
                [feeds[name] for name in graph.inputs],
                together=True,
                step=1e-6,
                tolerance=1e-4,
            )
    assert checked >= 60
