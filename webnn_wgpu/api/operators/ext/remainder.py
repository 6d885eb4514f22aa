"""Extension operators: the remainders of divisions.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class RemainderExtensions(OperatorMethods):
    """fmod, mod."""

    @with_options()
    def fmod(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """The remainder of a / b with the quotient truncated, as C's fmod and C's integer % compute it.

        Args:
            a: Any data type, with any shape.
            b: The divisor, with the data type of `a` and a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is exact and has the sign of `a`. Floats: NaN if `b` is 0 or `a` is infinite, and `a` itself if `b` is
            infinite. Integers: 0 if `b` is 0.

        Example:
            >>> b.ext.fmod(x, y).shape
            (2, 3)
        """
        return self._output("x.fmod", [a, b], {}, label)

    @with_options()
    def mod(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """The remainder of a / b with the quotient rounded down, as Python's % computes it.

        Args:
            a: Any data type, with any shape.
            b: The divisor, with the data type of `a` and a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result has the sign of `b`, as that of `numpy.mod`. It is exact for integers and rounded once for floats.
            Floats: NaN if `b` is 0 or `a` is infinite. Integers: 0 if `b` is 0.

        Example:
            >>> b.ext.mod(x, y).shape
            (2, 3)
        """
        return self._output("x.mod", [a, b], {}, label)
