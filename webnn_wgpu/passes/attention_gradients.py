"""Gradients of attention as products, for devices where those take less time than the kernels of `x.attention_gradient`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ..costs import Target
from ..ir.graph import Array, Attrs, Graph, Node
from ..ops.attention_gradient import ATTENTION_GRADIENT
from ..ops.gradients.attention import composed_attention_gradient
from ..ops.interfaces.gradient import GradientCall, GradientTerm
from ..ops.views import IDENTITY
from .rewriting import Rewriter, rewrite

_LENGTH = 5
"""The index of the number of keys among the operands."""


def decompose_attention_gradients(graph: Graph, target: Target) -> Graph:
    """Replace the gradients of attention by products and softmax, where the device computes these faster."""
    if not target.costs.attention.gradient_by_products:
        return graph
    return rewrite(graph, _decompose, at={ATTENTION_GRADIENT.name})


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
        """Add a constant."""
        return self.term(self._r.constant(np.asarray(array), self._node.outputs[0], str(array.dtype)))

    def differentiate(
        self, results: Sequence[GradientTerm], operands: Sequence[GradientTerm], gradients: Sequence[GradientTerm | None]
    ) -> NoReturn:
        """Refuse it: the composition of a gradient states all derivatives."""
        raise AssertionError


def _decompose(r: Rewriter, node: Node) -> bool:
    if node.inputs[_LENGTH] is not None:
        # Products would read keys behind the length, which may be NaN.
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
    for term, output in zip(composed_attention_gradient(call, operands, internal=True), node.outputs, strict=True):
        r.add(IDENTITY.name, (term.value,), {}, (node,), output)
    return True
