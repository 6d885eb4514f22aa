"""The analysis of a TensorFlow.js model without a run: its contents, the place of each node, and the memory that it needs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from webnn_wgpu import MLContext, ml

from ..common.stages import Feed
from ..common.walk import AnalysisWalk
from ..description import Analysis, Placement
from ..dims import settle, sidecar
from .model import entry_of
from .module import TfjsModule
from .program import TfjsProgram
from .reading import read
from .tensors import TfjsGraph, TfjsNode


def analyze(
    source: str | os.PathLike[str],
    context: MLContext | None = None,
    *,
    override_dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Analysis:
    """Return the contents of a model, the place of each node and the memory that it needs. Nothing is allocated or run.

    Args:
        source: path of model.json.
        context: the context that it would run on. The default context by default.
        override_dims: sizes of dimensions, by name.
        input_shapes: whole shapes, by name of the input. Other open sizes get defaults, 1 for a batch.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a TensorFlow.js model, or a broken one.
    """
    file = read(source)
    context = context or ml.create_context()
    sizes = {**sidecar(source), **(override_dims or {})}
    entry = entry_of(file)
    module = TfjsModule(file, entry.constants, "host", wide_float16=not context.accelerated)
    shapes = {i.name: tuple((input_shapes or {}).get(i.name) or settle(i.shape or (), sizes)) for i in entry.inputs}
    program = TfjsProgram(module, context, entry.graph)
    walk = AnalysisWalk(program, {v: Feed(shapes[i.name], i.dtype) for v, i in zip(program.inputs, entry.inputs, strict=True)})
    walk.run()
    return Analysis(
        name=file.name,
        inputs=entry.inputs,
        outputs=entry.outputs,
        shapes=shapes,
        opsets={file.kind: entry.version},
        operators=dict(Counter(node.op for node in _nodes(entry.graph)).most_common()),
        parameters=sum(record.elements for record in file.weights.values()),
        parameter_bytes=sum(record.size for record in file.weights.values()),
        placement=Placement(walk.placed),
        graphs=walk.graphs,
        dispatches=walk.dispatches,
        memory=walk.memory,
        problem=walk.problem,
        passes=tuple(walk.passes),
    )


def _nodes(graph: TfjsGraph) -> Iterator[TfjsNode]:
    """Yield the nodes of a graph, with those of the graphs within."""
    for node in graph.nodes:
        yield node
        for inner in node.graphs.values():
            yield from _nodes(inner)
