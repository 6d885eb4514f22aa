"""`Graph`, `Node` and `Value`: immutable, so that a pass can only make a new graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np

from ..core.call_site import CallSite
from ..core.data_types import Array
from .types import TensorType

Attrs: TypeAlias = Mapping[str, Any]


def _no_attrs() -> Attrs:
    return MappingProxyType({})


def _no_aliases() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Origin:
    """An operator of the source graph that a node or value stands for: its number, its label, and its call site."""

    node: int
    label: str
    site: CallSite | None = field(default=None, compare=False, repr=False)


def file_places(origins: Iterable[Origin]) -> tuple[str, ...]:
    """Return the lines of a graph file that operators come from, each once: `model.webnn:12:9`."""
    return tuple(dict.fromkeys(origin.site for origin in origins if isinstance(origin.site, str)))


@dataclass(frozen=True)
class Value:
    """One tensor of the graph.

    Attributes:
        id: number, unique within the graph and its rewritten forms.
        type: data type and shape, as the specification sees it.
        origins: operators of the source graph that this value stands for.
        name: the name of a constant in the file that it comes from; "" without one.
        zero_point: the whole number that readers subtract from the elements of constant weights, which they read as float32.
    """

    id: int
    type: TensorType
    origins: tuple[Origin, ...] = ()
    name: str = field(default="", compare=False, repr=False)
    zero_point: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One operator call: specification name (or `fused`, `x.name`), operands by value id, canonical attributes.

    Equal nodes are computed once if they have the same `block`: a program may compute something again instead of keeping it.
    """

    id: int
    op: str
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    attrs: Attrs = field(default_factory=_no_attrs)
    label: str = ""
    origins: tuple[Origin, ...] = ()
    block: int = 0

    @property
    def operands(self) -> tuple[int, ...]:
        """The inputs that are given."""
        # Most operators are given all of their inputs.
        return tuple(i for i in self.inputs if i is not None) if None in self.inputs else cast("tuple[int, ...]", self.inputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """A whole graph. `nodes` is in topological order. Inputs and outputs have names.

    Attributes:
        values: every value by number.
        inputs: the graph inputs, name -> value number.
        constants: value number -> array of the value's type, which is never written.
        nodes: the nodes in an order in which they can run.
        outputs: the graph outputs, name -> value number.
        aliases: the names of outputs that update the memory of an input -> the name of that input.
        wide: whether float16 values between operators may be kept as float32.
    """

    values: Mapping[int, Value]
    inputs: Mapping[str, int]
    constants: Mapping[int, Array]
    nodes: tuple[Node, ...]
    outputs: Mapping[str, int]
    aliases: Mapping[str, str] = field(default_factory=_no_aliases)
    wide: bool = False

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""
        return self.values[value].type

    @property
    def numbers(self) -> Mapping[int, Array]:
        """The constants as their readers see them: without zero points."""
        points = {v: point for v in self.constants if (point := self.values[v].zero_point)}
        return {**self.constants, **{v: self.constants[v].astype(np.float32) - np.float32(p) for v, p in points.items()}}

    def with_nodes(
        self,
        nodes: tuple[Node, ...],
        *,
        values: Mapping[int, Value] | None = None,
        constants: Mapping[int, Array] | None = None,
        outputs: Mapping[str, int] | None = None,
    ) -> Graph:
        """Return a graph with other nodes (and constants, outputs), keeping just the values that are still named."""
        values = self.values if values is None else values
        constants = self.constants if constants is None else constants
        outputs = self.outputs if outputs is None else outputs
        used = set(self.inputs.values()) | set(outputs.values())
        for node in nodes:
            used.update(node.operands, node.outputs)
        return Graph(
            values={i: values[i] for i in sorted(used)},
            inputs=self.inputs,
            constants={i: a for i, a in constants.items() if i in used},
            nodes=nodes,
            outputs=outputs,
            aliases=self.aliases,
            wide=self.wide,
        )


def substitute(node: Node, replaced: Mapping[int, int]) -> Node:
    """Return `node` with its operands renamed by `replaced`."""
    inputs = tuple(None if i is None else replaced.get(i, i) for i in node.inputs)
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def frozen_array(array: Array) -> Array:
    """Return a read-only view of an array."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
