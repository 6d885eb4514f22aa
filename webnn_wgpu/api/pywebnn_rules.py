"""A builder with pywebnn's rules, and the factory of contexts that make such builders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .builder import MLGraphBuilder
from .ml import ML

if TYPE_CHECKING:
    from .context import MLContext
    from .operand import MLOperand

_ARGUMENTS = frozenset({"argMax", "argMin"})
_LOGICAL = frozenset({"logicalAnd", "logicalNot", "logicalOr", "logicalXor"})
_QUANTIZING = frozenset({"quantizeLinear", "dequantizeLinear"})


class PywebnnBuilder(MLGraphBuilder):
    """A builder with pywebnn's rules.

    It builds repeatedly. `arg_max` and `arg_min` return int64. Logical operators take any data type: elements other than 0 are
    true. Scales and zero points of rank 0 are allowed for inputs of any rank.

    Args:
        context: the context where the graphs will run.
    """

    def __init__(self, context: MLContext) -> None:
        super().__init__(context, profile="2024")

    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        if name in _ARGUMENTS:
            attrs = {**attrs, "output_data_type": attrs.get("output_data_type") or "int64"}
        elif name in _LOGICAL:
            operands = [None if o is None else self._truth(o, label) for o in operands]
        elif name in _QUANTIZING:
            first, *others = operands
            rank = 0 if first is None else first.rank
            operands = [first, *(None if o is None else self._of_rank(o, rank, label) for o in others)]
        return super()._operator(name, operands, attrs, label)

    def _truth(self, operand: MLOperand, label: str) -> MLOperand:
        if operand.data_type == "uint8":
            return operand
        zero = self.constant({"dataType": operand.data_type, "shape": []}, np.zeros((), operand.type.numpy))
        return self.not_equal(operand, zero, label=label)

    def _of_rank(self, operand: MLOperand, rank: int, label: str) -> MLOperand:
        return operand if operand.rank or not rank else self.reshape(operand, [1] * rank, label=label)


class PywebnnML(ML):
    """A factory of contexts whose `create_graph_builder` returns a `PywebnnBuilder`."""

    if not TYPE_CHECKING:  # type checkers see the signature of `ML`

        def create_context(self, *args: Any, **options: Any) -> MLContext:
            """Return a context. The arguments are those of `ML.create_context`."""
            context = super().create_context(*args, **options)
            context._builder_type = PywebnnBuilder
            return context


pywebnn_ml = PywebnnML()
"""The shared `PywebnnML` object."""
