"""The content of a model, the placement of its nodes and its memory, found without a run."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir
from onnx_ir.passes.common import ShapeInferencePass

from webnn_wgpu import MLContext, NotSupportedError, OutOfMemoryError, ml
from webnn_wgpu.api.graph import PassReport

from ..description import Analysis, Memory, Placed, Placement
from ..dims import settle, sidecar
from . import host
from .description import value_info
from .lowering import Feed, resolve
from .model import Simplifier, open_model
from .module import OnnxModule, all_nodes
from .program import OnnxProgram
from .tensors import ValueNeeded
from .types import logical


@dataclass(kw_only=True)
class _Walk:
    """The sums over the stages of a program."""

    placed: list[Placed] = field(default_factory=list[Placed])
    graphs: int = 0
    dispatches: int = 0
    memory: Memory | None = None
    problem: str = ""
    passes: list[tuple[PassReport, ...]] = field(default_factory=list["tuple[PassReport, ...]"])


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
) -> _Walk:
    """Lower stage by stage. Values of the host have the shapes of ONNX's shape inference."""
    for value in given:
        value.shape = onnx_ir.Shape(shapes[value.name or ""])
    # A model that it cannot cope with has fewer shapes, no more: they are guesses here that `run` does not depend on.
    ShapeInferencePass(check_type=False, strict_mode=False)(model)
    module = OnnxModule(model, "host", name, wide_float16=not context.accelerated)
    program = OnnxProgram(module, context, list(model.graph), given, model.graph.outputs)
    nodes: Sequence[onnx_ir.Node] = list(model.graph)
    feeds = {v: feed for v in given if (feed := _feed(v)) is not None}
    missing = {v for v in given if v not in feeds}
    aliases: Mapping[onnx_ir.Value, onnx_ir.Value] = {}
    walk = _Walk()
    while nodes:
        try:
            lowered = program.lower(nodes, feeds, aliases, missing)
        except ValueNeeded as wait:
            # Elements that only a run can give: whatever depends on them stays open.
            for value in (resolve(v, aliases) for v in wait.values):
                feeds.pop(value, None)
                missing.add(value)
            continue
        except NotSupportedError as error:
            node = next((n for n in nodes if n.op_type == error.operator and (n.name or "") == error.label), nodes[0])
            walk.placed += [Placed(_name(node), _operator(node), "unsupported", str(error))]
            walk.placed += _later([n for n in nodes if n is not node], "an operator before it is not supported")
            walk.problem = str(error)
            break
        walk.placed += [_checked(p, lowered.host, module) for p in lowered.placed]
        if lowered.outputs:
            walk.graphs += 1
            try:
                plan = lowered.builder.plan(lowered.operands, wide_float16=module.wide_float16)
            except OutOfMemoryError as error:
                walk.problem = str(error)
            else:
                walk.passes.append(lowered.builder.passes)
                if plan is not None:
                    walk.memory = Memory.of(plan) + (walk.memory or Memory())
                    walk.dispatches += len(plan.dispatches)
        if len(lowered.rest) == len(nodes):
            walk.placed += _later(nodes, "its shapes or elements are known only when the model runs")
            break
        aliases = lowered.aliases
        feeds |= {v: Feed(a.shape, a.dtype, a) for v, a in lowered.known.items()}
        feeds |= {v: Feed(tuple(operand.shape), dtype) for v, operand, dtype in lowered.outputs.values()}
        made = [o for n in lowered.host for o in n.outputs]
        feeds |= {o: feed for o in made if (feed := _feed(o)) is not None}
        missing.update(o for o in made if o not in feeds)
        nodes = lowered.rest
    return walk


def _name(node: onnx_ir.Node) -> str:
    return node.name or node.outputs[0].name or ""


def _later(nodes: Sequence[onnx_ir.Node], note: str) -> list[Placed]:
    return [Placed(_name(node), _operator(node), "later", note) for node in nodes]


def _checked(placed: Placed, on_host: Sequence[onnx_ir.Node], module: OnnxModule) -> Placed:
    """Tell nodes that the host can evaluate from those that nothing can."""
    if placed.where != "host":
        return placed
    node = next(n for n in on_host if _name(n) == placed.name)
    if node.op_type in host.CONTROL:
        return placed
    obstacle = host.obstacle(node, module.version(node))
    return Placed(placed.name, placed.op, "unsupported", f"{placed.note}; {obstacle}") if obstacle else placed


def _feed(value: onnx_ir.Value) -> Feed | None:
    """Return a value's shape and type, if they are known in full."""
    dtype = None if value.dtype is None else logical(value.dtype)
    if dtype is None or value.shape is None or not all(isinstance(d, int) for d in value.shape):
        return None
    return Feed(tuple(d for d in value.shape if isinstance(d, int)), dtype)
