"""Compiled programs: graphs of recorded operations that run again for every equal structure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from webnn_wgpu import MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor

from .pool import Held, Pool
from .structure import Instruction, Structure, emit
from .values import Array, Kind, Number, Value


class Program:
    """The graph of a structure.

    Numbers on the host are constants of the graph until they change between runs. Then they become inputs, and the program
    compiles once more. A learning rate that follows a schedule therefore costs two compilations, not one for each step.

    Args:
        context: the context.
        structure: the structure.
        outputs: the slots of the values to compute.
        aliases: for each output, the number of the leaf whose memory it takes, or None.
        constants: by the number of a leaf, elements that are part of the graph.

    Attributes:
        aliases: for each output, the number of the leaf whose memory it takes, or None.
        builds: how many times the program was compiled.
    """

    def __init__(
        self,
        context: MLContext,
        structure: Structure,
        outputs: Sequence[int],
        aliases: Sequence[int | None],
        constants: Mapping[int, Array] = MappingProxyType({}),
    ) -> None:
        self._context, self._outputs, self.aliases, self._constants = context, outputs, aliases, constants
        self._instructions: Sequence[Instruction] = structure.instructions
        self._leaves = [(structure.slots[leaf], leaf.kind) for leaf in structure.leaves]
        self._numbers: dict[int, Number] = {
            index: leaf.number
            for index, leaf in enumerate(structure.leaves)
            if leaf.number is not None and index not in constants
        }
        self._changing: dict[int, MLTensor] = {}
        self.builds = 0
        self.graph = self._build()

    @property
    def held_bytes(self) -> int:
        """The size of the memory of results in between."""
        return 0 if self.graph.plan is None else self.graph.plan.slot_bytes

    def run(self, leaves: Sequence[Value], kinds: Sequence[Kind], pool: Pool) -> list[Held]:
        """Queue a run, and return the memory of the results.

        Args:
            leaves: the values of the leaves.
            kinds: the kinds of the outputs.
            pool: the memory.
        """
        changed = [
            index
            for index, number in self._numbers.items()
            if not _same(number, leaves[index].number)  # as constants
        ]
        if changed:
            before = self.graph
            for index in changed:
                del self._numbers[index]
                kind = self._leaves[index][1]
                self._changing[index] = self._context.create_tensor(kind.shape, kind.stored, writable=True)
            self.graph = self._build()
            before.destroy()
        inputs: dict[str, MLTensor] = {}
        for name in self.graph.inputs:
            index = int(name)
            leaf = leaves[index]
            number = leaf.number
            if number is not None:
                tensor = self._changing[index]
                self._context.write_tensor(tensor, [number])
            else:
                assert leaf.held is not None
                tensor = leaf.held.tensor
            inputs[name] = tensor
        results: list[Held] = []
        for kind, alias in zip(kinds, self.aliases, strict=True):
            held = pool.take(kind) if alias is None else leaves[alias].held
            assert held is not None
            results.append(held)
        outputs = {_output(number): held.tensor for number, held in enumerate(results)}
        self._context.dispatch(self.graph, inputs, outputs)
        return results

    def destroy(self) -> None:
        """Free the graph."""
        self.graph.destroy()
        for tensor in self._changing.values():
            tensor.destroy()

    def _build(self) -> MLGraph:
        self.builds += 1
        return build_graph(
            self._context,
            self._instructions,
            {str(index): leaf for index, leaf in enumerate(self._leaves)},
            {str(index): fixed for index, fixed in {**self._numbers, **self._constants}.items()},
            {_output(number): slot for number, slot in enumerate(self._outputs)},
            {_output(number): str(index) for number, index in enumerate(self.aliases) if index is not None},
        )


def build_graph(
    context: MLContext,
    instructions: Sequence[Instruction],
    leaves: Mapping[str, tuple[int, Kind]],
    fixed: Mapping[str, Number | Array],
    outputs: Mapping[str, int],
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> MLGraph:
    """Build the graph of instructions.

    Args:
        context: the context.
        instructions: the instructions.
        leaves: the slot and kind of each leaf by name.
        fixed: the elements of the leaves that are constants. The other leaves are inputs of the graph.
        outputs: the slots of the outputs by name.
        aliases: by the name of an output, the input whose memory it takes.
    """
    builder = MLGraphBuilder(context)
    operands: dict[int, MLOperand] = {}
    for name, (slot, kind) in leaves.items():
        if name in fixed:
            operands[slot] = constant(builder, kind, fixed[name])
        else:
            operands[slot] = builder.input(name, kind.shape, kind.stored)
    known = {operand.value for operand in operands.values()}
    emit(builder, instructions, operands)
    found: dict[str, MLOperand] = {}
    seen: set[int] = set()
    for name, slot in outputs.items():
        operand = operands[slot]
        # Inputs cannot be outputs of a graph, and an output with an alias has one name.
        if operand.value in known or operand.value in seen:
            operand = builder.identity(operand)
        seen.add(operand.value)
        found[name] = operand
    return builder.build(found, aliases=aliases)


def constant(builder: MLGraphBuilder, kind: Kind, elements: Number | Array) -> MLOperand:
    """Return elements as a constant."""
    return builder.constant(np.array(elements, kind.numpy).astype(kind.stored))


def _output(number: int) -> str:
    return f"result {number}"


def _same(a: Number, b: Number | None) -> bool:
    """Return whether two numbers are the same constant."""
    assert b is not None
    return a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))
