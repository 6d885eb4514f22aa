"""Compiled functions and graphs of operations that were recorded on placeholders once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLContext, MLGraph, MLTypeError

from .engine import Engine
from .operators import ops
from .programs import build_graph
from .structure import Structure
from .tensor import Tensor, Variable, data_type_of
from .values import Array, Kind, UnknownValueError, Value


def placeholder(shape: Sequence[int], dtype: npt.DTypeLike = "float32", *, context: MLContext | None = None) -> Tensor:
    """Return a tensor without a value, for recording a `CompiledFunction`.

    Args:
        shape: the dimensions.
        dtype: the data type.
        context: the context. None is the default one.

    Example:
        >>> from webnn_wgpu import eager
        >>> x = eager.placeholder((2, 3), context=context)
        >>> eager.ops.transpose(x).shape, x.known
        ((3, 2), False)
    """
    return Tensor(Engine.of(context).placeholder(Kind.of(data_type_of(dtype), tuple(shape))))


class CompiledFunction:
    """Tensors that were recorded on placeholders, as a graph that computes them from other tensors.

    A call costs a dispatch: it records nothing. The graph reads and updates variables in place.

    Args:
        inputs: placeholders.
        outputs: tensors that were computed from them. Present values of other tensors that they read become constants.
        updates: by the number of an input, the new value of the variable that calls give for it.

    Raises:
        MLTypeError: an input that is not a placeholder, tensors of several contexts, or an update of another kind.
        UnknownValueError: an output depends on another placeholder.

    Example:
        >>> from webnn_wgpu import eager
        >>> x, total = (eager.placeholder((2,), context=context) for _ in range(2))
        >>> add = eager.CompiledFunction([x, total], [x * 10], updates={1: total + x})
        >>> variable = eager.Variable([0.0, 0.0], context=context)
        >>> for _ in range(3):
        ...     (tens,) = add(eager.tensor([1.0, 2.0], context=context), variable)
        >>> tens.tolist(), variable.tolist()
        ([10.0, 20.0], [3.0, 6.0])
    """

    def __init__(
        self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], updates: Mapping[int, Tensor] = MappingProxyType({})
    ) -> None:
        recorded = _Recorded.of(inputs, [*outputs, *updates.values()], operator="CompiledFunction")
        structure, self._engine = recorded.structure, recorded.engine
        given = [tensor.value for tensor in inputs]
        self._kinds = [value.kind for value in given]
        self._results = [tensor.value.kind for tensor in (*outputs, *updates.values())]
        self._updated = tuple(updates)
        for index, tensor in updates.items():
            if tensor.value.kind is not self._kinds[index]:
                raise _fail("a variable keeps its shape and data type", got=repr(tensor), allowed=str(self._kinds[index]))
        read = {slot for instruction in structure.instructions for slot in instruction.inputs}
        in_place = [index if structure.slots[given[index]] in read else None for index in self._updated]
        self._in_place = frozenset(in_place)
        aliases = [*[None] * len(outputs), *in_place]
        self._program = self._engine.compile(structure, recorded.slots, aliases, recorded.constants)

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """Queue a run, give variables their new values, and return the outputs. The call does not wait for the device.

        Args:
            tensors: a tensor of the same kind for each placeholder. Those with updates must be variables.

        Raises:
            MLTypeError: a tensor of another kind or context, or no variable where there is an update.
        """
        engine = self._engine
        if len(tensors) != len(self._kinds):
            raise _fail(
                "there must be a tensor for each placeholder", got=f"{len(tensors)} tensors", allowed=str(len(self._kinds))
            )
        # Recorded operations that read the variables come before their new values.
        engine.evaluate()
        leaves = [self._leaf(index, tensors) for index in range(len(tensors))]
        memory = engine.run(self._program, leaves, self._results)
        found: list[Tensor] = []
        for kind, held in zip(self._results, memory, strict=True):
            value = Value(engine, kind)
            value.held = held
            found.append(Tensor(value))
        count = len(found) - len(self._updated)
        for index, tensor in zip(self._updated, found[count:], strict=True):
            variable = tensors[index]
            assert isinstance(variable, Variable)
            variable.assign(tensor)
        return found[:count]

    def _leaf(self, index: int, tensors: Sequence[Tensor]) -> Value:
        """Return the value of an argument, with memory on the device that the run may take where it updates a variable."""
        tensor, kind = tensors[index], self._kinds[index]
        value = tensor.value
        if value.engine is not self._engine or value.kind is not kind:
            raise _fail("a tensor must be of its placeholder's kind and context", got=repr(tensor), allowed=str(kind))
        if index in self._updated and not isinstance(tensor, Variable):
            raise _fail("an argument with an update must be a variable", got=repr(tensor))
        if value.number is not None:
            value = self._engine.value_of(np.array(value.number, kind.numpy))
        if index in self._in_place:
            # Other tensors or a gradient may read the present value later.
            shared = value.handles > 1 or sum(each is tensor for each in tensors) > 1 or self._engine.taping
            if shared:
                copied = ops.identity(tensor)
                self._engine.ready(copied.value)
                return copied.value
        self._engine.ready(value)
        return value


def graph(inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> MLGraph:
    """Return tensors that were recorded on placeholders as a graph, for the exporters or a program of one's own.

    Args:
        inputs: placeholders by the names of the graph's inputs.
        outputs: tensors that were computed from them, by the names of the graph's outputs. Present values of other tensors that
            they read become constants.

    Raises:
        MLTypeError: no outputs, an input that is not a placeholder, or tensors of several contexts.
        UnknownValueError: an output depends on another placeholder.

    Example:
        >>> from webnn_wgpu import eager
        >>> x, weight = eager.placeholder((2,), context=context), eager.Variable([3.0, 4.0], context=context)
        >>> graph = eager.graph({"x": x}, {"y": x * weight})
        >>> graph
        MLGraph(x: float32[2] -> y: float32[2])
        >>> print(context.compute(graph, {"x": [1, 2]})["y"])
        [3. 8.]
    """
    if not outputs:
        raise _fail("a graph must have outputs", got="no outputs", operator="graph")
    # Pending values, such as initial weights, become constants rather than operators.
    for engine in {tensor.value.engine for tensor in (*inputs.values(), *outputs.values())}:
        engine.evaluate()
    recorded = _Recorded.of(list(inputs.values()), list(outputs.values()), operator="graph")
    structure = recorded.structure
    names = [*inputs, *(f"constant {index}" for index in recorded.constants)]
    leaves = {name: (structure.slots[leaf], leaf.kind) for name, leaf in zip(names, structure.leaves, strict=True)}
    fixed = {f"constant {index}": elements for index, elements in recorded.constants.items()}
    slots = dict(zip(outputs, recorded.slots, strict=True))
    return build_graph(recorded.engine.context, structure.instructions, leaves, fixed, slots)


@dataclass(frozen=True)
class _Recorded:
    """The operations that compute tensors from placeholders.

    Attributes:
        engine: the engine of all tensors.
        structure: the operations. Its first leaves are the placeholders.
        slots: the slots of the tensors.
        constants: by the number of a leaf, the present value of another tensor.
    """

    engine: Engine
    structure: Structure
    slots: Sequence[int]
    constants: Mapping[int, Array]

    @staticmethod
    def of(inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, operator: str) -> _Recorded:
        """Return the operations that compute outputs from inputs."""
        given, wanted = ([tensor.value for tensor in tensors] for tensors in (inputs, outputs))
        engine = (given or wanted)[0].engine
        if any(value.engine is not engine for value in (*given, *wanted)):
            raise _fail("tensors must belong to one context", got=repr(inputs), operator=operator)
        if any(not value.unknown or value.node is not None for value in given) or len(set(given)) < len(given):
            raise _fail("inputs must be different placeholders", got=repr(inputs), operator=operator)
        structure = Structure()
        for value in given:
            structure.visit(value)
        slots = [structure.visit(value) for value in wanted]
        constants: dict[int, Array] = {}
        for index, value in enumerate(structure.leaves[len(given) :], len(given)):
            if value.unknown:
                raise UnknownValueError(
                    "outputs must depend on the placeholders that are inputs", operator=operator, got=str(value.kind)
                )
            constants[index] = engine.read(value)
        return _Recorded(engine, structure, slots, constants)


def _fail(rule: str, *, got: str, allowed: str = "", operator: str = "CompiledFunction") -> MLTypeError:
    return MLTypeError(rule, operator=operator, got=got, allowed=allowed)
