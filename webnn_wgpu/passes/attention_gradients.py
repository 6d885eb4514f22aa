"""Attention and its gradient as products, for devices where those take less time than the kernels of `x.attention_gradient`."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import partial
from typing import NoReturn

import numpy as np

from ..core.data_types import DATA_TYPES
from ..costs import Target
from ..ir.graph import Array, Attrs, Graph, Node
from ..ops.attention import ATTENTION
from ..ops.attention_gradient import ATTENTION_GRADIENT
from ..ops.gradients.attention import composed_attention, composed_attention_gradient
from ..ops.interfaces.gradient import GradientCall, GradientTerm
from ..ops.views import IDENTITY
from .rewriting import Rewriter, rewrite

_Call = tuple[tuple[int | None, ...], tuple[tuple[str, Hashable], ...]]
"""The operands and options of an attention."""


def decompose_attention_gradients(graph: Graph, target: Target) -> Graph:
    """Replace the gradients of attention by products and softmax, where the device computes these faster.

    An attention with such a gradient is replaced too, unless it has many weights: the gradient then finds them in memory.
    """
    if not target.costs.attention.gradient_by_products:
        return graph
    differentiated = {_call(node, node.inputs[1:]) for node in graph.nodes if node.op == ATTENTION_GRADIENT.name}
    most = target.costs.attention.most_kept_bytes
    kept = {
        node.id
        for node in graph.nodes
        if node.op == ATTENTION.name and _call(node, node.inputs) in differentiated and _weight_bytes(graph, node) <= most
    }
    return rewrite(graph, partial(_decompose, kept=kept), at={ATTENTION.name, ATTENTION_GRADIENT.name})


def _call(node: Node, operands: tuple[int | None, ...]) -> _Call:
    return operands, tuple(sorted(node.attrs.items()))


def _weight_bytes(graph: Graph, node: Node) -> int:
    query, key = (graph.type(value).shape for value in node.operands[:2])
    return query[0] * node.attrs["heads"] * query[-2] * key[-2] * DATA_TYPES["float32"].size_bytes


class _Writer:
    """Adds the composition of a node to the graph."""

    def __init__(self, r: Rewriter, node: Node) -> None:
        self._r, self._node = r, node

    def term(self, value: int) -> GradientTerm:
        """Return a value as a term."""
        return GradientTerm(self, value, self._r.type(value))

    def add(self, op: str, operands: Sequence[GradientTerm | None], attrs: Attrs) -> tuple[GradientTerm, ...]:
        """Add an operator in place of the node."""
        given = [None if operand is None else operand.value for operand in operands]
        return tuple(map(self.term, self._r.add_all(op, given, attrs, (self._node,))))

    def constant(self, array: Array) -> GradientTerm:
        """Add a constant, or return an equal one: nodes that compute the same have the same operands."""
        key = ("constant of attention", str(array.dtype), array.shape, array.tobytes())
        if key not in self._r.remembered:
            self._r.remembered[key] = self._r.constant(np.asarray(array), self._node.outputs[0], str(array.dtype))
        return self.term(self._r.remembered[key])

    def differentiate(
        self, results: Sequence[GradientTerm], operands: Sequence[GradientTerm], gradients: Sequence[GradientTerm | None]
    ) -> NoReturn:
        """Refuse it: the composition of a gradient states all derivatives."""
        raise AssertionError


def _decompose(r: Rewriter, node: Node, *, kept: Collection[int]) -> bool:
    backward = node.op == ATTENTION_GRADIENT.name
    # Products would read keys behind the number of keys, the last operand, which may be NaN.
    if node.inputs[-1] is not None or not (backward or node.id in kept):
        return False
    writer = _Writer(r, node)
    operands = tuple(None if value is None else writer.term(value) for value in node.inputs)
    call = GradientCall(
        writer=writer,
        op=node.op,
        attrs=node.attrs,
        operands=operands,
        results=tuple(map(writer.term, node.outputs)),
        gradients=(),
        wanted=(),
    )
    compose = composed_attention_gradient if backward else composed_attention
    for term, output in zip(compose(call, operands, internal=True), node.outputs, strict=True):
        r.add(IDENTITY.name, (term.value,), {}, (node,), output)
    return True
