"""Runs a graph, or one node of it, in numpy through each operator's `reference`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..ir.graph import Array, Graph, Node
from ..ops import OPS


def evaluate(graph: Graph, node: Node, operands: Sequence[Array | None]) -> list[Array]:
    """Return the outputs of one node for given operands. Absent optional operands are None."""
    types = tuple(graph.type(o) for o in node.outputs)
    body = node.attrs.get("body")
    if isinstance(body, Graph):
        given = {name: operands[int(name)] for name in body.inputs}
        results = interpret(body, {name: array for name, array in given.items() if array is not None})
        return [results[str(i)] for i in range(len(node.outputs))]
    reference = OPS[node.op].reference
    assert reference is not None, f"{node.op} has neither a reference nor a body"
    results = reference(operands, node.attrs, types)
    for array, wanted in zip(results, types, strict=True):
        assert array.dtype == wanted.numpy, f"{node.op} reference gave {array.dtype}, not {wanted}"
        assert array.shape == wanted.shape, f"{node.op} reference gave {list(array.shape)}, not {wanted}"
    return [np.ascontiguousarray(array).reshape(array.shape) for array in results]


def interpret(
    graph: Graph, inputs: Mapping[str, Array], observer: Callable[[int | None, Mapping[int, Array]], None] | None = None
) -> dict[str, Array]:
    """Run a whole graph.

    Args:
        graph: any graph, before or after passes.
        inputs: graph input name -> array of the input's type.
        observer: a function that gets None and the inputs, then each node's position and its results, as arrays by value.

    Returns:
        Graph output name -> array of the output's type.
    """
    values: dict[int, Array] = dict(graph.numbers)
    values.update({value: inputs[name] for name, value in graph.inputs.items()})
    if observer is not None:
        observer(None, {value: values[value] for value in graph.inputs.values()})
    for position, node in enumerate(graph.nodes):
        operands = [None if i is None else values[i] for i in node.inputs]
        made = dict(zip(node.outputs, evaluate(graph, node, operands), strict=True))
        values.update(made)
        if observer is not None:
            observer(position, made)
    return {name: values[value] for name, value in graph.outputs.items()}
