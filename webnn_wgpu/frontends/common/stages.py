"""The data of a stage of a program: its feeds, its tensors, and the result of its lowering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from webnn_wgpu import MLGraphBuilder, MLOperand

from ..description import Placed
from .held import Array, DType, Shape


class ModelValue(Protocol):
    """A value of a model."""

    @property
    def name(self) -> str | None:
        """The value's name."""
        ...


class ModelNode(Protocol):
    """A node of a model."""

    @property
    def inputs(self) -> Sequence[Any]:
        """The values that it reads, None for absent ones."""
        ...

    @property
    def outputs(self) -> Sequence[Any]:
        """The values that it computes."""
        ...


ValueT = TypeVar("ValueT", bound=ModelValue)
NodeT = TypeVar("NodeT", bound=ModelNode)


class ValueNeeded(Exception):
    """An operator needs the elements of values that are known only after a run of their producers."""

    def __init__(self, *values: Any) -> None:
        super().__init__()
        self.values = values


@dataclass
class Feed:
    """A value that a program is given: shape and type, and the elements if they are known."""

    shape: Shape
    dtype: DType
    array: Array | None = None


@dataclass(slots=True, kw_only=True)
class LoweredTensor(Generic[ValueT]):
    """A value with known shape and data type, and optionally known elements.

    Attributes:
        shape: its sizes. A size may be 0, which operands do not support.
        dtype: its logical data type.
        array: the elements, if they are known without a run.
        operand: its operand on the device, after the first request of an operator.
        feed: the value that the graph receives at run time, if the tensor is a graph input.
        name: the name of an initializer, or "" of other tensors.
    """

    shape: Shape
    dtype: DType
    array: Array | None = None
    operand: MLOperand | None = None
    feed: ValueT | None = None
    name: str = ""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for d in self.shape:
            count *= d
        return count


@dataclass
class Inline(Generic[ValueT, NodeT]):
    """The nodes that replace a node.

    Attributes:
        nodes: the nodes, in the order of execution.
        outputs: the values that replace the node's outputs.
        aliases: values that replace other values, such as a body's inputs.
        known: the elements of values without a producer.
    """

    nodes: Sequence[NodeT]
    outputs: Sequence[ValueT]
    aliases: Mapping[ValueT, ValueT] = field(default_factory=dict[ValueT, ValueT])
    known: Mapping[ValueT, Array] = field(default_factory=dict[ValueT, Array])


@dataclass(kw_only=True)
class Lowered(Generic[ValueT, NodeT]):
    """A stage: the result of a lowering.

    Attributes:
        builder: the builder of the stage's graph.
        outputs: values that the device computes and their tensors, by the names of the graph's outputs.
        known: values whose elements are known.
        inputs: values to feed, by the names of the graph's inputs.
        guards: elements that the stage holds for.
        host: nodes that the host evaluates after the graph has run.
        rest: nodes of later stages.
        aliases: values that stand for others.
        placed: where the nodes run.
    """

    builder: MLGraphBuilder
    outputs: dict[str, tuple[ValueT, LoweredTensor[ValueT]]] = field(
        default_factory=dict[str, tuple[ValueT, LoweredTensor[ValueT]]]
    )
    known: dict[ValueT, Array] = field(default_factory=dict[ValueT, Array])
    inputs: dict[str, ValueT] = field(default_factory=dict[str, ValueT])
    guards: dict[ValueT, Array] = field(default_factory=dict[ValueT, Array])
    host: list[NodeT] = field(default_factory=list[NodeT])
    rest: list[NodeT] = field(default_factory=list[NodeT])
    aliases: dict[ValueT, ValueT] = field(default_factory=dict[ValueT, ValueT])
    placed: list[Placed] = field(default_factory=list[Placed])

    @property
    def operands(self) -> dict[str, MLOperand]:
        """The outputs of the stage's graph, as `MLGraphBuilder.build` takes them."""
        return {name: t.operand for name, (_, t) in self.outputs.items() if t.operand is not None}

    def is_input(self, name: str) -> bool:
        """Return whether an input of the stage's graph has a name."""
        return name in self.inputs

    def keep_inputs(self, used: set[str]) -> None:
        """Forget the inputs that the compiled graph does not read."""
        self.inputs = {name: value for name, value in self.inputs.items() if name in used}


def resolve(value: ValueT, aliases: Mapping[ValueT, ValueT]) -> ValueT:
    """Follow the aliases of a value."""
    while value in aliases:
        value = aliases[value]
    return value
