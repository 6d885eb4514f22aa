"""The number of arithmetic operations in an operator's definition, and the number of bytes that it has to read and write.

A multiplication with an addition counts as two operations, a function such as `exp` or `tanh` as one, a comparison as one, a
movement as none. Addresses do not count. A faster method does not count less: a convolution by Winograd's method takes fewer
operations than are counted here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ...ir.graph import Attrs
from ...ir.types import TensorType

Count = Callable[[Attrs, Sequence[TensorType], TensorType], int]
"""Counts the operations of a node from its attributes and the types of its given operands and of its first output."""


class Traffic(Enum):
    """The bytes of its operands that an operator has to read.

    Attributes:
        WHOLE: all bytes of each operand.
        TAKEN: at most as many bytes of each operand as the result has, for example of a table or a sliced operand.
        CHANGED: all bytes of the operands that are bound for reading. The operator writes as many bytes.
    """

    WHOLE = "whole"
    TAKEN = "taken"
    CHANGED = "changed"


@dataclass(frozen=True)
class Cost:
    """The arithmetic operations and the memory traffic of an operator.

    Attributes:
        operations: counts the arithmetic operations.
        traffic: which bytes are read.
    """

    operations: Count
    traffic: Traffic = Traffic.WHOLE


def per_element(operations: int = 1) -> Cost:
    """Return the cost of so many operations for each element of the first operand."""
    return Cost(lambda attrs, types, output: operations * types[0].num_elements)


def _one_per_result(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    return output.num_elements


def _none(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    return 0


PER_RESULT = Cost(_one_per_result)
"""One operation for each element of the result."""

PER_TAKEN = Cost(_one_per_result, Traffic.TAKEN)
"""One operation for each element of the result, which is looked up."""

MOVED = Cost(_none, Traffic.TAKEN)
"""No operations: the operator copies elements."""

UPDATED = Cost(_none, Traffic.CHANGED)
"""No operations: the operator overwrites part of an operand in place."""
