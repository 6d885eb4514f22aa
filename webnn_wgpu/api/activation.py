"""`MLActivation`: an activation without its operand, to be applied to another operator's result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import MLTypeError, quoted
from ..ir.types import TensorType
from ..ops import operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .operand import MLOperand
    from .operators._base import OperatorMethods


class MLActivation:
    """An activation of the 2024 text: the result of a builder's activation method without an operand.

    Operators accept it as their option `activation` or `activations` and apply it to each element of their result. Any number
    of operators of its builder may use the same object.

    Attributes:
        builder: The builder that made it.
        kind: The builder method, such as "hard_sigmoid".
        options: That method's options.

    Example:
        >>> b.clamp(min_value=0, max_value=6)
        MLActivation(clamp, min_value=0, max_value=6)

    Spec: https://www.w3.org/TR/2024/CRD-webnn-20240415/#api-mlactivation
    """

    __slots__ = ("builder", "kind", "label", "options")

    def __init__(self, builder: OperatorMethods, kind: str, options: Mapping[str, Any], label: str = "") -> None:
        self.builder, self.kind, self.options, self.label = builder, kind, dict(options), label

    def apply(self, operand: MLOperand) -> MLOperand:
        """Add the activation of an operand to the builder's graph, and return its result.

        Args:
            operand: the operand, of the same builder.

        Returns:
            An operand with the data type and shape of `operand`.

        Raises:
            MLTypeError: the operator does not accept the operand, or the operand belongs to another builder.

        Example:
            >>> b.clamp(min_value=0, max_value=6).apply(x)
            MLOperand(float32[2, 3])
        """
        method = getattr(self.builder, self.kind)
        return method(operand, **self.options, label=self.label)

    def __repr__(self) -> str:
        options = "".join(f", {name}={quoted(value)}" for name, value in self.options.items())
        return f"MLActivation({self.kind}{options})"


def make_activation(builder: OperatorMethods, name: str, options: Mapping[str, Any], label: str) -> MLActivation:
    """Check the options of an activation operator and return the activation.

    Args:
        builder: The builder it belongs to.
        name: The specification's name of the operator.
        options: Its options. None means an absent option.
        label: The name of the activation in messages.

    Raises:
        MLTypeError: An option is not allowed, such as clamp bounds in the wrong order.
    """
    op = operator(name)
    # The rules for options do not depend on the operand. Every activation supports a matrix of floats.
    op.check([TensorType("float32", (1, 1))], options, label)
    return MLActivation(builder, op.python_name, {n: v for n, v in options.items() if v is not None}, label)


def require_activation(activation: object, builder: OperatorMethods, consumer: str, rank: int, label: str = "") -> MLActivation:
    """Return `activation` if an operator may apply it to its result.

    Args:
        activation: The value of the operator's option.
        builder: The operator's builder.
        consumer: The operator's Python name, for the message.
        rank: Rank of the result that the activation is applied to.
        label: The operator's label, for the message.

    Raises:
        MLTypeError: The value is no activation, belongs to another builder, or is softmax and the result is not 2-D.
    """
    if not isinstance(activation, MLActivation):
        raise MLTypeError(
            "activation must be an activation",
            operator=consumer,
            label=label,
            got=f"{quoted(activation)} ({type(activation).__name__})",
            allowed="MLActivation, as builder.relu() returns it",
        )
    if activation.builder is not builder:
        raise MLTypeError(
            "activation must belong to the builder it is used with", operator=consumer, label=label, got=repr(activation)
        )
    if activation.kind == "softmax" and rank != 2:
        raise MLTypeError(
            "softmax as an activation takes 2-D results only",
            operator=consumer,
            label=label,
            got=f"a result of rank {rank}",
            allowed="rank 2",
            hint="Call builder.softmax(operand, axis) on the result instead",
        )
    return activation
