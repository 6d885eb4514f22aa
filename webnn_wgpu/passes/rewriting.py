"""The rewriter of a graph, which passes share: a walk over the nodes that may replace each one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias

from ..core.errors import MLTypeError
from ..ir.graph import Array, Graph, Node, Origin, Value, frozen_array
from ..ir.types import TensorType
from ..ops import OPS
from ..ops.views import RESHAPE

P = ParamSpec("P")


class Rewriter:
    """A graph while it is rewritten, from its first node to its last.

    Attributes:
        constants: the constants of the graph, and new ones.
        nodes: the nodes that were kept or added so far.
        remembered: the values that a rule has added, which it can use again instead of equal ones.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values = dict(graph.values)
        self.constants: dict[int, Array] = dict(graph.constants)
        self.nodes: list[Node] = []
        self.remembered: dict[Hashable, int] = {}
        self._made: dict[int, Node] = {}
        self._outputs = set(graph.outputs.values())
        # Nodes that are dropped if they have no consumer, in the order in which rules matched them.
        self._replaced: dict[int, None] = {}
        self._next_value = max(graph.values, default=-1) + 1
        self._next_node = max((node.id for node in graph.nodes), default=-1) + 1

    # looking ------------------------------------------------------------------------------------------------------

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""
        return self._values[value].type

    def shape(self, value: int) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.type(value).shape

    def made(self, value: int | None, *ops: str) -> Node | None:
        """Return the node that made a value, if it is one of these operators."""
        node = None if value is None else self._made.get(value)
        return node if node is not None and node.op in ops else None

    @cached_property
    def _readers(self) -> Mapping[int | None, Sequence[Node]]:
        # Most rules match no node and never ask.
        readers: dict[int | None, list[Node]] = {}
        for node in self._graph.nodes:
            for value in dict.fromkeys(node.inputs):
                readers.setdefault(value, []).append(node)
        return readers

    def readers(self, value: int) -> Sequence[Node]:
        """Return the nodes of the graph that read a value."""
        return self._readers.get(value, ())

    def inner(self, value: int, readers: int = 1) -> bool:
        """Return whether a value is no output and has so many readers: it can go when they do."""
        return value not in self._outputs and len(self.readers(value)) == readers

    def made_for_one(self, value: int | None, *ops: str) -> Node | None:
        """Return the node that made a value, if it is one of these operators and the value has a single reader."""
        node = self.made(value, *ops)
        return node if node is not None and self.inner(node.outputs[0]) else None

    def number(self, value: int | None) -> float | None:
        """Return the element of a constant that has just one."""
        array = None if value is None else self.constants.get(value)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    # making -------------------------------------------------------------------------------------------------------

    def constant(self, array: Array, like: int, data_type: str = "") -> int:
        """Add a constant with the origins of another value, and with its data type by default."""
        value = self._new(TensorType(data_type or self.type(like).data_type, array.shape), self._values[like].origins)
        self.constants[value] = frozen_array(array)
        return value

    def reshaped(self, value: int, shape: Sequence[int], sources: Sequence[Node]) -> int:
        """Return a value with another shape: a new constant, a view of the value, or the source of such a view.

        Views in between are dropped after their last consumer.
        """
        shape = tuple(shape)
        while (view := self.made(value, RESHAPE.name)) is not None and self.shape(value) != shape:
            value = view.operands[0]
            self._replaced[view.id] = None
        if self.shape(value) == shape:
            return value
        if value in self.constants:
            return self.constant(self.constants[value].reshape(shape), value)
        key = (RESHAPE.name, value, shape)
        if key not in self.remembered:
            self.remembered[key] = self.add(RESHAPE.name, (value,), {"new_shape": shape}, sources)
        return self.remembered[key]

    def add(
        self,
        op: str,
        inputs: Sequence[int | None],
        attrs: Mapping[str, Any],
        sources: Sequence[Node],
        output: int | None = None,
    ) -> int:
        """Add a node and return its result.

        Args:
            op: the operator.
            inputs: the operands. Absent ones at the end may be omitted.
            attrs: the options of the operator.
            sources: the nodes that it stands for. Those without consumers are dropped.
            output: the number of its result. None creates a new value.

        Raises:
            MLTypeError: the operator rejects these operands and options. The graph is unchanged then.
        """
        (output,) = self.add_all(op, inputs, attrs, sources, () if output is None else (output,))
        return output

    def add_all(
        self,
        op: str,
        inputs: Sequence[int | None],
        attrs: Mapping[str, Any],
        sources: Sequence[Node],
        outputs: Sequence[int | None] = (),
    ) -> tuple[int, ...]:
        """Add a node of any number of results as `add` does, and return these. No `outputs` stand for new values alone."""
        inputs = (*inputs, *(None for _ in OPS[op].operands[len(inputs) :]))
        label = next((node.label for node in sources[::-1] if node.label), "")
        types, canonical = OPS[op].check([None if i is None else self.type(i) for i in inputs], attrs, label)
        origins = tuple(dict.fromkeys(origin for node in sources for origin in node.origins))
        numbers = outputs or [None for _ in types]
        made = tuple(self._new(each, origins) if n is None else n for each, n in zip(types, numbers, strict=True))
        assert types == tuple(self.type(output) for output in made)
        node = Node(
            id=self._next_node,
            op=op,
            inputs=inputs,
            outputs=made,
            attrs=MappingProxyType(canonical),
            label=label,
            origins=origins,
        )
        self._next_node += 1
        self._replaced.update(dict.fromkeys(node.id for node in sources))
        self.keep(node)
        return made

    def keep(self, node: Node) -> None:
        """Keep a node unchanged."""
        self.nodes.append(node)
        for output in node.outputs:
            self._made[output] = node

    def attempt(self, make: Callable[P, bool], *args: P.args, **options: P.kwargs) -> bool:
        """Call a function that adds nodes and return True, or undo its additions and return False.

        Args:
            make: adds nodes and constants and returns True. It fails if it returns False, if an operator rejects its operands
                or options, and if its search is longer than any pattern.
            *args: arguments of `make`.
            **options: keyword arguments of `make`.
        """
        before = self._state()
        try:
            if make(*args, **options):
                return True
        except (MLTypeError, RecursionError):
            pass
        if before != self._state():
            self._undo(*before)
        return False

    def _state(self) -> tuple[int, int, int, int]:
        return len(self.nodes), self._next_value, len(self._replaced), len(self.remembered)

    def _undo(self, nodes: int, values: int, replaced: int, remembered: int) -> None:
        """Remove the additions since the lists had these lengths."""
        for node in self.nodes[nodes:]:
            for output in node.outputs:
                del self._made[output]
        del self.nodes[nodes:]
        for value in range(values, self._next_value):
            self._values.pop(value, None)
            self.constants.pop(value, None)
        # Entries are only ever added, the last last.
        for entries, count in ((self._replaced, replaced), (self.remembered, remembered)):
            while len(entries) > count:
                entries.popitem()

    def _new(self, wanted: TensorType, origins: tuple[Origin, ...]) -> int:
        value = self._next_value
        self._next_value += 1
        self._values[value] = Value(value, wanted, origins)
        return value

    def graph(self) -> Graph:
        """Return the rewritten graph, without the replaced nodes that have no consumer."""
        needed = set(self._outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if node.id not in self._replaced or needed.intersection(node.outputs):
                needed.update(node.operands)
                kept.append(node)
        return self._graph.with_nodes(tuple(reversed(kept)), values=self._values, constants=self.constants)


Change: TypeAlias = Callable[[Rewriter, Node], bool]
"""A function that replaces a node and returns True, or returns False and has its additions removed."""


def rewrite(graph: Graph, *changes: Change, at: Collection[str] | None = None) -> Graph:
    """Apply changes at every node, until the first one that succeeds. The operands of the node are rewritten before.

    Args:
        graph: the graph.
        *changes: the changes to try, in order.
        at: the operators of the nodes that may change. None is all operators.
    """
    if at is not None and not any(node.op in at for node in graph.nodes):
        return graph
    rewriter = Rewriter(graph)
    changed = False
    for node in graph.nodes:
        if (at is None or node.op in at) and any(rewriter.attempt(change, rewriter, node) for change in changes):
            changed = True
        else:
            rewriter.keep(node)
    return rewriter.graph() if changed else graph


def merged(node: Node, **attrs: Any) -> dict[str, Any]:
    """Return a node's options with some of them changed."""
    return {**node.attrs, **attrs}


def given(node: Node, index: int) -> int | None:
    """Return an operand that may be absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def joined(op: str, nodes: Sequence[Node], place: int) -> Node:
    """Return one node with the operands and results of several nodes with the same options.

    Args:
        op: the operator.
        nodes: the nodes in order.
        place: the number of the one in whose place the node stands: 0 for the first, -1 for the last.
    """
    return Node(
        id=nodes[place].id,
        op=op,
        inputs=tuple(value for node in nodes for value in node.operands),
        outputs=tuple(value for node in nodes for value in node.outputs),
        attrs=MappingProxyType(dict(nodes[place].attrs)),
        label=next((node.label for node in nodes if node.label), ""),
        origins=tuple(origin for node in nodes for origin in node.origins),
        block=nodes[place].block,
    )
