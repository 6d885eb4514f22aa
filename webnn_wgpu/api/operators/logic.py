"""Comparisons and logic: uint8 results of 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class LogicOperators(OperatorMethods):
    """Comparisons, logical operators, is_nan and is_infinite. Shapes broadcast as in numpy."""

    @with_options()
    def equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a equals b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 0 where either operand is NaN.

        Example:
            >>> b.equal(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("equal", [a, b], label=label)

    @with_options()
    def not_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a differs from b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 1 where either operand is NaN.

        Example:
            >>> b.not_equal(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("notEqual", [a, b], label=label)

    @with_options()
    def greater(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a > b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 0 where either operand is NaN.

        Example:
            >>> b.greater(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("greater", [a, b], label=label)

    @with_options()
    def greater_or_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a >= b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 0 where either operand is NaN.

        Example:
            >>> b.greater_or_equal(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("greaterOrEqual", [a, b], label=label)

    @with_options()
    def lesser(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a < b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 0 where either operand is NaN.

        Example:
            >>> b.lesser(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("lesser", [a, b], label=label)

    @with_options()
    def lesser_or_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a <= b, else 0.

        Args:
            a: Any data type and shape.
            b: The same data type; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: Data types that differ, shapes that do not broadcast, a number instead of an operand, or an
                operand of another builder.

        Numerics: 0 where either operand is NaN.

        Example:
            >>> b.lesser_or_equal(x, y).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("lesserOrEqual", [a, b], label=label)

    @with_options()
    def logical_and(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where both a and b are not 0, else 0.

        Args:
            a: uint8; any shape.
            b: uint8; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: A data type other than uint8, shapes that do not broadcast, or an operand of another builder.

        Example:
            >>> b.logical_and(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalAnd", [a, b], label=label)

    @with_options()
    def logical_or(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a or b is not 0, else 0.

        Args:
            a: uint8; any shape.
            b: uint8; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: A data type other than uint8, shapes that do not broadcast, or an operand of another builder.

        Example:
            >>> b.logical_or(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalOr", [a, b], label=label)

    @with_options()
    def logical_xor(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where exactly one of a and b is not 0, else 0.

        Args:
            a: uint8; any shape.
            b: uint8; a shape that broadcasts with that of `a`.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the broadcast shape.

        Raises:
            MLTypeError: A data type other than uint8, shapes that do not broadcast, or an operand of another builder.

        Example:
            >>> b.logical_xor(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalXor", [a, b], label=label)

    @with_options()
    def logical_not(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is 0, else 0.

        Also `not_`, and `not` by getattr: the name of the 2024 text is a Python keyword.

        Args:
            a: uint8; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the shape of `a`.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.logical_not(b.equal(x, y)).shape
            (2, 3)
            >>> getattr(b, "not")(b.equal(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalNot", [a], label=label)

    not_ = logical_not

    @with_options()
    def is_nan(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is NaN, else 0.

        Args:
            a: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the shape of `a`.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.is_nan(x).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("isNaN", [a], label=label)

    @with_options()
    def is_infinite(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is infinite, else 0.

        Args:
            a: float32 or float16; any shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of uint8 and the shape of `a`.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.is_infinite(x).data_type
            'uint8'

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("isInfinite", [a], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        notEqual = not_equal
        greaterOrEqual = greater_or_equal
        lesserOrEqual = lesser_or_equal
        logicalAnd = logical_and
        logicalOr = logical_or
        logicalXor = logical_xor
        logicalNot = logical_not
        isNaN = is_nan
        isInfinite = is_infinite
