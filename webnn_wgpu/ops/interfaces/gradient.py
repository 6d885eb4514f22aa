"""Gradient: the derivative of an operator, stated in operators, as a rule that adds them to a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...core.data_types import FLOATS
from ...ir.graph import Array, Attrs
from ...ir.types import TensorType


class GraphWriter(Protocol):
    """The graph that a gradient rule adds operators to."""

    def add(self, op: str, operands: Sequence[GradientTerm | None], attrs: Attrs) -> tuple[GradientTerm, ...]:
        """Add an operator and return its results. Absent operands at the end may be omitted."""
        ...

    def constant(self, array: Array) -> GradientTerm:
        """Add a constant."""
        ...

    def differentiate(
        self, results: Sequence[GradientTerm], operands: Sequence[GradientTerm], gradients: Sequence[GradientTerm | None]
    ) -> Sequence[GradientTerm]:
        """Return the gradients of operands that results were computed from. None stands for a gradient of zeros."""
        ...


class GradientTerm:
    """A value of a graph in a gradient rule. Python's arithmetic on terms and numbers adds operators.

    Attributes:
        writer: the graph.
        value: the number of the value.
        type: its data type and shape.
    """

    __slots__ = ("type", "value", "writer")

    def __init__(self, writer: GraphWriter, value: int, type: TensorType) -> None:
        self.writer, self.value, self.type = writer, value, type

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return self.type.rank

    def apply(self, op: str, *others: GradientTerm | None, **attrs: Any) -> GradientTerm:
        """Add an operator whose first operand is this term, and return its only result."""
        (result,) = self.writer.add(op, (self, *others), attrs)
        return result

    # arithmetic ---------------------------------------------------------------------------------------------------

    def _linear(self, alpha: float, beta: float) -> GradientTerm:
        return self.apply("linear", alpha=alpha, beta=beta)

    def __neg__(self) -> GradientTerm:
        return self.apply("neg")

    def __add__(self, other: GradientTerm | float) -> GradientTerm:
        return self.apply("add", other) if isinstance(other, GradientTerm) else self._linear(1.0, other)

    __radd__ = __add__

    def __sub__(self, other: GradientTerm | float) -> GradientTerm:
        return self.apply("sub", other) if isinstance(other, GradientTerm) else self._linear(1.0, -other)

    def __rsub__(self, other: float) -> GradientTerm:
        return self._linear(-1.0, other)

    def __mul__(self, other: GradientTerm | float) -> GradientTerm:
        if isinstance(other, GradientTerm):
            return self.apply("mul", other)
        return self if other == 1 else self._linear(other, -0.0)

    __rmul__ = __mul__

    def __truediv__(self, other: GradientTerm | float) -> GradientTerm:
        # Not the product with the reciprocal, which float16 rounds: it has 3, and not 1 / 3.
        return self.apply("div", other if isinstance(other, GradientTerm) else self.number(other))

    def square(self) -> GradientTerm:
        """Return the product with itself."""
        return self * self

    # numbers and choices ------------------------------------------------------------------------------------------

    def number(self, value: float) -> GradientTerm:
        """Return a scalar constant of this term's data type."""
        return self.writer.constant(np.array(value, self.type.numpy))

    def filled(self, value: float, shape: Sequence[int] | None = None) -> GradientTerm:
        """Return equal elements of this term's data type, and of its shape by default."""
        shape = self.shape if shape is None else tuple(shape)
        return self.number(value).expanded(shape) if shape else self.number(value)

    def compared(self, op: str, other: GradientTerm | float) -> GradientTerm:
        """Return the uint8 result of a comparison."""
        return self.apply(op, other if isinstance(other, GradientTerm) else self.number(other))

    def where(self, condition: GradientTerm, other: GradientTerm | float = 0.0) -> GradientTerm:
        """Return these elements where the condition holds, and the other elements elsewhere."""
        return condition.apply("where", self, other if isinstance(other, GradientTerm) else self.number(other))

    def cast(self, data_type: str) -> GradientTerm:
        """Return the elements in a data type."""
        return self if self.type.data_type == data_type else self.apply("cast", data_type=data_type)

    # shapes -------------------------------------------------------------------------------------------------------

    def reshaped(self, shape: Sequence[int]) -> GradientTerm:
        """Return the elements in another shape."""
        return self if self.shape == tuple(shape) else self.apply("reshape", new_shape=tuple(shape))

    def expanded(self, shape: Sequence[int]) -> GradientTerm:
        """Return the elements repeated to a shape that they broadcast to."""
        return self if self.shape == tuple(shape) else self.apply("expand", new_shape=tuple(shape))

    def permuted(self, permutation: Sequence[int]) -> GradientTerm:
        """Return the transpose whose dimension i is dimension `permutation[i]` of this term."""
        same = tuple(permutation) == tuple(range(self.rank))
        return self if same else self.apply("transpose", permutation=tuple(permutation))

    def summed(self, axes: Sequence[int], *, keep: bool = False) -> GradientTerm:
        """Return the sums along dimensions."""
        return self.apply("reduceSum", axes=tuple(axes), keep_dimensions=keep) if axes else self

    def averaged(self, axes: Sequence[int]) -> GradientTerm:
        """Return the means along dimensions, which become 1."""
        return self.apply("reduceMean", axes=tuple(axes), keep_dimensions=True)

    def summed_to(self, shape: Sequence[int]) -> GradientTerm:
        """Return the gradient of a value of a shape that was broadcast to the shape of this gradient."""
        lead = self.rank - len(shape)
        repeated = [lead + i for i, d in enumerate(shape) if d == 1 and self.shape[lead + i] != 1]
        return self.summed([*range(lead), *repeated]).reshaped(shape)

    def sliced(self, axis: int, start: int, size: int) -> GradientTerm:
        """Return a range of the indices along a dimension."""
        if size == self.shape[axis]:
            return self
        starts, sizes = [0] * self.rank, list(self.shape)
        starts[axis], sizes[axis] = start, size
        return self.apply("slice", starts=tuple(starts), sizes=tuple(sizes))

    def padded(self, axis: int, before: int, after: int) -> GradientTerm:
        """Return the elements between zeros along a dimension."""
        if not before and not after:
            return self
        beginning, ending = [0] * self.rank, [0] * self.rank
        beginning[axis], ending[axis] = before, after
        return self.apply("pad", beginning_padding=tuple(beginning), ending_padding=tuple(ending))

    def around(self, axis: int) -> GradientTerm:
        """Return the elements as [outer, size of a dimension, inner]."""
        return self.reshaped((math.prod(self.shape[:axis]), self.shape[axis], math.prod(self.shape[axis + 1 :])))


@dataclass(frozen=True, kw_only=True)
class GradientCall:
    """A node whose gradient a rule states.

    Attributes:
        writer: the graph.
        op: the operator.
        attrs: the canonical attributes of the node.
        operands: the operands. Absent ones are None.
        results: the results.
        gradients: the gradients of the results. None stands for zeros.
        wanted: whether each operand needs a gradient. A rule may leave out expensive gradients that it does not need.
    """

    writer: GraphWriter
    op: str
    attrs: Attrs
    operands: tuple[GradientTerm | None, ...]
    results: tuple[GradientTerm, ...]
    gradients: tuple[GradientTerm | None, ...]
    wanted: tuple[bool, ...]

    @property
    def x(self) -> GradientTerm:
        """The first operand."""
        return self.given(0)

    @property
    def y(self) -> GradientTerm:
        """The first result."""
        return self.results[0]

    @property
    def gradient(self) -> GradientTerm:
        """The gradient of the first result."""
        gradient = self.gradients[0]
        return self.y.filled(0.0) if gradient is None else gradient

    def given(self, index: int) -> GradientTerm:
        """Return an operand that is not absent."""
        operand = self.operands[index]
        assert operand is not None
        return operand

    def optional(self, index: int) -> GradientTerm | None:
        """Return an operand, or None if it is absent."""
        return self.operands[index] if index < len(self.operands) else None

    def wants(self, index: int) -> bool:
        """Return whether an operand is given and needs a gradient."""
        return index < len(self.wanted) and self.wanted[index]

    def constant(self, array: Array) -> GradientTerm:
        """Return a constant."""
        return self.writer.constant(np.asarray(array))


class NoDerivative:
    """The gradient of an operand on which the results depend in a way that has no derivative."""


NO_DERIVATIVE = NoDerivative()
"""Gradients that need such an operand are refused."""

GradientRule: TypeAlias = Callable[[GradientCall], Sequence["GradientTerm | NoDerivative | None"]]
"""Adds the operators of a gradient and returns a gradient for each operand. None stands for zeros, and is the gradient of
operands that hold integers."""


def by_parts(compute: Callable[[GradientCall, Sequence[GradientTerm | None]], Sequence[GradientTerm]]) -> GradientRule:
    """Return the rule of an operator that is equal to a composition of other operators.

    Args:
        compute: adds the composition of operands and returns its results.
    """

    def rule(call: GradientCall) -> list[GradientTerm | NoDerivative | None]:
        # Separate operands, so that only their use by the composition counts.
        own = [
            None if operand is None else operand.apply("identity") if wanted else operand
            for operand, wanted in zip(call.operands, call.wanted, strict=True)
        ]
        results = compute(call, own)
        differentiable = [
            term
            for term, wanted in zip(own, call.wanted, strict=True)
            if term is not None and wanted and term.type.data_type in FLOATS
        ]
        gradients = iter(call.writer.differentiate(results, differentiable, call.gradients))
        return [next(gradients) if term in differentiable else None for term in own]

    return rule
