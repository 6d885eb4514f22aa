"""The data of a stage: its inputs, and the result of its lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webnn_wgpu import MLGraphBuilder, MLOperand

from ..common.held import Array, DType
from ..description import Placed
from .contents import Quantization
from .tensors import Shape, TfliteNode, TfliteTensor, TfliteValue, VariableKey


@dataclass
class Feed:
    """A value that a program is given: shape and type, and the elements if they are known."""

    shape: Shape
    dtype: DType
    array: Array | None = None


@dataclass(kw_only=True)
class Lowered:
    """A stage: the result of a lowering.

    Attributes:
        builder: the builder of the stage's graph.
        outputs: values that the device computes and their tensors, by the names of the graph's outputs.
        known: values whose elements are known.
        inputs: values to feed, by the names of the graph's inputs.
        reads: variables to feed, by the names of the graph's inputs.
        writes: the new elements of variables, by the names of the graph's outputs.
        types: the shapes of the variables that the stage was lowered for.
        quantizations: the quantizations of variables that are quantized.
        guards: elements that the stage holds for.
        host: nodes that the host evaluates after the graph has run.
        rest: nodes of later stages.
        aliases: values that stand for others.
        placed: where the nodes run.
    """

    builder: MLGraphBuilder
    outputs: dict[str, tuple[TfliteValue, TfliteTensor]] = field(default_factory=dict[str, tuple[TfliteValue, TfliteTensor]])
    known: dict[TfliteValue, Array] = field(default_factory=dict[TfliteValue, Array])
    inputs: dict[str, TfliteValue] = field(default_factory=dict[str, TfliteValue])
    reads: dict[str, VariableKey] = field(default_factory=dict[str, VariableKey])
    writes: dict[str, tuple[VariableKey, TfliteTensor]] = field(default_factory=dict[str, tuple[VariableKey, TfliteTensor]])
    types: dict[VariableKey, tuple[Shape, DType]] = field(default_factory=dict[VariableKey, tuple[Shape, DType]])
    quantizations: dict[VariableKey, Quantization] = field(default_factory=dict[VariableKey, Quantization])
    guards: dict[TfliteValue, Array] = field(default_factory=dict[TfliteValue, Array])
    host: list[TfliteNode] = field(default_factory=list[TfliteNode])
    rest: list[TfliteNode] = field(default_factory=list[TfliteNode])
    aliases: dict[TfliteValue, TfliteValue] = field(default_factory=dict[TfliteValue, TfliteValue])
    handles: dict[TfliteValue, VariableKey] = field(default_factory=dict[TfliteValue, VariableKey])
    placed: list[Placed] = field(default_factory=list[Placed])

    @property
    def operands(self) -> dict[str, MLOperand]:
        """The outputs of the stage's graph."""
        tensors = {name: t for name, (_, t) in (*self.outputs.items(), *self.writes.items())}
        return {name: t.operand for name, t in tensors.items() if t.operand is not None}


def resolve(value: TfliteValue, aliases: Mapping[TfliteValue, TfliteValue]) -> TfliteValue:
    """Follow the aliases of a value."""
    while value in aliases:
        value = aliases[value]
    return value
