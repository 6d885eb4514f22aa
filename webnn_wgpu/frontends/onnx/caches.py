"""Detection of the caches of keys and values in a model: inputs that the model returns with new rows behind the old ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir

from webnn_wgpu import NotSupportedError

from .operators import MICROSOFT

ATTENTION = {
    ("", "Attention"): ((4, 1), (5, 2)),
    (MICROSOFT, "MultiHeadAttention"): ((6, 1), (7, 2)),
    (MICROSOFT, "GroupQueryAttention"): ((3, 1), (4, 2)),
}
"""Operators with caches [batch, heads, rows, size]: the index of the past in the inputs, and of the present in the outputs."""

ROWS = 2
"""The dimension of their rows."""


@dataclass(frozen=True)
class Cache:
    """A cache of a model: the input, and its value after the run.

    Attributes:
        past: the input.
        present: the result of the node that adds new rows behind those of the past.
        output: the model's output with the elements of `present`.
        axis: the dimension of the rows.
    """

    past: onnx_ir.Value
    present: onnx_ir.Value
    output: onnx_ir.Value
    axis: int


@dataclass(frozen=True, kw_only=True)
class InPlace:
    """The treatment of caches that stay on the device, for a lowering.

    Attributes:
        pasts: the inputs that are whole caches, updated in place.
        position: the input with the number of filled rows before a run, int32 [1].
        filled: the input with the number of filled rows after a run.
        bounded: the nodes that read only the filled rows: softmaxes and attention.
        first: whether the caches are empty.
    """

    pasts: frozenset[onnx_ir.Value]
    position: onnx_ir.Value
    filled: onnx_ir.Value
    bounded: frozenset[onnx_ir.Node]
    first: bool


def find_caches(graph: onnx_ir.Graph, name: str) -> tuple[Cache, ...]:
    """Return the caches of a model.

    Args:
        graph: the graph of the model.
        name: the name of the model in messages.

    Raises:
        NotSupportedError: the model has no cache, or a cache with a fixed number of rows.
    """
    caches = tuple(_caches(graph))
    if not caches:
        raise NotSupportedError(
            f"{name} has no caches of keys and values",
            operator="load",
            allowed="inputs that Concat or an attention operator puts new rows behind, for an output",
        )
    for cache in caches:
        if isinstance(size := declared_size(cache.past, cache.axis), int):
            raise NotSupportedError(
                f"{name}: the number of rows of cache '{cache.past.name}' must be a symbolic dimension",
                operator="load",
                got=f"{size} rows",
                hint="Export the model with a symbolic length of the cache, or load it without kv_cache=",
            )
    return caches


def _caches(graph: onnx_ir.Graph) -> Iterator[Cache]:
    for past in graph.inputs:
        for node, index in past.uses():
            found = _present(node, index)
            output = None if found is None else _given_back(found[0])
            if found is not None and output is not None:
                yield Cache(past, found[0], output, found[1])


def _present(node: onnx_ir.Node, index: int) -> tuple[onnx_ir.Value, int] | None:
    """Return a node's result with the rows of the cache in one of its inputs, and the dimension of the rows."""
    if node.domain == "" and node.op_type == "Concat" and index == 0 and len(node.inputs) == 2:
        axis, shape = node.attributes["axis"].as_int(), node.inputs[0] and node.inputs[0].shape
        return None if shape is None else (node.outputs[0], axis % len(shape))
    for past, present in ATTENTION.get((node.domain, node.op_type), ()):
        if index == past and present < len(node.outputs):
            return node.outputs[present], ROWS
    return None


def _given_back(value: onnx_ir.Value) -> onnx_ir.Value | None:
    """Return the output of the model that equals a value, directly or through Identity."""
    if value.is_graph_output():
        return value
    inner = (node.outputs[0] for node, _ in value.uses() if node.op_type == "Identity" and node.domain == "")
    return next((found for v in inner if (found := _given_back(v)) is not None), None)


def declared_size(value: onnx_ir.Value, axis: int) -> int | str | None:
    """Return the declared size of a dimension: a number, a symbol, or None."""
    if value.shape is None or axis >= len(value.shape):
        return None
    size = value.shape[axis]
    return size if isinstance(size, int) else size.value


def growing_axes(value: onnx_ir.Value, caches: tuple[Cache, ...]) -> tuple[int, ...]:
    """Return the dimensions of an input that grow with the caches: those with the symbol of a cache's rows."""
    symbols = {declared_size(v, c.axis) for c in caches for v in (c.past, c.present, c.output)} - {None}
    pasts = [s for c in caches if isinstance(s := declared_size(c.past, c.axis), str)]
    sizes = [declared_size(value, axis) for axis in range(len(value.shape or ()))]
    return tuple(
        i
        for i, s in enumerate(sizes)
        if isinstance(s, str) and (s in symbols or any(re.search(rf"\b{re.escape(p)}\b", s) for p in pasts))
    )
