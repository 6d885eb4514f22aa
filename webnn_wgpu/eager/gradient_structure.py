"""The structure of a gradient: the operations between sources and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from webnn_wgpu import MLGraphBuilder, MLOperand

from .structure import LEAF, Instruction, StatedGradient, emit
from .values import Emit, Node, Value

_DEEPEST = 2
"""How many gradients that programs state can lie within each other, so that one may use itself."""

STATED = "stated"


class GradientStructure:
    """The operations by which values depend on other values.

    Values that do not depend on them are leaves, whether they are known or not.

    Args:
        sources: the values to differentiate with respect to.

    Attributes:
        key: equal for equal structures.
        leaves: the values that the operations read.
        slots: the slot of each value.
        instructions: the operations in an order in which they can be added.
    """

    def __init__(self, sources: Sequence[Value]) -> None:
        self.key: list[object] = []
        self.leaves: list[Value] = []
        self.slots: dict[Value, int] = {}
        self.instructions: list[Instruction] = []
        self._depends: dict[Value, bool] = dict.fromkeys(sources, True)
        self._bases: dict[Node, int | None] = {}
        self._next = 0
        for source in sources:
            self.slot(source)

    def used_slots(self) -> set[int]:
        """Return the slots that operations read."""
        used: set[int] = set()
        rest = list(self.instructions)
        while rest:
            each = rest.pop()
            used.update(each.inputs)
            if each.stated is not None:
                rest.extend(each.stated.instructions)
                used.update(slot for slot in each.stated.gradients if slot is not None)
        return used

    def slot(self, value: Value) -> int:
        """Return the slot of a value that was visited. A value that depends on no source becomes a leaf."""
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = self._next
            self._next += 1
            self.leaves.append(value)
            self.key.append(LEAF)
            self.key.append(value.kind)
        return found

    def visit(self, values: Sequence[Value], depth: int = 0) -> None:
        """Add the operations by which values depend on the sources."""
        depends, bases = self._depends, self._bases
        stack = list(reversed(values))
        while stack:
            value = stack[-1]
            if value in depends:
                stack.pop()
                continue
            node = value.node
            if node is None:
                depends[value] = False
                stack.pop()
                continue
            if node not in bases:
                missing = [operand for operand in node.inputs if operand not in depends]
                if missing:
                    missing.reverse()
                    stack.extend(missing)
                    continue
                bases[node] = self._add(node, depth) if any([depends[operand] for operand in node.inputs]) else None
            stack.pop()
            base = bases[node]
            depends[value] = base is not None
            if base is not None:
                self.slots[value] = base + value.index

    def _add(self, node: Node, depth: int) -> int:
        inputs = tuple([self.slot(operand) for operand in node.inputs])
        base = self._next
        self._next += len(node.operation.results)
        self.key.append(node.operation)
        self.key.append(inputs)
        stated = self._stated(node, base, depth) if node.gradient is not None and depth < _DEEPEST else None
        self.instructions.append(Instruction(node.operation, inputs, base, stated))
        return base

    def _stated(self, node: Node, base: int, depth: int) -> StatedGradient:
        """Record the gradient that the program states for a node, and return it as instructions."""
        assert node.gradient is not None
        engine = node.inputs[0].engine
        seeds = [engine.placeholder(kind) for kind in node.operation.results]
        for seed in seeds:
            self._depends[seed] = True
            self.slots[seed] = self._next
            self._next += 1
        given = node.gradient(*seeds)
        outer, self.instructions = self.instructions, []
        marks = [(known, len(known)) for known in (self.slots, self._depends, self._bases)]
        leaves = len(self.leaves)
        self.key.append(STATED)
        self.visit([value for value in given if value is not None], depth + 1)
        gradients = [None if value is None else self.slot(value) for value in given]
        self.key.append(tuple(gradients))
        inner, self.instructions = self.instructions, outer
        # The operations within are added when the gradient is, and nowhere else. Leaves are there from the start.
        found = {leaf: self.slots[leaf] for leaf in self.leaves[leaves:]}
        for known, size in marks:
            while len(known) > size:
                known.popitem()
        self.slots |= found
        return StatedGradient(tuple([self.slots[seed] for seed in seeds]), inner, gradients)


def gradient_emitter(structure: GradientStructure, used: set[int], ends: Sequence[int], starts: Sequence[int]) -> Emit:
    """Return a function that adds gradients to a builder, given operands for used leaves and the gradients of the outputs.

    Args:
        structure: the operations.
        used: the slots that they read.
        ends: the slots of the outputs.
        starts: the slots of the sources.
    """
    leaves = [slot for leaf in structure.leaves if (slot := structure.slots[leaf]) in used]
    instructions = structure.instructions

    def add(builder: MLGraphBuilder, *given: MLOperand) -> list[MLOperand]:
        operands = dict(zip(leaves, given[: len(leaves)], strict=True))
        emit(builder, instructions, operands)
        seeds = given[len(leaves) :]
        return builder.gradients([operands[slot] for slot in ends], [operands[slot] for slot in starts], seeds or None)

    return add
