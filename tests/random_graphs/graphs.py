"""Random graphs of random operators, shapes, types and options: from a seed, or as a strategy of hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.random_graphs.drawing import Drawing
from tests.random_graphs.networks import NETWORKS
from tests.random_graphs.operators import OPERATORS
from tests.random_graphs.source import Drawn, Seeded, Source
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array, Graph

DRAWERS = OPERATORS | NETWORKS
"""How each operator is drawn."""

_SLOW = ("gru", "gruCell", "lstm", "lstmCell")
"""Operators with long shaders, of which each combination of options has its own."""

EVERY = tuple(name for name in DRAWERS for _ in range(1 if name in _SLOW else 3))
"""All operators, as often as they are to be chosen."""

MAIN_TYPES = ("float32", "float32", "float32", "float16", "float16", "int32", "int64", "uint8", "int8", "uint32", "uint64")
"""The main type of a graph; floats are what most operators take."""


def draw_graph(
    source: Source,
    operators: Sequence[str],
    data_types: Sequence[str] = MAIN_TYPES,
    calls: tuple[int, int] = (7, 13),
    *,
    fused: bool = True,
) -> tuple[Graph, dict[str, Array]]:
    """Draw a graph and what to feed it. Outputs may name inputs, constants, views, and one value twice.

    Args:
        source: of all choices.
        operators: names of the operators to choose among.
        data_types: types to choose those of inputs and constants from.
        calls: fewest and most operators, besides those that make operands fit.
        fused: whether passes are free to fuse; else what they would fuse is an output, which it must be kept for. Every fused
            kernel is a shader of its own, that takes long to compile.
    """
    main = source.choice(data_types)
    d = Drawing(source, [main, *sorted({source.choice(data_types) for _ in range(2)} - {main})])
    for _ in range(source.integer(1, 2)):
        d.new(main, d.random_shape(1), constant=False)
    for _ in range(source.integer(*calls)):
        if d.sketch.nodes and source.chance(12):
            twin = source.choice(d.sketch.nodes)
            attrs = dict(twin.attrs)
            if "activations" in attrs:  # canonical attributes are what a program may give, but for these
                attrs["activations"] = [(name, dict(options)) for name, options in attrs["activations"]]
            d.apply(twin.op, *twin.inputs, **attrs)
        else:
            name = source.choice(operators)
            DRAWERS[name](d, name)
    return d.sketch.graph(*_outputs(d, fused=fused)), d.sketch.feeds


def _outputs(d: Drawing, *, fused: bool) -> list[int]:
    """Choose outputs: what nothing reads, now and then not all of it, and some others."""
    source, nodes = d.source, d.sketch.nodes
    readers: dict[int, list[str]] = {}
    for node in nodes:
        for value in node.operands:
            readers.setdefault(value, []).append(node.op)
    ends = [node.outputs[0] for node in nodes if not any(o in readers for o in node.outputs)]
    chosen = [o for o in ends if not source.chance(16)] or ends[-1:]
    chosen += [source.choice(list(d.arrays)) for _ in range(source.integer(0, 2))]
    if not fused:
        grows = [o for node in nodes if OPS[node.op].elementwise or OPS[node.op].epilogue for o in node.outputs]
        chosen += [o for o in grows if any(OPS[op].elementwise for op in readers.get(o, ()))]
    return [o for o in chosen if d.type(o).data_type in DATA_TYPES]


@st.composite
def graphs(
    draw: st.DrawFn, operators: tuple[str, ...] = tuple(DRAWERS), data_types: tuple[str, ...] = MAIN_TYPES
) -> tuple[Graph, dict[str, Array]]:
    """Draw a graph of some operators and what to feed it."""
    return draw_graph(Drawn(draw), operators, data_types, (3, 12))


def seeded_graph(seed: str, operators: Sequence[str] = EVERY, **options: bool) -> tuple[Graph, dict[str, Array]]:
    """Return the graph of a seed and what to feed it."""
    return draw_graph(Seeded(seed), operators, **options)
