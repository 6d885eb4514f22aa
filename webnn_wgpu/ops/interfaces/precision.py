"""Precision: the treatment of float16 values in a graph that keeps float32 between its operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Precision:
    """The treatment of float16 operands by an operator among float32 values.

    Attributes:
        weights: positions of the operands that stay float16 if they are constants.
        discrete: whether a difference in the last place of an operand can become a whole step of the result. Such an operator
            gets the graph's own float16 values.
    """

    weights: tuple[int, ...] = ()
    discrete: bool = False


DISCRETE = Precision(discrete=True)
"""Operators that round to whole numbers."""
