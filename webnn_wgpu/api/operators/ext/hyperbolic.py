"""Extension operators: inverse trigonometric functions, hyperbolic functions and their inverses.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class HyperbolicExtensions(OperatorMethods):
    """acos, acosh, asin, asinh, atan, atanh, cosh, sinh."""

    @with_options()
    def acos(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Arc cosine of each element, in radians.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP. NaN outside -1..1.

        Example:
            >>> b.ext.acos(x).shape
            (2, 3)
        """
        return self._output("x.acos", [input], {}, label)

    @with_options()
    def acosh(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Inverse hyperbolic cosine of each element.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP. NaN below 1.

        Example:
            >>> b.ext.acosh(x).shape
            (2, 3)
        """
        return self._output("x.acosh", [input], {}, label)

    @with_options()
    def asin(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Arc sine of each element, in radians.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 3 ULP. NaN outside -1..1.

        Example:
            >>> b.ext.asin(x).shape
            (2, 3)
        """
        return self._output("x.asin", [input], {}, label)

    @with_options()
    def asinh(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Inverse hyperbolic sine of each element.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP.

        Example:
            >>> b.ext.asinh(x).shape
            (2, 3)
        """
        return self._output("x.asinh", [input], {}, label)

    @with_options()
    def atan(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Arc tangent of each element, in radians.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 3 ULP. Infinities give pi/2 and -pi/2.

        Example:
            >>> b.ext.atan(x).shape
            (2, 3)
        """
        return self._output("x.atan", [input], {}, label)

    @with_options()
    def atanh(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Inverse hyperbolic tangent of each element.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP. Infinite at -1 and 1, NaN beyond them.

        Example:
            >>> b.ext.atanh(x).shape
            (2, 3)
        """
        return self._output("x.atanh", [input], {}, label)

    @with_options()
    def cosh(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Hyperbolic cosine of each element.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP. Results are infinity from about 89.4 on.

        Example:
            >>> b.ext.cosh(x).shape
            (2, 3)
        """
        return self._output("x.cosh", [input], {}, label)

    @with_options()
    def sinh(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Hyperbolic sine of each element.

        Args:
            input: float32 or float16, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Within 2 ULP. Results are infinite from about 89.4 on.

        Example:
            >>> b.ext.sinh(x).shape
            (2, 3)
        """
        return self._output("x.sinh", [input], {}, label)
