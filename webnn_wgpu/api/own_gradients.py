"""Gradients that programs state themselves: `with_gradient` and `stop_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

from ..ops.interfaces.gradient import GradientCall, GradientRule, GradientTerm
from .arrays import failing
from .gradients import checked_operands
from .operand import MLOperand
from .operators._base import OperatorMethods

if TYPE_CHECKING:
    from ..ir.graph import Node
    from .builder import MLGraphBuilder

OwnRule: TypeAlias = Callable[..., "MLOperand | Sequence[MLOperand | None] | None"]


@dataclass(frozen=True)
class OwnGradient:
    """A gradient that a program states.

    Attributes:
        node: the node that the walk from outputs to operands sees in place of those that compute the results.
        rule: the gradient.
    """

    node: Node
    rule: GradientRule


class OwnGradientMethods(OperatorMethods):
    """with_gradient and stop_gradient."""

    def with_gradient(
        self,
        results: MLOperand | Sequence[MLOperand],
        operands: MLOperand | Sequence[MLOperand],
        gradient: OwnRule,
    ) -> list[MLOperand]:
        """Return results again, with a gradient that the program states.

        `gradients` does not look at the operators that compute the results.

        Args:
            results: operands of the builder.
            operands: float operands that the results depend on. The results have no gradient with respect to others.
            gradient: returns the gradient of each of `operands`, or None for zeros. Its arguments are the gradients of the
                results, with their data types and shapes.

        Returns:
            An operand of the same elements for each of `results`.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: an operand belongs to another builder or holds integers. `gradients` raises it if `gradient` returns an
                operand of another data type or shape.

        Example:
            >>> (rounded,) = b.with_gradient(b.round_even(x), x, lambda g: g)
            >>> (gradient,) = b.gradients(rounded, x)
            >>> print(context.compute(b.build({"gradient": gradient}), {})["gradient"])
            [[1. 1. 1.]
             [1. 1. 1.]]
        """
        builder = cast("MLGraphBuilder", self)
        builder._check_can_build("with_gradient")
        given = checked_operands(builder, results, "results", "with_gradient")
        wanted = checked_operands(builder, operands, "operands", "with_gradient")

        def rule(call: GradientCall) -> list[GradientTerm | None]:
            seeds = [
                term.filled(0.0) if found is None else found for term, found in zip(call.results, call.gradients, strict=True)
            ]
            found = gradient(*(MLOperand(builder, seed.value, seed.type) for seed in seeds))
            terms = list(found) if isinstance(found, Sequence) else [found]
            _check_gradients(builder, terms, wanted)
            return [None if term is None else GradientTerm(call.writer, term.value, term.type) for term in terms]

        return _stated(builder, given, wanted, rule)

    def stop_gradient(self, input: MLOperand) -> MLOperand:
        """Return the same elements, without a gradient: their operands count as constants.

        Args:
            input: an operand of the builder.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: the operand belongs to another builder, or holds integers.

        Example:
            >>> (gradient,) = b.gradients(b.mul(b.stop_gradient(x), x), x)
            >>> print(context.compute(b.build({"gradient": gradient}), {"x": [[1, 2, 3], [4, 5, 6]]})["gradient"])
            [[1. 2. 3.]
             [4. 5. 6.]]
        """
        builder = cast("MLGraphBuilder", self)
        builder._check_can_build("stop_gradient")
        (result,) = _stated(builder, checked_operands(builder, input, "input", "stop_gradient"), [], lambda call: [])
        return result


def _stated(
    builder: MLGraphBuilder, results: Sequence[MLOperand], operands: Sequence[MLOperand], rule: GradientRule
) -> list[MLOperand]:
    """Return results again, whose gradients are those of a rule."""
    again = [builder._operator("identity", [result], {}, "")[0] for result in results]
    *others, last = (node for node in builder._nodes[-len(again) :])
    seen = replace(last, inputs=tuple(operand.value for operand in operands), outputs=tuple(o.value for o in again))
    builder._own_gradients |= {node.id: None for node in others} | {last.id: OwnGradient(seen, rule)}
    return again


def _check_gradients(builder: MLGraphBuilder, found: Sequence[MLOperand | None], operands: Sequence[MLOperand]) -> None:
    fail = failing("with_gradient")
    if len(found) != len(operands):
        raise fail("gradient must return one item for each operand", got=f"{len(found)} items", allowed=f"{len(operands)}")
    for each, operand in zip(found, operands, strict=True):
        own = each is None or (isinstance(each, MLOperand) and each.builder is builder)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not own or (each is not None and each.type != operand.type):
            raise fail("gradient must return operands of the types of operands", got=repr(each), allowed=str(operand.type))
