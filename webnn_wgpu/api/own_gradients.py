"""Gradients that programs state themselves, and values that the backward pass computes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast, overload

from ..core.data_types import FLOATS
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
    """with_gradient, stop_gradient and recompute."""

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
            found = gradient(*_seeds(builder, call))
            terms = list(found) if isinstance(found, Sequence) else [found]
            _check_gradients(builder, terms, wanted)
            return [None if term is None else GradientTerm(call.writer, term.value, term.type) for term in terms]

        return _stated(builder, given, wanted, rule)

    @overload
    def recompute(self, compute: Callable[[], MLOperand]) -> MLOperand: ...

    @overload
    def recompute(self, compute: Callable[[], Sequence[MLOperand]]) -> list[MLOperand]: ...

    def recompute(self, compute: Callable[[], MLOperand | Sequence[MLOperand]]) -> MLOperand | list[MLOperand]:
        """Add a part of the graph whose inner values `gradients` computes again, so that no memory holds them until then.

        Only the results and the operands from outside stay in memory. A network of equal layers, each of them such a part,
        takes the memory of one layer and of the results of all. In return, a training computes the forward pass twice.

        Args:
            compute: adds the operators of the part, and returns its results: float operands. `gradients` calls it again, so it
                must add the same operators each time, and no inputs.

        Returns:
            The result or the list of results.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: `compute` returned no float operands of this builder.

        Example:
            >>> y = b.recompute(lambda: b.tanh(b.mul(x, x)))
            >>> graph = b.build({"gradient": b.gradients(y, x)[0]})
            >>> print(context.compute(graph, {"x": [[0, 1, 2], [0, 0, 0]]})["gradient"].round(2))
            [[0.   0.84 0.01]
             [0.   0.   0.  ]]
        """
        builder = cast("MLGraphBuilder", self)
        builder._check_can_build("recompute")
        start = len(builder._nodes)
        given = compute()
        results = checked_operands(builder, given, "results", "recompute")
        operands = _read_from_outside(builder, start)

        def rule(call: GradientCall) -> list[GradientTerm | None]:
            again = _again(builder, compute)
            wanted = [operand for operand, needs in zip(operands, call.wanted, strict=True) if needs]
            seeds = _seeds(builder, call)
            found = iter(builder.gradients(again, wanted, seeds))
            taken = [next(found) if needs else None for needs in call.wanted]
            return [None if g is None else GradientTerm(call.writer, g.value, g.type) for g in taken]

        stated = _stated(builder, results, operands, rule)
        return stated[0] if isinstance(given, MLOperand) else stated

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

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        withGradient = with_gradient
        stopGradient = stop_gradient


def _seeds(builder: MLGraphBuilder, call: GradientCall) -> list[MLOperand]:
    """Return the gradients of the results, zeros for those without one."""
    terms = [term.filled(0.0) if found is None else found for term, found in zip(call.results, call.gradients, strict=True)]
    return [MLOperand(builder, term.value, term.type) for term in terms]


def _read_from_outside(builder: MLGraphBuilder, start: int) -> list[MLOperand]:
    """Return the float operands that nodes from `start` on read and do not compute."""
    nodes = builder._nodes[start:]
    made = {value for node in nodes for value in node.outputs}
    read = dict.fromkeys(value for node in nodes for value in node.operands)
    values = [builder._values[value] for value in read if value not in made]
    return [MLOperand(builder, value.id, value.type) for value in values if value.type.data_type in FLOATS]


def _again(builder: MLGraphBuilder, compute: Callable[[], MLOperand | Sequence[MLOperand]]) -> MLOperand | Sequence[MLOperand]:
    """Return the results of nodes that are not merged with equal ones of before."""
    outer = builder._block
    builder._blocks += 1
    builder._block = builder._blocks
    try:
        return compute()
    finally:
        builder._block = outer


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
