"""The content of a graph file and the memory of its graph, found without a run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from webnn_wgpu import MLContext, MLTypeError, OutOfMemoryError, ml
from webnn_wgpu.formats.document import Document, DynamicDimension
from webnn_wgpu.formats.reading import ConstantArrays, read

from ..description import Analysis, Memory, Placed, Placement, ValueInfo
from ..dims import settle
from .building import assemble, used_names
from .dynamic import declared_inputs


def analyze(
    path: str | os.PathLike[str],
    context: MLContext | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    override_dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Analysis:
    """Return the content of a `.webnn` file or its JSON form, and the memory of its graph. Nothing is allocated or run.

    Args:
        path: the file.
        context: the context of the graph. None is the default context.
        weights: the file of weights, as for `load_webnn`.
        manifest: the manifest of a blob of weights.
        override_dims: sizes of dynamic dimensions, by name. Others get those of the usual names, at most their largest.
        input_shapes: whole shapes, by name of the input.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a file that is wrong.
    """
    document = read(path)
    context = context or ml.create_context()
    sizes = _sizes(document, dict(override_dims or {}), input_shapes or {})
    builder, outputs = assemble(document, ConstantArrays(document, weights, manifest), context, sizes)
    inputs = declared_inputs(document)
    used = used_names(document)
    constants = [c for c in document.constants if c.declaration.name in used]
    statements = [s for s in document.statements if s.operator]
    plan, problem = None, ""
    try:
        plan = builder.plan(outputs)
    except OutOfMemoryError as error:
        problem = str(error)
    return Analysis(
        name=document.name,
        inputs=inputs,
        outputs=tuple(ValueInfo(n, tuple(o.shape), np.dtype(o.data_type)) for n, o in outputs.items()),
        shapes={i.name: settle(i.shape, sizes) for i in inputs},
        opsets={"webnn": document.version},
        operators=dict(Counter(s.operator for s in statements).most_common()),
        parameters=sum(c.element_count for c in constants),
        parameter_bytes=sum(c.size_bytes for c in constants),
        placement=Placement(Placed(s.results[0], s.operator, "device") for s in statements),
        graphs=1,
        dispatches=0 if plan is None else len(plan.dispatches),
        memory=None if plan is None else Memory.of(plan),
        problem=problem,
        passes=() if problem else (builder.passes,),
    )


def _sizes(document: Document, sizes: dict[str, int], shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return a size for each dynamic dimension: a given one, that of a given shape, or that of a usual name."""
    for declaration in document.inputs:
        shape = shapes.get(declaration.public_name)
        if shape is not None and len(shape) != len(declaration.shape):
            raise MLTypeError(
                f"the shape of input '{declaration.public_name}' must have the rank of the input",
                operator="analyze",
                got=str(list(shape)),
                allowed=f"rank {len(declaration.shape)}",
            )
        for i, size in enumerate(declaration.shape):
            if isinstance(size, DynamicDimension) and size.name not in sizes:
                sizes[size.name] = min(settle((size.name,), {})[0], size.max_size) if shape is None else shape[i]
    return sizes
