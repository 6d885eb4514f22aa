"""Extension operators: what divisions leave."""

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
        """The remainder of a / b with the quotient truncated: C's fmod and integer %.

        Args:
            a: Any data type; any shape.
            b: The divisor, of the same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Numerics: Exact, with the sign of `a`. For floats NaN where `b` is 0 or `a` infinite; `a` itself where `b` is infinite.
        For integers 0 where `b` is 0.

        Example:
            >>> b.ext.fmod(x, y).shape
            (2, 3)
        """
        return self._output("x.fmod", [a, b], label=label)

    @with_options()
    def mod(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """The remainder of a / b with the quotient rounded down: Python's %.

        Args:
            a: Any data type; any shape.
            b: The divisor, of the same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Numerics: With the sign of `b`, as `numpy.mod`: exact for integers, rounded once for floats. For floats NaN where
        `b` is 0 or `a` infinite; for integers 0 where `b` is 0.

        Example:
            >>> b.ext.mod(x, y).shape
            (2, 3)
        """
        return self._output("x.mod", [a, b], label=label)
