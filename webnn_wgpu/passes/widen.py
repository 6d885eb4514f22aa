"""Keeps values between operators as float32 in graphs with float16 values."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..core.data_types import Array
from ..ir.graph import Graph, Node, frozen_array
from ..ops import operator
from ..ops.cast import CAST
from ..ops.interfaces.precision import Precision

_NARROW, _WIDE = "float16", "float32"


def widen_float16(graph: Graph) -> Graph:
    """Keep values between operators as float32, if the graph asks for it. Inputs, outputs and weights stay float16.

    A graph with caches stays unchanged: the memory of a cache is that of an input and an output at once.
    """
    if not graph.wide or graph.aliases or all(value.type.data_type != _NARROW for value in graph.values.values()):
        return graph
    return _Widening(graph).graph()


class _Widening:
    """The widened graph: a float16 value keeps its number if a node still needs it, and has another number as float32."""

    def __init__(self, graph: Graph) -> None:
        self._source = graph
        self._values = dict(graph.values)
        self._constants: dict[int, Array] = dict(graph.constants)
        self._nodes: list[Node] = []
        self._next_value = max(graph.values) + 1
        self._next_node = max((node.id for node in graph.nodes), default=-1) + 1
        self._narrow = {*graph.inputs.values(), *graph.constants}
        """Values that are there under their own number."""
        self._wide: dict[int, int] = {}
        """Float16 values, and casts of them, that are there as float32 under another number."""

    def graph(self) -> Graph:
        """Return the graph of float32 values."""
        for node in self._source.nodes:
            self._add(node)
        for value in dict.fromkeys(self._source.outputs.values()):
            self._as_narrow(value)
        return self._source.with_nodes(tuple(self._nodes), values=self._values, constants=self._constants)

    def _add(self, node: Node) -> None:
        source, op = self._source, operator(node.op)
        narrow = [value for value in node.operands if self._is_narrow(value)]
        table = bool(narrow) and all(value in source.constants for value in narrow)
        precision = op.precision or Precision()
        widens = op is CAST and bool(narrow) and source.type(node.outputs[0]).data_type == _WIDE
        if op.opaque or precision.discrete or (op.moves and table) or (op is CAST and not widens):
            # Unknown kernels keep the types of their bindings, and lookup tables keep their size. A cast to float16 in the
            # graph is meant to round.
            inputs = [
                None if value is None else self._as_narrow(value) if self._is_narrow(value) else self._as_wide(value)
                for value in node.inputs
            ]
            outputs = node.outputs
        elif widens:
            self._wide[node.outputs[0]] = self._as_wide(node.operands[0])
            return
        else:
            inputs = [
                None
                if value is None
                else value
                if i in precision.weights and value in source.constants
                else self._as_wide(value)
                for i, value in enumerate(node.inputs)
            ]
            outputs = tuple(self._new(value) if self._is_narrow(value) else value for value in node.outputs)
        self._narrow.update(outputs)
        self._nodes.append(replace(node, inputs=tuple(inputs), outputs=outputs))

    def _is_narrow(self, value: int) -> bool:
        return self._source.type(value).data_type == _NARROW

    def _as_wide(self, value: int) -> int:
        """Return the float32 form of a float16 value, or another value itself."""
        if value in self._wide or not self._is_narrow(value):
            return self._wide.get(value, value)
        wide = self._new(value)
        if value in self._source.constants:
            self._constants[wide] = frozen_array(self._constants[value].astype(np.float32))
        else:
            self._cast(value, wide)
        return wide

    def _as_narrow(self, value: int) -> int:
        """Return a value as the source graph has it."""
        if value not in self._narrow:
            self._cast(self._wide[value], value)
            self._narrow.add(value)
        return value

    def _new(self, value: int) -> int:
        """Return a new value that is another as float32."""
        wide, self._next_value = self._next_value, self._next_value + 1
        own = self._source.values[value]
        self._values[wide] = replace(own, id=wide, type=own.type.with_data_type(_WIDE))
        self._wide[value] = wide
        return wide

    def _cast(self, value: int, target: int) -> None:
        own = self._values[target]
        attrs = MappingProxyType({"data_type": own.type.data_type})
        self._nodes.append(
            Node(id=self._next_node, op=CAST.name, inputs=(value,), outputs=(target,), attrs=attrs, origins=own.origins)
        )
        self._next_node += 1
