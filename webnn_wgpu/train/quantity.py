"""`Quantity`: an operand with Python's arithmetic, in which optimizers write their formulas."""

from __future__ import annotations

from dataclasses import dataclass

from webnn_wgpu import MLGraphBuilder, MLOperand


@dataclass(frozen=True)
class Quantity:
    """An operand of a graph under construction, with the arithmetic of Python.

    The other side of an operation is a quantity or a number. A number becomes a constant of the operand's data type.

    Attributes:
        builder: the builder of the operand.
        operand: the operand, of floats.

    Example:
        >>> from webnn_wgpu.train import Quantity
        >>> half = 0.5 * Quantity(b, x)
        >>> graph = b.build({"y": (half * half + 1).sqrt().operand})
        >>> print(context.compute(graph, {"x": np.zeros((2, 3), np.float32)})["y"][0])
        [1. 1. 1.]
    """

    builder: MLGraphBuilder
    operand: MLOperand

    def __add__(self, other: Quantity | float) -> Quantity:
        return self._with(self.builder.add(self.operand, self._operand(other)))

    def __sub__(self, other: Quantity | float) -> Quantity:
        return self._with(self.builder.sub(self.operand, self._operand(other)))

    def __mul__(self, other: Quantity | float) -> Quantity:
        return self._with(self.builder.mul(self.operand, self._operand(other)))

    def __truediv__(self, other: Quantity | float) -> Quantity:
        return self._with(self.builder.div(self.operand, self._operand(other)))

    def __radd__(self, other: float) -> Quantity:
        return self + other

    def __rsub__(self, other: float) -> Quantity:
        return self._with(self.builder.sub(self._operand(other), self.operand))

    def __rmul__(self, other: float) -> Quantity:
        return self * other

    def __rtruediv__(self, other: float) -> Quantity:
        return self._with(self.builder.div(self._operand(other), self.operand))

    def sqrt(self) -> Quantity:
        """Return the square root of each element."""
        return self._with(self.builder.sqrt(self.operand))

    def abs(self) -> Quantity:
        """Return the absolute value of each element."""
        return self._with(self.builder.abs(self.operand))

    def sign(self) -> Quantity:
        """Return -1, 0 or 1 for each element."""
        return self._with(self.builder.sign(self.operand))

    def toward(self, target: Quantity, share: float) -> Quantity:
        """Return each element, moved toward another one: a moving mean in one kernel.

        Args:
            target: the other elements.
            share: the share of the distance.
        """
        return (target - self) * share + self

    def maximum(self, other: Quantity | float) -> Quantity:
        """Return the larger one of two elements.

        Args:
            other: the other elements, or a number.
        """
        return self._with(self.builder.max(self.operand, self._operand(other)))

    def clamp(self, low: float, high: float) -> Quantity:
        """Return each element, limited to a range.

        Args:
            low: the lower bound.
            high: the upper bound.
        """
        return self._with(self.builder.clamp(self.operand, min_value=low, max_value=high))

    def where(self, condition: MLOperand, other: Quantity) -> Quantity:
        """Return each element where a condition holds, and another one elsewhere.

        Args:
            condition: uint8 operand of a shape that broadcasts.
            other: the other elements.
        """
        return self._with(self.builder.where(condition, self.operand, other.operand))

    def vanishing(self) -> Quantity:
        """Return the sum of the products with 0: a scalar that is 0, or NaN if an element is not finite."""
        return self._with(self.builder.reduce_sum((self * 0.0).operand))

    def is_zero(self) -> MLOperand:
        """Return whether each element is 0."""
        return self.builder.equal(self.operand, self._operand(0.0))

    def sum_of_squares(self) -> Quantity:
        """Return the sum of the squares of all elements, a scalar."""
        return self._with(self.builder.reduce_sum_square(self.operand))

    def _with(self, operand: MLOperand) -> Quantity:
        return Quantity(self.builder, operand)

    def _operand(self, other: Quantity | float) -> MLOperand:
        if isinstance(other, Quantity):
            return other.operand
        return self.builder.constant(self.operand.data_type, other)
