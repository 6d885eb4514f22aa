"""The structure of recorded values: a key that equal programs share, and the instructions that a build follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webnn_wgpu import MLGraphBuilder, MLOperand

from .values import Node, Operation, Value

Slots: TypeAlias = tuple[int, ...]

LEAF, NUMBER = "leaf", "number"


@dataclass(slots=True)
class StatedGradient:
    """A gradient that the program states, as instructions.

    Attributes:
        seeds: the slots of the gradients of the results.
        instructions: the instructions.
        gradients: the slots of the gradients of the operands, None for zeros.
    """

    seeds: Slots
    instructions: Sequence[Instruction]
    gradients: Sequence[int | None]


@dataclass(slots=True)
class Instruction:
    """An operation on operands, by slots.

    Attributes:
        operation: the operation.
        inputs: the slots of its operands.
        base: the slot of its first result.
        stated: the gradient that the program states.
    """

    operation: Operation
    inputs: Slots
    base: int
    stated: StatedGradient | None = None


class Structure:
    """The operations that compute pending values from leaves: values that are known.

    Attributes:
        key: equal for equal structures.
        leaves: the leaves, in the order in which the operations read them.
        slots: the slot of each value.
        instructions: the operations in an order in which they can be added.
    """

    def __init__(self) -> None:
        self.key: list[object] = []
        self.leaves: list[Value] = []
        self.slots: dict[Value, int] = {}
        self.instructions: list[Instruction] = []
        self._bases: dict[Node, int] = {}
        self._next = 0

    def visit(self, value: Value) -> int:
        """Add the operations that compute a value, and return its slot."""
        slots, bases, key = self.slots, self._bases, self.key
        stack = [value]
        while stack:
            each = stack[-1]
            if each in slots:
                stack.pop()
                continue
            node = each.node
            if node is None or each.held is not None:
                stack.pop()
                self._leaf(each)
                continue
            base = bases.get(node)
            if base is None:
                missing = [operand for operand in node.inputs if operand not in slots]
                if missing:
                    missing.reverse()
                    stack.extend(missing)
                    continue
                inputs = tuple([slots[operand] for operand in node.inputs])
                base = bases[node] = self._next
                self._next += len(node.operation.results)
                key.append(node.operation)
                key.append(inputs)
                self.instructions.append(Instruction(node.operation, inputs, base))
            stack.pop()
            slots[each] = base + each.index
        return slots[value]

    def _leaf(self, value: Value) -> None:
        self.slots[value] = self._next
        self._next += 1
        self.leaves.append(value)
        self.key.append(LEAF if value.number is None else NUMBER)


def emit(builder: MLGraphBuilder, instructions: Sequence[Instruction], operands: dict[int, MLOperand]) -> None:
    """Add instructions to a builder.

    Args:
        builder: the builder.
        instructions: the instructions.
        operands: the operands by slot, to which the results are added.
    """
    for each in instructions:
        inputs = [operands[slot] for slot in each.inputs]
        found = each.operation.emit(builder, *inputs)
        results = [found] if isinstance(found, MLOperand) else found
        if each.stated is not None:
            results = _with_gradient(builder, results, inputs, each.stated, operands)
        for offset, operand in enumerate(results):
            operands[each.base + offset] = operand


def _with_gradient(
    builder: MLGraphBuilder,
    results: Sequence[MLOperand],
    inputs: Sequence[MLOperand],
    stated: StatedGradient,
    operands: Mapping[int, MLOperand],
) -> Sequence[MLOperand]:
    """Return the results of an operation with the gradient that the program states."""
    # The first inputs are the results themselves.
    wanted = inputs[len(results) :]

    def gradient(*seeds: MLOperand) -> list[MLOperand | None]:
        inner = {**operands, **dict(zip(stated.seeds, seeds, strict=True))}
        emit(builder, stated.instructions, inner)
        return [None if slot is None else inner[slot] for slot in stated.gradients]

    return builder.with_gradient(results, wanted, gradient)
