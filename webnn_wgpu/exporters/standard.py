"""`standard`: a graph with the specification's operators alone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

from webnn_wgpu.api.activation import MLActivation
from webnn_wgpu.api.builder import PASSES, MLGraphBuilder
from webnn_wgpu.api.context import MLContext
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import check_operators, name_constant
from webnn_wgpu.api.operand import MLOperand
from webnn_wgpu.api.signatures import call_form, operator_names
from webnn_wgpu.core.errors import NotSupportedError

from . import forms, networks
from .compositions import COMPOSITIONS, Composing

MODULES = (forms, networks)
"""Modules that add to `COMPOSITIONS`."""


def needs_composition(node: Any, keep: Container[str] = (), compose: Container[str] = ()) -> bool:
    """Whether a node has an operator or an option that the specification does not have, or one of `compose`."""
    if node.op in compose:
        return True
    if node.op.startswith("x."):
        return node.op not in keep
    attrs: Mapping[str, Any] = node.attrs
    if node.op in ("argMax", "argMin"):
        return node.op not in keep and (len(attrs["axes"]) != 1 or bool(attrs["select_last_index"]))
    if node.op == "softplus":
        return node.op not in keep and attrs["steepness"] != 1
    return node.op == "pad" and attrs["mode"] == "symmetric"


def standard(
    graph: MLGraph, context: MLContext, keep: Container[str] = (), compose: Container[str] = (), *, hint: str = ""
) -> MLGraph:
    """Return a graph whose extension operators and forms of 2024 are composed of the specification's operators.

    Args:
        graph: the graph.
        context: where the other graph is built, which nothing runs.
        keep: operators to keep.
        compose: operators of the specification to compose of others, too.
        hint: the next step after the refusal of an operator without a composition.

    Returns:
        The graph itself if it needs no change.

    Raises:
        NotSupportedError: an operator that has no composition. The message names it and its label. Or the operators of the
            graph are unknown.
    """
    check_operators(graph, "save")
    source = graph.source
    if not any(needs_composition(node, keep, compose) for node in source.nodes):
        return graph
    builder = MLGraphBuilder(context)
    operands: dict[int, MLOperand] = {}
    for name, value in source.inputs.items():
        type_ = source.type(value)
        descriptor: Any = {"dataType": type_.data_type, "shape": list(type_.shape)}
        operands[value] = builder.input(name, descriptor)
    for value, array in source.constants.items():
        type_ = source.type(value)
        descriptor = {"dataType": type_.data_type, "shape": list(type_.shape)}
        operands[value] = builder.constant(descriptor, array)
        name_constant(operands[value], source.values[value].name)
    for node in source.nodes:
        given = [None if i is None else operands[i] for i in node.inputs]
        if needs_composition(node, keep, compose):
            composition = COMPOSITIONS.get(node.op)
            if composition is None:
                rule = f"{node.op} has no composition of WebNN's operators"
                raise NotSupportedError(rule, operator="save", label=node.label, hint=hint)
            arrays = [None if i is None else source.constants.get(i) for i in node.inputs]
            results = composition(Composing(builder, node.op, given, node.attrs, node.label, arrays, hint))
        else:
            results = _called(builder, node.op, given, node.attrs, node.label)
        operands.update(zip(node.outputs, results, strict=True))
    # No passes: nothing runs the graph, its source alone is read.
    passes = [each.name for each in PASSES]
    return builder.build({name: operands[value] for name, value in source.outputs.items()}, disabled_passes=passes)


def _called(
    builder: MLGraphBuilder, operator: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
) -> list[MLOperand]:
    """Add an operator to a builder by its canonical attributes."""
    if operator not in operator_names():
        raise NotSupportedError("the operator cannot be written to a file", operator="save", label=label, got=operator)
    form = call_form(operator)
    if form.variadic:
        given: dict[str, Any] = {form.operands[0]: [o for o in operands if o is not None]}
    else:
        given = {name: o for name, o in zip(form.operands, operands, strict=False) if o is not None}
    options = {name: value for name, value in attrs.items() if value is not None and name in form.annotations}
    if "activations" in options:
        options["activations"] = [
            MLActivation(builder, name, dict(own), label) if own else name for name, own in attrs["activations"]
        ]
    owner: Any = builder.ext if operator.startswith("x.") else builder
    result = getattr(owner, form.method)(**given, **options, label=label)
    return cast("list[MLOperand]", result) if isinstance(result, list) else [result]
