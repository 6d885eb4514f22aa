"""The stages of a TFLite program, which read and write variables besides inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from webnn_wgpu import MLOperand, MLTensor

from ..common.held import DType, Shape
from ..common.stages import Lowered
from .contents import Quantization
from .tensors import TfliteNode, TfliteTensor, TfliteValue, VariableKey


@dataclass(kw_only=True)
class TfliteStage(Lowered[TfliteValue, TfliteNode]):
    """A stage and its variables.

    Attributes:
        reads: variables to feed, by the names of the graph's inputs.
        writes: the new elements of variables, by the names of the graph's outputs.
        types: the shapes of the variables that the stage was lowered for.
        quantizations: the quantizations of variables that are quantized.
        handles: the variables that values refer to.
        tensors: the tensors of the graph's inputs and outputs that are no variables, in a compiled stage with variables.
    """

    reads: dict[str, VariableKey] = field(default_factory=dict[str, VariableKey])
    writes: dict[str, tuple[VariableKey, TfliteTensor]] = field(default_factory=dict[str, tuple[VariableKey, TfliteTensor]])
    types: dict[VariableKey, tuple[Shape, DType]] = field(default_factory=dict[VariableKey, tuple[Shape, DType]])
    quantizations: dict[VariableKey, Quantization] = field(default_factory=dict[VariableKey, Quantization])
    handles: dict[TfliteValue, VariableKey] = field(default_factory=dict[TfliteValue, VariableKey])
    tensors: dict[str, MLTensor] = field(default_factory=dict[str, MLTensor])

    @property
    def operands(self) -> dict[str, MLOperand]:
        """The outputs of the stage's graph."""
        written = {name: t.operand for name, (_, t) in self.writes.items() if t.operand is not None}
        return super().operands | written

    def is_input(self, name: str) -> bool:
        """Return whether an input of the stage's graph has a name."""
        return super().is_input(name) or name in self.reads

    def keep_inputs(self, used: set[str]) -> None:
        """Forget the inputs that the compiled graph does not read."""
        super().keep_inputs(used)
        self.reads = {name: key for name, key in self.reads.items() if name in used}
