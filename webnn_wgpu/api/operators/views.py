"""Operators that give the same memory another shape.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import with_options
from ._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


class ViewOperators(OperatorMethods):
    """identity, reshape. They cost nothing at run time."""

    @with_options()
    def identity(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The input itself, as the output of an operator.

        An input or a constant can be an output of a graph only through this operator.

        Args:
            input: Any data type, with any shape.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The input is not an operand, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.identity(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("identity", [input], {}, label)

    @with_options()
    def reshape(
        self, input: MLOperand, new_shape: Sequence[int], options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """The same elements, in the same row-major order, in another shape.

        Args:
            input: Any data type, with any shape.
            new_shape: The output's shape, with as many elements. [] makes a scalar of one element.
            options: The options that follow, as one dictionary.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the shape `new_shape`.

        Raises:
            MLTypeError: The number of elements differs, a size is 0, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.reshape(x, [3, 2]).shape
            (3, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._output("reshape", [input], {"new_shape": new_shape}, label)
