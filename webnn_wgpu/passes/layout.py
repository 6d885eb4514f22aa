"""Keeps values between convolutions channels-last, so that kernels read four neighbors of a pixel at once.

The pass makes a channels-first convolution a channels-last one. The operators behind it use the channels-last values as long as
they can: element-wise operators, pools, concatenations and the like. The pass transposes a value that enters or leaves such a
region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core.errors import MLTypeError
from ..costs import PassCosts, Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops.interfaces.family import Family
from ..ops.interfaces.layout import Layout, to_first, to_last
from ..ops.strided import TRANSPOSE
from ..ops.views import IDENTITY, RESHAPE
from .cleanup import drop_dead_nodes
from .rewriting import Rewriter, merged


def keep_channels_last(graph: Graph, target: Target) -> Graph:
    """Make convolutions and the operators between them channels-last, if that saves more time than it costs."""
    if not any(_is_channels_first(node) for node in graph.nodes):
        return graph
    regions = _Regions(graph, target.costs.passes)
    rewritten = regions.rewritten()
    return rewritten if regions.saved > 0 else graph


def _is_channels_first(node: Node) -> bool:
    return OPS[node.op].family is Family.CONVOLUTION and node.attrs["input_layout"] == "nchw"


class _Regions:
    """A graph while some of its values get twins, the same values with their channels last.

    Attributes:
        saved: nanoseconds that a run takes less.
    """

    def __init__(self, graph: Graph, costs: PassCosts) -> None:
        self._graph, self._costs = graph, costs
        self._r = Rewriter(graph)
        self._twins: dict[int, int] = {}
        self._unmade: dict[int, Node] = {}
        """Values of which only the twin has been made so far, and the nodes that they were made by."""
        self._names: dict[int, int] = {}
        """Values that are other values under another name."""
        self.saved = 0.0

    def rewritten(self) -> Graph:
        """Return the rewritten graph."""
        for node in self._graph.nodes:
            try:
                done = _rewritten(self, node)
            except MLTypeError:
                # An operator may support one layout and not the other.
                done = False
            if not done:
                self.keep(node)
        for value in self._graph.outputs.values():
            self.made(value)
        return drop_dead_nodes(self._r.graph())

    # looking ------------------------------------------------------------------------------------------------------

    def shape(self, value: int) -> tuple[int, ...]:
        """Return the shape of a value as it was."""
        return self._r.shape(self._named(value))

    def has_twin(self, value: int) -> bool:
        """Return whether a value that is no constant has a twin."""
        return self._named(value) in self._twins and value not in self._r.constants

    def twin(self, value: int, rank: int = 0) -> int | None:
        """Return a value with its channels last, if that needs no kernel. A constant is broadcast to a rank."""
        value = self._named(value)
        if value in self._twins:
            return self._twins[value]
        shape = self._r.shape(value)
        if value in self._r.constants:
            shape = (*[1] * (rank - len(shape)), *shape)
            return self._r.constant(np.transpose(self._r.constants[value].reshape(shape), to_last(len(shape))), value)
        if len(shape) < 3 or len(shape) < rank or (shape[1] != 1 and math.prod(shape[2:]) != 1):
            return None
        self._twins[value] = self._r.add(
            RESHAPE.name, (self.made(value),), {"new_shape": tuple(shape[d] for d in to_last(len(shape)))}, ()
        )
        return self._twins[value]

    def _named(self, value: int) -> int:
        return self._names.get(value, value)

    # making -------------------------------------------------------------------------------------------------------

    def last(self, node: Node, inputs: Sequence[int | None], attrs: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Replace a node by an operator over channels-last values, whose results are channels-last too."""
        results = self._r.add_all(node.op, inputs, merged(node, **attrs), (node,))
        self._twins.update(zip(node.outputs, results, strict=True))
        self._unmade.update(dict.fromkeys(node.outputs, node))
        return True

    def plain(self, node: Node, op: str, twin: int, attrs: Mapping[str, Any]) -> bool:
        """Replace a node by an operator over a twin, with the same result."""
        self._r.add(op, (twin,), attrs, (node,), node.outputs[0])
        return True

    def others(self, node: Node) -> tuple[int | None, ...]:
        """Return a node's operands behind the first, made as they were."""
        return tuple(None if value is None else self.made(value) for value in node.inputs[1:])

    def keep(self, node: Node) -> None:
        """Keep a node unchanged."""
        self._r.keep(replace(node, inputs=tuple(None if value is None else self.made(value) for value in node.inputs)))

    def made(self, value: int) -> int:
        """Return a value as it was, transposed back if only its twin has been made."""
        value = self._named(value)
        node = self._unmade.pop(value, None)
        if node is not None:
            twin = self._twins[value]
            self._moves(value)
            self._r.add(TRANSPOSE.name, (twin,), {"permutation": to_first(len(self.shape(value)))}, (node,), value)
        return value

    def convolved(self, results: int, products: int) -> None:
        """Add the time that a convolution saves, by the number of its results and of the products of each."""
        self.saved += self._costs.channels_last_gain_ns(results, products)

    def transposed(self, value: int) -> int:
        """Return a value with its channels last, transposed if that is needed."""
        twin = self.twin(value)
        if twin is None:
            value = self.made(value)
            self._moves(value)
            twin = self._r.add(TRANSPOSE.name, (value,), {"permutation": to_last(len(self.shape(value)))}, ())
            self._twins[value] = twin
        return twin

    def _moves(self, value: int, sign: int = 1) -> None:
        self.saved -= sign * self._costs.transposing_ns(math.prod(self.shape(value)))

    def transpose(self, node: Node) -> bool:
        """Take a transpose together with the one between a value and its twin."""
        value, permutation = self._named(node.operands[0]), tuple(node.attrs["permutation"])
        rank, result = len(permutation), node.outputs[0]
        if rank < 3:
            return False
        if self.has_twin(value):
            combined = tuple(to_last(rank).index(d) for d in permutation)
            if combined != tuple(range(rank)):
                return value in self._unmade and self.plain(node, TRANSPOSE.name, self._twins[value], {"permutation": combined})
            self._moves(value, -1)
            if result in self._graph.outputs.values():
                return self.plain(node, IDENTITY.name, self._twins[value], {})
            self._names[result] = self._twins[value]
            return True
        if permutation == to_last(rank):
            self.keep(node)
            self._twins[value] = result
            return True
        if permutation != to_first(rank):
            return False
        # Transposed back when a node needs the original layout.
        self._moves(value, -1)
        self._twins[result] = self.made(value)
        self._unmade[result] = node
        return True


def _rewritten(regions: _Regions, node: Node) -> bool:
    """Replace a node by an operator over channels-last values, if it supports them."""
    if _is_channels_first(node):
        return _convolution(regions, node)
    if node.op == TRANSPOSE.name:
        return regions.transpose(node)
    layout = OPS[node.op].layout
    leaders = node.operands[:1] if layout and layout.led_by == "first" else node.operands
    if layout is None or not any(regions.has_twin(value) for value in leaders):
        return False
    turned = layout.options(node.attrs, regions.shape(node.operands[0]))
    inputs = None if turned is None else _inputs(regions, node, layout)
    if turned is None or inputs is None:
        return False
    if turned.result:
        return regions.last(node, inputs, turned.changed)
    (twin,) = inputs
    assert twin is not None
    return regions.plain(node, node.op, twin, merged(node, **turned.changed))


def _convolution(regions: _Regions, node: Node) -> bool:
    layout: str = node.attrs["filter_layout"]
    taps = math.prod(size for letter, size in zip(layout, regions.shape(node.operands[1]), strict=True) if letter in "ihw")
    results = math.prod(regions.shape(node.outputs[0]))
    regions.last(node, (regions.transposed(node.operands[0]), *regions.others(node)), {"input_layout": "nhwc"})
    regions.convolved(results, taps)
    return True


def _inputs(regions: _Regions, node: Node, layout: Layout) -> list[int | None] | None:
    """Return an operator's operands with their channels last. None if one of them needs a transpose."""
    if layout.others == "kept":
        return [regions.twin(node.operands[0]), *regions.others(node)]
    if layout.others == "moved":
        twins = [regions.twin(value) for value in node.operands]
        return None if None in twins else twins
    rank, inputs = len(regions.shape(node.outputs[0])), list[int | None]()
    for value in node.inputs:
        if value is None or math.prod(regions.shape(value)) == 1:
            inputs.append(value if value is None else regions.made(value))
            continue
        # An operand of lower rank that has a twin of its own has its channels in another dimension.
        same = len(regions.shape(value)) == rank or not regions.has_twin(value)
        twin = regions.twin(value, rank) if same else None
        if twin is None:
            return None
        inputs.append(twin)
    return inputs
