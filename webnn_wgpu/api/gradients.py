"""`gradients`: reverse-mode differentiation of the graph under construction, by the gradient rules of its operators."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from ..core.data_types import FLOATS
from ..core.errors import NotSupportedError
from ..ir.graph import frozen_array
from ..ir.types import TensorType
from ..ops import operator
from ..ops.interfaces.gradient import GradientCall, GradientTerm, NoDerivative
from .arrays import failing
from .operand import MLOperand
from .operators._base import OperatorMethods

if TYPE_CHECKING:
    from ..ir.graph import Array, Attrs, Node
    from .builder import MLGraphBuilder

_NAME = "gradients"


class GradientMethods(OperatorMethods):
    """gradients."""

    def gradients(
        self,
        outputs: MLOperand | Sequence[MLOperand],
        operands: MLOperand | Sequence[MLOperand],
        seeds: MLOperand | Sequence[MLOperand | None] | None = None,
    ) -> list[MLOperand]:
        """Add the gradients of outputs with respect to operands to the graph.

        The gradients are operands like any other: a graph can return them, compute with them, and differentiate them again.

        Args:
            outputs: float operands, such as a loss.
            operands: float inputs, constants or results of operators, on which the outputs depend.
            seeds: the gradient of each output, with its data type and shape. None stands for ones, which makes the result the
                gradient of the sum of all elements of the outputs.

        Returns:
            For each of `operands`, an operand of the same data type and shape: the sum over all outputs and their elements of
            seed times derivative. Operands without influence on the outputs have gradients of zeros.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: an operand belongs to another builder or holds integers, or a seed does not fit its output.
            NotSupportedError: an operator between operands and outputs has no gradient. The message names the operator and
                the path to it.

        Example:
            >>> loss = b.reduce_sum(b.mul(x, x))
            >>> (gradient,) = b.gradients(loss, [x])
            >>> print(context.compute(b.build({"gradient": gradient}), {"x": [[1, 2, 3], [4, 5, 6]]})["gradient"])
            [[ 2.  4.  6.]
             [ 8. 10. 12.]]
        """
        builder = cast("MLGraphBuilder", self)
        builder._check_can_build(_NAME)
        results = checked_operands(builder, outputs, "outputs", _NAME)
        wanted = checked_operands(builder, operands, "operands", _NAME)
        given = _checked_seeds(builder, seeds, results)
        writer = _Differentiation(builder)
        terms = [writer.term(operand.value) for operand in results]
        ones = [term.filled(1.0) if seed is None else writer.term(seed.value) for term, seed in zip(terms, given, strict=True)]
        found = writer.differentiate(terms, [writer.term(operand.value) for operand in wanted], ones)
        # Inputs and constants cannot be outputs of a graph.
        return [writer.operand(g if builder._values[g.value].origins else g.apply("identity")) for g in found]


def checked_operands(
    builder: MLGraphBuilder, given: MLOperand | Sequence[MLOperand], name: str, method: str
) -> list[MLOperand]:
    """Return the operands of an argument of a method, which must hold floats and belong to the builder."""
    fail = failing(method)
    found = [given] if isinstance(given, MLOperand) else list(given)
    if not found:
        raise fail(f"{name} must not be empty", got=repr(given), allowed="operands of the builder")
    for operand in found:
        if not isinstance(operand, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail(f"{name} must be operands", got=type(operand).__name__)
        if operand.builder is not builder:
            raise fail(f"{name} must belong to this builder", got=repr(operand))
        if operand.data_type not in FLOATS:
            raise fail(f"{name} must hold floats", got=repr(operand), allowed=", ".join(FLOATS))
    return found


def _checked_seeds(
    builder: MLGraphBuilder, seeds: MLOperand | Sequence[MLOperand | None] | None, results: Sequence[MLOperand]
) -> list[MLOperand | None]:
    """Return a seed or None for each output."""
    fail = failing(_NAME)
    if seeds is None:
        return [None] * len(results)
    found: list[MLOperand | None] = [seeds] if isinstance(seeds, MLOperand) else list(seeds)
    if len(found) != len(results):
        raise fail("seeds must have one item for each output", got=f"{len(found)} seeds", allowed=f"{len(results)}")
    for seed, result in zip(found, results, strict=True):
        if seed is not None:
            checked_operands(builder, seed, "seeds", _NAME)
            if seed.type != result.type:
                raise fail("a seed must have the type of its output", got=str(seed.type), allowed=str(result.type))
    return found


class _Differentiation:
    """The writer of a builder's graph for gradient rules, and the walk from outputs back to operands."""

    def __init__(self, builder: MLGraphBuilder) -> None:
        self._builder = builder
        self._label = ""

    def term(self, value: int) -> GradientTerm:
        """Return a value of the graph as a term."""
        return GradientTerm(self, value, self._builder._values[value].type)

    def operand(self, term: GradientTerm) -> MLOperand:
        """Return a term as an operand."""
        return MLOperand(self._builder, term.value, term.type)

    def add(self, op: str, operands: Sequence[GradientTerm | None], attrs: Attrs) -> tuple[GradientTerm, ...]:
        """Add an operator under the label of the operator whose gradient it belongs to."""
        given = [None if term is None else self.operand(term) for term in operands]
        found = operator(op)
        if not found.variadic:
            given += [None] * (len(found.operands) - len(given))
        return tuple(self.term(result.value) for result in self._builder._operator(op, given, attrs, self._label))

    def constant(self, array: Array) -> GradientTerm:
        """Add a constant."""
        return self.term(self._builder._add_constant(TensorType(str(array.dtype), array.shape), frozen_array(array)).value)

    def differentiate(
        self, results: Sequence[GradientTerm], operands: Sequence[GradientTerm], gradients: Sequence[GradientTerm | None]
    ) -> Sequence[GradientTerm]:
        """Return the gradients of operands that results were computed from."""
        # A node follows the values that it reads, and the numbers of its results are greater.
        nodes = self._builder._nodes
        start = bisect_right(nodes, min(term.value for term in operands), key=_first_result) if operands else len(nodes)
        end = bisect_right(nodes, max(term.value for term in results), key=_first_result)
        path = [node for each in nodes[start:end] if (node := self._seen(each)) is not None]
        reached: dict[int, Node | None] = {term.value: None for term in operands}
        for node in path:
            if not reached.keys().isdisjoint(node.operands):
                for output in node.outputs:
                    reached.setdefault(output, node)
        sums: dict[int, GradientTerm] = {}
        for result, gradient in zip(results, gradients, strict=True):
            if gradient is not None:
                self._accumulate(sums, result.value, gradient)
        for node in reversed(path):
            if reached.keys().isdisjoint(node.operands) or sums.keys().isdisjoint(node.outputs):
                continue
            with self._labelled(node):
                for value, gradient in self._operand_gradients(node, sums, reached):
                    self._accumulate(sums, value, gradient)
        return [sums[term.value] if term.value in sums else term.filled(0.0) for term in operands]

    def _seen(self, node: Node) -> Node | None:
        """Return the node that stands for another one, if the program states the gradient of its result."""
        own = self._builder._own_gradients
        if node.id not in own:
            return node
        stated = own[node.id]
        return None if stated is None else stated.node

    def _operand_gradients(
        self, node: Node, sums: dict[int, GradientTerm], reached: dict[int, Node | None]
    ) -> Iterator[tuple[int, GradientTerm]]:
        """Yield the gradients of the operands of a node that lie on a path."""
        stated = self._builder._own_gradients.get(node.id)
        rule = stated.rule if stated else operator(node.op).gradient
        if rule is None:
            raise self._refusal(node, reached)
        call = GradientCall(
            writer=self,
            op=node.op,
            attrs=node.attrs,
            operands=tuple(None if value is None else self.term(value) for value in node.inputs),
            results=tuple(self.term(value) for value in node.outputs),
            gradients=tuple(sums.get(value) for value in node.outputs),
            wanted=tuple(value in reached for value in node.inputs),
        )
        for value, gradient in zip(node.inputs, rule(call), strict=True):
            if value is None or value not in reached or gradient is None:
                continue
            if isinstance(gradient, NoDerivative):
                raise self._refusal(reached[value] or node, reached)
            assert gradient.type == self._builder._values[value].type, f"{node.op}: {gradient.type}"
            yield value, gradient

    def _accumulate(self, sums: dict[int, GradientTerm], value: int, gradient: GradientTerm) -> None:
        sums[value] = sums[value] + gradient if value in sums else gradient

    @contextmanager
    def _labelled(self, node: Node) -> Generator[None]:
        """Label the operators of a gradient, and give them the place of the operator itself."""
        if self._label:
            # The node is a part of an operator whose gradient is under way.
            yield
            return
        place = self._builder._place
        self._label = f"gradient of {_name(node)}"
        self._builder._place = next((origin.site for origin in node.origins if origin.site is not None), place)
        try:
            yield
        finally:
            self._label, self._builder._place = "", place

    def _refusal(self, node: Node, reached: dict[int, Node | None]) -> NotSupportedError:
        """Return the error for a node without a gradient, with the path from an operand to it."""
        names = [_name(node)]
        value = next(value for value in node.operands if value in reached)
        while (maker := reached[value]) is not None:
            names.append(_name(maker))
            value = next(value for value in maker.operands if value in reached)
        name = next((name for name, own in self._builder._inputs if own == value), None)
        label = next((each.label for each in self._builder._nodes if value in each.outputs), "")
        names.append(name or label or f"{self._builder._values[value].type}")
        return NotSupportedError(
            "operators between operands and outputs must have gradients",
            operator=operator(node.op).python_name,
            label=node.label,
            got=f"the path {' -> '.join(reversed(names))}",
            hint="Ask for gradients of operands behind this operator, or state its gradient by builder.with_gradient",
        )


def _first_result(node: Node) -> int:
    return node.outputs[0]


def _name(node: Node) -> str:
    return node.label or operator(node.op).python_name
