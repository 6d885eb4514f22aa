"""Comparisons and logic, with uint8 results of 0 and 1.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class LogicOperators(OperatorMethods):
    """Comparisons and logic, with uint8 results of 0 and 1.

    equal, greater, greater_or_equal, is_infinite, is_nan, lesser, lesser_or_equal, logical_and, logical_not, not_, logical_or,
    logical_xor, not_equal. Shapes broadcast as in numpy.
    """

    @with_options()
    def equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a equals b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 if either operand is NaN.

        Example:
            >>> b.equal(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("equal", [a, b], {}, label)

    @with_options()
    def greater(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a > b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 if either operand is NaN.

        Example:
            >>> b.greater(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("greater", [a, b], {}, label)

    @with_options()
    def greater_or_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a >= b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 if either operand is NaN.

        Example:
            >>> b.greater_or_equal(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("greaterOrEqual", [a, b], {}, label)

    @with_options()
    def is_infinite(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is infinite, else 0.

        Args:
            a: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8, with the shape of `a`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.is_infinite(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("isInfinite", [a], {}, label)

    @with_options()
    def is_nan(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is NaN, else 0.

        Args:
            a: float32 or float16, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8, with the shape of `a`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.is_nan(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("isNaN", [a], {}, label)

    @with_options()
    def lesser(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a < b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 if either operand is NaN.

        Example:
            >>> b.lesser(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("lesser", [a, b], {}, label)

    @with_options()
    def lesser_or_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a <= b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            0 if either operand is NaN.

        Example:
            >>> b.lesser_or_equal(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("lesserOrEqual", [a, b], {}, label)

    @with_options()
    def logical_and(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where both a and b are not 0, else 0.

        Args:
            a: uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.logical_and(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalAnd", [a, b], {}, label)

    @with_options()
    def logical_not(self, a: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a is 0, else 0.

        The 2024 text calls it `not`, which Python reserves: `not_`, or `getattr(builder, "not")`.

        Args:
            a: uint8, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8, with the shape of `a`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.logical_not(b.equal(x, y)).shape
            (2, 3)
            >>> getattr(b, "not")(b.equal(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalNot", [a], {}, label)

    not_ = logical_not

    @with_options()
    def logical_or(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a or b is not 0, else 0.

        Args:
            a: uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.logical_or(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalOr", [a, b], {}, label)

    @with_options()
    def logical_xor(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where exactly one of a and b is not 0, else 0.

        Args:
            a: uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.logical_xor(b.equal(x, y), b.greater(x, y)).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("logicalXor", [a, b], {}, label)

    @with_options()
    def not_equal(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """1 where a differs from b, else 0.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of uint8 with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            1 if either operand is NaN.

        Example:
            >>> b.not_equal(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-logical
        """
        return self._output("notEqual", [a, b], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        greaterOrEqual = greater_or_equal
        isInfinite = is_infinite
        isNaN = is_nan
        lesserOrEqual = lesser_or_equal
        logicalAnd = logical_and
        logicalNot = logical_not
        logicalOr = logical_or
        logicalXor = logical_xor
        notEqual = not_equal
