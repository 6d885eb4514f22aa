"""Random graphs of differentiable operators, without infinities and NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tests.random_graphs.graphs import DRAWERS, draw_graph
from tests.random_graphs.source import Seeded
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.family import Family
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    import webnn_wgpu as wn
    from webnn_wgpu.ir.graph import Array, Graph

LEFT_OUT = {
    *("x.round_bfloat16", "x.round_float8"),  # straight through
    *("x.mod", "x.fmod"),  # of many steps
    *("x.acos", "x.acosh", "x.asin", "pow", "sqrt"),  # without a slope at the ends of what they take, such as 0 and 1
    "cast",  # to integers, and from them: of steps
    *(op.name for op in OPS.values() if op.family is Family.RECURRENT),  # whose references round to float32
}

SMALLEST, LARGEST = 2.0**-63, 1e6
"""The sizes of inputs and constants, besides 0. The squares of smaller ones are no normal float32. Float64 rounds larger ones
by more than 1e-10, which is 1e-4 of a difference over 1e-6."""

OPERATORS = sorted(name for name in DRAWERS if OPS[name].gradient is not None and name not in LEFT_OUT)


def differentiable_graph(
    seed: str, operators: Sequence[str] = OPERATORS, calls: tuple[int, int] = (4, 9), data_type: str = "float32"
) -> tuple[Graph, dict[str, Array]] | None:
    """Return the graph of a seed, of a data type above all, and what to feed it.

    None stands for a graph without an input of floats, without an output of the data type, with an operator that has no
    slope, with infinities and NaN, or with numbers of other sizes.
    """
    graph, feeds = draw_graph(Seeded(seed), operators, (data_type,), calls)
    given = any(array.dtype.kind == "f" for array in feeds.values())
    sizes = (np.abs(array[array != 0]) for array in (*feeds.values(), *graph.constants.values()) if array.dtype.kind == "f")
    given = given and all(np.all((size >= SMALLEST) & (size <= LARGEST)) for size in sizes)
    made = any(graph.values[value].type.data_type == data_type for value in graph.outputs.values())
    if any(node.op in LEFT_OUT for node in graph.nodes) or not given or not made:
        return None
    with np.errstate(all="ignore"):
        results = interpret(replace(graph, outputs={str(v): v for v in graph.values}), feeds).values()
    finite = all(np.isfinite(array).all() for array in results if array.dtype.kind == "f")
    return (graph, feeds) if finite else None


def rebuilt(graph: Graph, builder: wn.MLGraphBuilder, given: dict[int, wn.MLOperand]) -> list[wn.MLOperand]:
    """Return the outputs of a graph, made anew by a builder, from its inputs and from the constants that are not its own."""
    values = {value: builder.constant(np.array(array)) for value, array in graph.constants.items() if value not in given}
    values |= given
    for node in graph.nodes:
        operands = [None if value is None else values[value] for value in node.inputs]
        values |= zip(node.outputs, builder._operator(node.op, operands, node.attrs, ""), strict=True)
    return [values[value] for value in graph.outputs.values()]
