"""Element-wise arithmetic of two operands.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class BinaryOperators(OperatorMethods):
    """add, div, max, min, mul, pow, sub. Shapes broadcast as in numpy."""

    @with_options()
    def add(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a + b`, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.add(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("add", [a, b], {}, label)

    @with_options()
    def div(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a / b`, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers are divided toward zero, and dividing them by 0 gives 0. Floats follow IEEE 754.

        Example:
            >>> b.div(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("div", [a, b], {}, label)

    @with_options()
    def max(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The greater of a and b, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN if either operand is NaN.

        Example:
            >>> b.max(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("max", [a, b], {}, label)

    @with_options()
    def min(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The lesser of a and b, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            NaN if either operand is NaN.

        Example:
            >>> b.min(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("min", [a, b], {}, label)

    @with_options()
    def mul(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a * b`, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.mul(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("mul", [a, b], {}, label)

    @with_options()
    def pow(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a` to the power of `b`, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            A negative float to a power that is not an integer is NaN. Any float to the power of 0 is 1, NaN included. Integers
            wrap around. A negative power of an integer is 0, except for 1 and -1.

        Example:
            >>> b.pow(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("pow", [a, b], {}, label)

    @with_options()
    def sub(self, a: MLOperand, b: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """`a - b`, element by element.

        Args:
            a: Any data type, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Integers wrap around.

        Example:
            >>> b.sub(x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary
        """
        return self._output("sub", [a, b], {}, label)
