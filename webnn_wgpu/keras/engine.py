"""Values that the builder describes: recorded operators, compiled by structure when a value is asked for.

A node keeps a call of the builder and its operands. The shapes of its results come from a builder that never builds. A program
is the nodes between stored values and wanted ones. Programs of one structure share one compiled graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import webnn_wgpu as wn

Array: TypeAlias = NDArray[Any]
Call: TypeAlias = Callable[..., Any]
"""Adds operators: takes a builder and the operands, returns an operand or a sequence of them."""

_DEEP = 4000
"""Recorded nodes after which a value is computed, so that a loop over steps cannot grow without end."""


@dataclass(slots=True)
class Compilation:
    """Counts of the backend's work.

    Attributes:
        graphs: graphs that were compiled.
        dispatches: graphs that were run.
    """

    graphs: int = 0
    dispatches: int = 0


compilation = Compilation()
"""The counts of this process."""

_contexts: list[wn.MLContext] = []
_graphs: dict[Hashable, wn.MLGraph] = {}
_scratch: list[Any] = []


def context() -> wn.MLContext:
    """Return the context that Keras computes on: `webnn_wgpu.ml.create_context()` makes it, unless `use` gave one."""
    if not _contexts:
        _contexts.append(wn.ml.create_context())
    return _contexts[0]


def use(chosen: wn.MLContext) -> None:
    """Compute on a context of one's own from now on. Tensors and variables move to it when they are next used.

    Args:
        chosen: the context.
    """
    if not _contexts or _contexts[0] is not chosen:
        _contexts[:] = [chosen]
        _graphs.clear()
        _scratch.clear()


class UnknownValueError(RuntimeError):
    """A value was asked for while operators are only recorded: its number does not exist yet."""


class Node:
    """A recorded call of the builder. It may name values beyond those that it reads, as gradients do."""

    __slots__ = ("call", "depth", "inputs", "key", "read")

    def __init__(self, key: Hashable, call: Call, inputs: tuple[Value, ...], read: int) -> None:
        self.key, self.call, self.inputs, self.read = key, call, inputs, read
        self.depth = 1 + max((value.node.depth for value in inputs if value.node is not None), default=0)


class Value:
    """An array of a WebNN data type: recorded, on the host, or on the device.

    Attributes:
        shape: its shape.
        data_type: its WebNN data type.
        node: the call that computes it. None once it is stored.
        index: its place among the results of the node.
        unknown: whether it depends on a value without numbers.
    """

    __slots__ = ("array", "data_type", "home", "index", "node", "shape", "tensor", "unknown")

    def __init__(self, shape: tuple[int, ...], data_type: str, node: Node | None = None, index: int = 0) -> None:
        self.shape, self.data_type, self.node, self.index = shape, data_type, node, index
        self.array: Array | None = None
        self.tensor: wn.MLTensor | None = None
        self.home: wn.MLContext | None = None
        self.unknown = node is None or any(value.unknown for value in node.inputs)

    @classmethod
    def of(cls, array: Array) -> Value:
        """Return an array of a WebNN data type as a value."""
        found = cls(array.shape, str(array.dtype))
        found.array, found.unknown = array, False
        return found

    @classmethod
    def stored(cls, tensor: wn.MLTensor) -> Value:
        """Return a tensor of the device as a value."""
        found = cls(tuple(tensor.shape), str(tensor.data_type))
        found.keep(tensor)
        found.unknown = False
        return found

    def keep(self, tensor: wn.MLTensor) -> None:
        """Store the numbers, which a tensor of the present context has."""
        self.tensor, self.home, self.node = tensor, context(), None

    def numpy(self) -> Array:
        """Return the numbers, computing them if they are not there."""
        if self.array is None:
            if self.tensor is None:
                evaluate([self])
            assert self.tensor is not None
            assert self.home is not None
            self.array = np.asarray(self.home.read_tensor(self.tensor))
        return self.array

    def on_device(self) -> wn.MLTensor:
        """Return the numbers as a tensor of the device."""
        if self.tensor is None and self.array is None:
            evaluate([self])
        if self.tensor is None or self.home is not context():
            array = self.numpy()
            tensor = context().create_tensor(self.shape, self.data_type, readable=True, writable=True)
            context().write_tensor(tensor, array)
            self.keep(tensor)
        assert self.tensor is not None
        return self.tensor


_Results: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]
_inferred: dict[Hashable, _Results] = {}


def _infer(key: Hashable, call: Call, inputs: tuple[Value, ...]) -> _Results:
    """Return shapes and data types of a call's results."""
    described = (key, tuple((value.data_type, value.shape) for value in inputs))
    found = _inferred.get(described)
    if found is None:
        if not _scratch or _scratch[1] > 500:
            _scratch[:] = [wn.MLGraphBuilder(context()), 0]
        builder = _scratch[0]
        operands: list[Any] = []
        for value in inputs:
            _scratch[1] += 1
            operands.append(builder.input(f"x{_scratch[1]}", value.shape, value.data_type))
        results = call(builder, *operands)
        results = results if isinstance(results, list | tuple) else (results,)
        found = _inferred[described] = tuple((tuple(each.shape), str(each.data_type)) for each in results)
    return found


def record(key: Hashable, call: Call, *inputs: Value) -> tuple[Value, ...]:
    """Record a call of the builder.

    Args:
        key: names the call: two calls of one key add the same operators.
        call: adds them.
        inputs: the operands.
    """
    return _recorded(key, call, inputs, len(inputs), _infer(key, call, inputs))


def _recorded(key: Hashable, call: Call, inputs: tuple[Value, ...], read: int, results: _Results) -> tuple[Value, ...]:
    node = Node(key, call, inputs, read)
    if node.depth > _DEEP and not any(value.unknown for value in inputs):
        evaluate(inputs)
        node.depth = 1
    return tuple(Value(shape, data_type, node, index) for index, (shape, data_type) in enumerate(results))


def gradients(output: Value, inputs: Sequence[Value], seed: Value | None = None) -> tuple[Value, ...]:
    """Record the gradients of a value by others, which the value must have been computed from."""
    given = (output, *inputs) if seed is None else (output, seed, *inputs)
    seeded = seed is not None

    def call(builder: Any, found: Any, *rest: Any) -> Any:
        return builder.gradients(found, list(rest[seeded:]), seeds=list(rest[:1]) if seeded else None)

    results = tuple((value.shape, value.data_type) for value in inputs)
    return _recorded(("gradients", seeded), call, given, 1 + seeded, results)


def with_gradient(
    results: Sequence[Value], sources: Sequence[Value], seeds: Sequence[Value], found: Sequence[Value]
) -> tuple[Value, ...]:
    """Return results again, with gradients by their sources that a program states.

    Args:
        results: the values.
        sources: the values that they were computed from.
        seeds: values without numbers, which stand for the gradients of the results.
        found: the gradients by the sources, computed from the seeds.
    """
    program = Program(found)
    others = [leaf for leaf in program.leaves if all(leaf is not seed for seed in seeds)]
    places = {id(seed): number for number, seed in enumerate(seeds)}
    numbers = {id(leaf): number for number, leaf in enumerate(others)}
    count, wanted = len(results), len(sources)

    def call(builder: Any, *operands: Any) -> Any:
        def gradient(*given: Any) -> list[Any]:
            def leaf(_: Any, __: int, value: Value) -> Any:
                place = places.get(id(value))
                return operands[count + wanted + numbers[id(value)]] if place is None else given[place]

            return program.describe(builder, leaf)

        return builder.with_gradient(list(operands[:count]), list(operands[count : count + wanted]), gradient)

    roles = tuple(places.get(id(leaf), -1) for leaf in program.leaves)
    given = (*results, *sources, *others)
    types = tuple((value.shape, value.data_type) for value in results)
    return _recorded(("with_gradient", program.structure, roles, count), call, given, count, types)


# Programs ---------------------------------------------------------------------------------------------------------


class Program:
    """The nodes between stored values and wanted ones.

    Attributes:
        leaves: stored values, in the order of their first use.
        nodes: nodes, each after those it reads.
        structure: equal for programs that one graph computes.
    """

    def __init__(self, wanted: Sequence[Value]) -> None:
        self.leaves: list[Value] = []
        self.nodes: list[Node] = []
        self._places: dict[int, tuple[int, int]] = {}
        for value in wanted:
            self._visit(value)
        self.wanted = tuple(wanted)
        places = tuple(tuple(self._place(value) for value in node.inputs) for node in self.nodes)
        leaves = tuple((value.data_type, value.shape) for value in self.leaves)
        self.structure = (leaves, tuple(node.key for node in self.nodes), places, tuple(self._place(value) for value in wanted))

    def _place(self, value: Value) -> tuple[int, int]:
        if value.node is None:
            return self._places[id(value)]
        return self._places[id(value.node)][0], value.index

    def _visit(self, wanted: Value) -> None:
        stack: list[tuple[Value, bool]] = [(wanted, False)]
        while stack:
            value, ready = stack.pop()
            node = value.node
            identity = id(value if node is None else node)
            if identity in self._places:
                continue
            if node is None:
                self._places[identity] = (-1 - len(self.leaves), 0)
                self.leaves.append(value)
            elif ready:
                self._places[identity] = (len(self.nodes), 0)
                self.nodes.append(node)
            else:
                stack.append((value, True))
                stack.extend((each, False) for each in reversed(node.inputs))

    def read(self) -> set[int]:
        """Return the identities of the leaves whose numbers the program reads."""
        found: set[int] = set()
        stack = list(self.wanted)
        while stack:
            value = stack.pop()
            identity = id(value if value.node is None else value.node)
            if identity not in found:
                found.add(identity)
                stack.extend(() if value.node is None else value.node.inputs[: value.node.read])
        return {id(leaf) for leaf in self.leaves if id(leaf) in found}

    def describe(self, builder: Any, given: Callable[[Any, int, Value], Any]) -> list[Any]:
        """Add the program's operators to a builder, where `given` makes the operand of a leaf. Return the wanted operands."""
        leaves = [given(builder, number, value) for number, value in enumerate(self.leaves)]
        found: list[Any] = []

        def operand(place: tuple[int, int]) -> Any:
            number, index = place
            return leaves[-1 - number] if number < 0 else found[number][index]

        for node in self.nodes:
            results = node.call(builder, *(operand(self._place(value)) for value in node.inputs))
            found.append(results if isinstance(results, list | tuple) else (results,))
        return [operand(self._place(value)) for value in self.wanted]


def build(outputs: dict[str, Any], builder: Any, **options: Any) -> wn.MLGraph:
    """Compile a graph and count it. An output that is an input, a constant or another output passes through a copy."""
    compilation.graphs += 1
    return builder.build({name: builder.identity(operand) for name, operand in outputs.items()}, **options)


_retained: list[Value] | None = None


@contextlib.contextmanager
def tape() -> Generator[None]:
    """Within, computed values keep the calls that gave them, so that gradients can follow them."""
    global _retained  # noqa: PLW0603 - the tape of this process
    before, _retained = _retained, []
    try:
        yield
    finally:
        for value in _retained:
            value.node = None
        _retained = before


def evaluate(values: Iterable[Value]) -> None:
    """Compute values, all in one graph, and store them on the device."""
    wanted = list({id(value): value for value in values if value.array is None and value.tensor is None}.values())
    if not wanted:
        return
    if any(value.unknown for value in wanted):
        raise UnknownValueError("the value of a tensor was asked for while a function is traced")
    program = Program(wanted)
    graph = _graphs.get(program.structure)
    if graph is None:
        builder = wn.MLGraphBuilder(context())
        operands = program.describe(builder, lambda b, number, leaf: b.input(f"x{number}", leaf.shape, leaf.data_type))
        graph = _graphs[program.structure] = build({f"y{number}": each for number, each in enumerate(operands)}, builder)
    inputs = {f"x{number}": leaf.on_device() for number, leaf in enumerate(program.leaves) if f"x{number}" in graph.inputs}
    outputs = {f"y{number}": context().create_tensor(v.shape, v.data_type, readable=True) for number, v in enumerate(wanted)}
    context().dispatch(graph, inputs, outputs)
    compilation.dispatches += 1
    for value, tensor in zip(wanted, outputs.values(), strict=True):
        node = value.node
        value.keep(tensor)
        if _retained is not None and node is not None:
            value.node = node
            _retained.append(value)
