"""The analysis of a TFLite model without a run: its contents, the place of each node, and the memory that it needs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from webnn_wgpu import MLContext, ml

from ..common.stages import Feed
from ..common.walk import AnalysisWalk
from ..description import Analysis, Placement
from ..dims import settle, sidecar
from .constants import Constants
from .model import entry_of, info_of, initializers_of
from .module import CustomLowering, TfliteModule
from .partitions import partitions_of
from .program import TfliteProgram
from .reading import read
from .state import Variables


def analyze(
    source: str | os.PathLike[str] | bytes,
    context: MLContext | None = None,
    *,
    override_dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    signature: str | None = None,
    custom_operators: Mapping[str, CustomLowering] | None = None,
) -> Analysis:
    """Return the contents of a model, the place of each node and the memory that it needs. Nothing is allocated or run.

    Args:
        source: path of a file, or its bytes.
        context: the context that it would run on. The default context by default.
        override_dims: sizes of dimensions, by name.
        input_shapes: whole shapes, by name of the input. Other open sizes get defaults, 1 for a batch.
        signature: the signature. The main one by default.
        custom_operators: as for `load`.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not a TFLite model, or a broken one.
    """
    file = read(source)
    context = context or ml.create_context()
    sizes = {**sidecar(source), **(override_dims or {})}
    entry = entry_of(file, signature)
    module = TfliteModule(file, "host", custom_operators, wide_float16=not context.accelerated)
    graph = module.graph(entry.subgraph)
    inputs = {name: graph.values[number] for name, number in entry.inputs.items()}
    outputs = {name: graph.values[number] for name, number in entry.outputs.items()}
    infos = [info_of(name, value.record, is_input=True) for name, value in inputs.items()]
    shapes = {i.name: tuple((input_shapes or {}).get(i.name) or settle(i.shape or (), sizes)) for i in infos}
    program = TfliteProgram(module, context, Variables(context), graph)
    program.outputs = tuple(outputs.values())
    feeds = {v: Feed(shapes[i.name], i.dtype) for v, i in zip(inputs.values(), infos, strict=True)}
    _declare_variables(program)
    walk = AnalysisWalk(program, feeds)
    walk.run()
    constants = Constants(file)
    held = [t for s in file.subgraphs for t in s.tensors if constants.has(t)]
    records = [o for s in file.subgraphs for o in s.operators]
    return Analysis(
        name=file.name,
        inputs=tuple(infos),
        outputs=tuple(info_of(name, value.record) for name, value in outputs.items()),
        shapes=shapes,
        opsets={"tflite": 3},
        operators=dict(Counter(o.name for o in records).most_common()),
        parameters=sum(t.size for t in held),
        parameter_bytes=sum(file.buffers[t.buffer][1] if not t.external else file.external[t.external].length for t in held),
        placement=Placement(walk.placed),
        graphs=walk.graphs,
        dispatches=walk.dispatches,
        memory=walk.memory,
        problem=walk.problem,
        passes=tuple(walk.passes),
        partitions=partitions_of(program.nodes, walk.apart),
    )


def _declare_variables(program: TfliteProgram) -> None:
    """Give the variables that subgraphs assign before the first run their shapes."""
    module, context, variables = program.module, program.context, program.variables
    for index in initializers_of(module, program.nodes):
        lowered = TfliteProgram(module, context, variables, module.graph(index)).lower(None, {})
        for key, tensor in lowered.writes.values():
            variables.declare(key, tensor.shape, tensor.dtype)
