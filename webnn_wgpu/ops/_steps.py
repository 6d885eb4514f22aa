"""Operators on rows that do not fit a binding: totals of the rows, and element-wise formulas between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..ir.types import TensorType
from ..kernels.expression import ExpressionBuilder, Formula
from ..kernels.spec import KernelCall, Temp
from ._def import Lowering
from ._elementwise import Source, elementwise_call
from ._reduction import reduced_shape
from .reduce import ReduceTensor, total_calls

_REASON = "rows larger than a binding"


class StepCalls:
    """The calls of one node, collected step by step. The values between two steps are float32.

    Attributes:
        calls: the calls.
    """

    def __init__(self, low: Lowering, axes: Sequence[int], of: int = 0) -> None:
        """Begin a node whose operand `of` has the rows along `axes`."""
        self._low, self._axes, self._shape = low, tuple(axes), low.input(of).shape
        self._rows = reduced_shape(self._shape, axes, keep_dimensions=True)
        self.calls: list[KernelCall] = []

    def operand(self, index: int, strides: tuple[int, ...] | None = None) -> Source:
        """Return an operand of the node. `strides` are its strides along every dimension of the input."""
        return Source(self._low.value(index), self._low.input(index), strides)

    def total(self, total: Literal["sum", "mean", "max"], source: Source) -> Source:
        """Add the total of every row of a source and return it."""
        temp = self._temp(self._rows)
        shape, data_type = source.type.shape, source.type.data_type
        target = ReduceTensor(temp.value, temp.type.data_type)
        key = f"parts {len(self.calls)}"
        self.calls += total_calls(self._low, total, ReduceTensor(source.value, data_type, shape), self._axes, target, key=key)
        return temp

    def formula(self, formula: Formula, *sources: Source, result: int | None = None) -> Source:
        """Add a formula of every element and return its values: those of the output with the number `result`, if given."""
        if result is None:
            target = self._temp(self._shape)
        else:
            target = Source(self._low.node.outputs[result], self._low.output(result))
        builder = ExpressionBuilder()
        operands = [builder.argument(s.type.data_type) for s in sources]
        expression = builder.finish(builder.apply(formula, operands, target.type.data_type))
        self.calls += elementwise_call(
            expression, builder.uniforms, sources, target.value, target.type, self._low.target, _REASON
        )
        return target

    def _temp(self, shape: tuple[int, ...]) -> Source:
        type_ = TensorType("float32", shape)
        return Source(Temp(f"step {len(self.calls)}", type_.size_bytes), type_)
