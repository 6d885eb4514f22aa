"""cast and where: changing the data type, and choosing between two operands, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ops import operator
from ..options import with_options
from ._base import OperatorMethods, require_operands

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
            input: Any data type and shape.
            data_type: The output's data type; `type` in the 2024 text.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of data type `data_type` and the input's shape.

        Raises:
            MLTypeError: A name that is no data type, or an operand of another builder.

        Numerics: Floats lose their fraction and saturate when cast to integers, NaN becomes 0; integers cast to integers
        keep their low bits.

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
        """`true_value` where the condition is not 0, else `false_value`. The three shapes broadcast as in numpy.

        Args:
            condition: uint8, as comparisons return it; any shape.
            true_value: Any data type and shape; `input` in the 2024 text.
            false_value: The same data type; any shape; `other` in the 2024 text.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the values' data type and the broadcast shape.

        Raises:
            MLTypeError: A condition that is not uint8, values of different data types, shapes that do not broadcast, or
                an operand of another builder.

        Numerics: NaN and infinities in the value that is not taken have no effect.

        Example:
            >>> b.where(b.greater(x, y), x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-where
        """
        return self._output("where", [condition, true_value, false_value], label=label)

    @with_options()
    def where_(self, condition: MLOperand, true_value: MLOperand, false_value: MLOperand, *, label: str = "") -> MLOperand:
        """`where` with a condition of any data type, true where it is not 0. Not of the specification.

        Args:
            condition: Any data type and shape.
            true_value: Any data type and shape.
            false_value: The same data type; any shape.
            label: The operators' name in messages.

        Returns:
            An operand of the values' data type and the broadcast shape.

        Raises:
            MLTypeError: Values of different data types, shapes that do not broadcast, or an operand of another builder.

        Numerics: 256, 0.5 and NaN are true, -0.0 is false.

        Example:
            >>> b.where_(x, x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-where
        """
        operands = [condition, true_value, false_value]
        op = operator("where")
        require_operands(op, operands, label)
        self._require_own(op, operands, label)
        if condition.data_type != "uint8":
            # Checked before anything is added: a call that fails adds nothing to the graph.
            op.check([condition.type.with_data_type("uint8"), true_value.type, false_value.type], {}, label)
            # What differs from its difference with itself: all but 0, and NaN, which differs from everything.
            zero = self._output("sub", [condition, condition], label=label)
            condition = self._output("notEqual", [condition, zero], label=label)
        return self.where(condition, true_value, false_value, label=label)
