"""Changing the data type, and choosing between two operands, element by element.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from ..types import OperandDataType
    from .dictionaries import MLOperatorOptions


class SelectionOperators(OperatorMethods):
    """cast, where."""

    @with_options(type="data_type")
    def cast(
        self, input: MLOperand, data_type: OperandDataType, options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """The elements in another data type.

        Args:
            input: Any data type, with any shape.
            data_type: The output's data type. Its name is `type` in the 2024 text.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of data type `data_type` with the input's shape.

        Raises:
            MLTypeError: The data type is unknown, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Floats that are cast to integers lose their fraction and saturate, and NaN becomes 0. Integers that are cast to
            integers keep their low bits.

        Example:
            >>> b.cast(x, "int32")
            MLOperand(int32[2, 3])

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-cast
        """
        return self._output("cast", [input], {"data_type": data_type}, label)

    @with_options(input="true_value", other="false_value")
    def where(
        self,
        condition: MLOperand,
        true_value: MLOperand,
        false_value: MLOperand,
        options: MLOperatorOptions = {},
        *,
        label: str = "",
    ) -> MLOperand:
        """`true_value` where the condition is not 0, else `false_value`.

        The three shapes broadcast as in numpy.

        Args:
            condition: uint8, as comparisons return it, with any shape.
            true_value: Any data type, with any shape. Its name is `input` in the 2024 text.
            false_value: The data type of `true_value`, with any shape. Its name is `other` in the 2024 text.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the values' data type and the broadcast shape.

        Raises:
            MLTypeError: The condition is not uint8, the values have different data types, the shapes do not broadcast, or an
                operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN and infinities in the value that is not taken have no effect.

        Example:
            >>> b.where(b.greater(x, y), x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-where
        """
        return self._output("where", [condition, true_value, false_value], {}, label)
