"""Values and nodes of a TensorFlow.js model, and values during the lowering of their graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webnn_wgpu import MLOperand

from ..common.held import Array
from ..common.stages import Inline, LoweredTensor


@dataclass(eq=False, slots=True)
class TfjsValue:
    """A tensor of a graph, by the name that messages have for it."""

    name: str


@dataclass(eq=False, slots=True, kw_only=True)
class TfjsNode:
    """A node of a graph, or a layer.

    Attributes:
        name: its name.
        op: its operator, or the class of the layer.
        inputs: the values that it reads.
        outputs: the values that it computes.
        attributes: the attributes of an operator, as the file has them, or the configuration of a layer.
        graphs: the graphs that control flow has, by the names of its attributes.
        path: the name that the weights of a layer begin with. None for operators.
    """

    name: str
    op: str
    inputs: tuple[TfjsValue, ...]
    outputs: tuple[TfjsValue, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    graphs: Mapping[str, TfjsGraph] = field(default_factory=dict[str, Any])
    path: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class TfjsGraph:
    """Nodes in the order of execution. Values that no node and no input gives are those of the graph around."""

    name: str
    nodes: Sequence[TfjsNode]
    inputs: Sequence[TfjsValue]
    outputs: Sequence[TfjsValue]

    def copy(self, given: Sequence[TfjsValue]) -> TfjsGraph:
        """Return a copy whose inputs are other values."""
        values = dict(zip(self.inputs, given, strict=True))

        def mapped(value: TfjsValue) -> TfjsValue:
            return values.get(value, value)

        nodes: list[TfjsNode] = []
        for node in self.nodes:
            inputs = tuple(map(mapped, node.inputs))
            for output in node.outputs:
                values[output] = TfjsValue(output.name)
            nodes.append(
                TfjsNode(
                    name=node.name,
                    op=node.op,
                    inputs=inputs,
                    outputs=tuple(values[o] for o in node.outputs),
                    attributes=node.attributes,
                    graphs=node.graphs,
                    path=node.path,
                )
            )
        return TfjsGraph(name=self.name, nodes=nodes, inputs=list(given), outputs=[mapped(o) for o in self.outputs])


@dataclass(slots=True, kw_only=True)
class TfjsTensor(LoweredTensor[TfjsValue]):
    """A value during the lowering of its graph.

    Attributes:
        mask: where the steps of a layer's result count, [batch, steps] of uint8.
        items: the tensors of a list, while they have not been joined to one. None within it is an element not yet set.
    """

    mask: MLOperand | None = None
    items: list[TfjsTensor | None] | None = None

    @classmethod
    def known(cls, array: Array, name: str = "") -> TfjsTensor:
        """Return the tensor of an array."""
        return cls(shape=array.shape, dtype=array.dtype, array=array, name=name)


TfjsInline = Inline[TfjsValue, TfjsNode]
