"""The content of a model, the placement of its nodes and its memory, found without a run."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence

import onnx
import onnx_ir
from onnx_ir.passes.common import ShapeInferencePass

from webnn_wgpu import MLContext, ml

from ..common.stages import Feed
from ..common.walk import AnalysisWalk
from ..description import Analysis, Placement
from ..dims import settle, sidecar
from .description import value_info
from .lowering import OnnxStage
from .model import Simplifier, open_model
from .module import OnnxModule, all_nodes
from .program import OnnxProgram
from .types import logical


def analyze(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    context: MLContext | None = None,
    *,
    override_dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    simplify: Simplifier | None = None,
) -> Analysis:
    """Return the content of a model, the placement of its nodes and its memory. Nothing is allocated or run.

    Args:
        source: path of a file, the bytes of one, or a parsed model.
        context: the context of the graphs. None is the default context.
        override_dims: sizes of symbolic dimensions, by name. Others get those of `NAME.dims.json` beside the model, else
            defaults for the usual names: 1 for a batch, 128 for a sequence.
        input_shapes: whole shapes, by name of the input.
        simplify: as for `load_onnx`.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not an ONNX model, or a broken one.

    Example:
        >>> found = wn.analyze(mlp)
        >>> found.placement.summary(), found.parameters, found.memory.weights
        ('4 nodes on the device, 0 on the host, 0 evaluated beforehand', 35, 140)
    """
    model, name = open_model(source, simplify)
    sizes = {**sidecar(source), **(override_dims or {})}
    if context is None:
        context = ml.create_context()
    given = [v for v in model.graph.inputs if v.const_value is None]
    inputs = tuple(value_info(v, name) for v in given)
    shapes = {
        i.name: tuple((input_shapes or {}).get(i.name) or settle(i.shape, sizes, f"'{i.name}' of {name}")) for i in inputs
    }
    tensors = [v.const_value for v in model.graph.initializers.values() if v.const_value is not None]
    operators = Counter(_operator(n) for n in all_nodes(list(model.graph)))
    outputs = tuple(value_info(v, name, declared=False) for v in model.graph.outputs)
    walk = _walk(model, name, context, given, shapes)
    return Analysis(
        name=name,
        inputs=inputs,
        outputs=outputs,
        shapes=shapes,
        opsets={domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        operators=dict(operators.most_common()),
        parameters=sum(math.prod(t.shape.numpy()) for t in tensors),
        parameter_bytes=sum(t.nbytes for t in tensors),
        placement=Placement(walk.placed),
        graphs=walk.graphs,
        dispatches=walk.dispatches,
        memory=walk.memory,
        problem=walk.problem,
        passes=tuple(walk.passes),
    )


def _operator(node: onnx_ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _walk(
    model: onnx_ir.Model,
    name: str,
    context: MLContext,
    given: Sequence[onnx_ir.Value],
    shapes: Mapping[str, tuple[int, ...]],
) -> AnalysisWalk[OnnxModule, onnx_ir.Value, onnx_ir.Node, OnnxStage]:
    """Lower stage by stage. Values of the host have the shapes of ONNX's shape inference."""
    for value in given:
        value.shape = onnx_ir.Shape(shapes[value.name or ""])
    # A model that it cannot cope with has fewer shapes, no more: they are guesses here that `run` does not depend on.
    ShapeInferencePass(check_type=False, strict_mode=False)(model)
    module = OnnxModule(model, "host", name, wide_float16=not context.accelerated)
    program = OnnxProgram(module, context, list(model.graph), given, model.graph.outputs)
    walk = AnalysisWalk(program, {v: feed for v in given if (feed := _feed(v)) is not None}, _feed)
    walk.run()
    return walk


def _feed(value: onnx_ir.Value) -> Feed | None:
    """Return a value's shape and type, if they are known in full."""
    dtype = None if value.dtype is None else logical(value.dtype)
    if dtype is None or value.shape is None or not all(isinstance(d, int) for d in value.shape):
        return None
    return Feed(tuple(d for d in value.shape if isinstance(d, int)), dtype)
