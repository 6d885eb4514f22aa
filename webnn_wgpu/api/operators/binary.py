"""Element-wise arithmetic of two operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class BinaryOperators(OperatorMethods):
    """add, sub, mul, div, max, min, pow. Shapes broadcast as in numpy."""

    @with_options()
    def add(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a + b`, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: Integers wrap around.

        Example:
            >>> b.add(x, y).shape
            (2, 3)
            >>> b.add(x, b.constant("float32", 2.0)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("add", [a, b], label=label)

    @with_options()
    def sub(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a - b`, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: Integers wrap around.

        Example:
            >>> b.sub(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("sub", [a, b], label=label)

    @with_options()
    def mul(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a * b`, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: Integers wrap around.

        Example:
            >>> b.mul(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("mul", [a, b], label=label)

    @with_options()
    def div(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a / b`, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: Integers are divided toward zero, and dividing them by 0 gives 0. Floats follow IEEE 754.

        Example:
            >>> b.div(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("div", [a, b], label=label)

    @with_options()
    def max(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The greater of a and b, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: NaN where either operand is NaN.

        Example:
            >>> b.max(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("max", [a, b], label=label)

    @with_options()
    def min(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The lesser of a and b, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: NaN where either operand is NaN.

        Example:
            >>> b.min(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("min", [a, b], label=label)

    @with_options()
    def pow(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a` to the power of b, element by element.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of their data type and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: A negative float to a power that is no integer is NaN; x to the 0 is 1, also for NaN. Integers wrap
        around; a negative power of an integer is 0, but for 1 and -1.

        Example:
            >>> b.pow(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("pow", [a, b], label=label)
