"""Runs a subgraph of a model: the main one, or that of a loop.

A program is compiled for the shapes of its inputs, in stages. A stage is one WebNN graph, followed by the nodes that only the
host can run. The shapes of the next stage may depend on the results so far. Most models are one stage.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from webnn_wgpu import MLContext, MLGraph, MLTensor
from webnn_wgpu.api.progress import Progress

from ..common.calls import OnHost
from ..common.held import Array, DType
from ..description import Placed
from ..timing import compute, span
from .call import NodeFacts
from .lowering import CONTROL, TfliteLowering
from .module import DEEPEST, TfliteModule
from .operators import handler
from .stages import Feed, Lowered, resolve
from .state import Variables
from .tensors import (
    Shape,
    TfliteGraph,
    TfliteNode,
    TfliteTensor,
    TfliteValue,
    ValueNeeded,
    VariableKey,
    decoded,
    encoded,
    held_shape,
    held_type,
)

MOST_ITERATIONS = 1 << 20
"""The number of iterations from which a loop is refused as endless."""

MOST_STAGES = 64
"""The maximum number of stages of a program."""

Environment = dict[TfliteValue, Array]


@dataclass(kw_only=True)
class StageOfProgram:
    """A compiled stage: run the graph, then the host's nodes. `then` has the nodes that are left."""

    lowered: Lowered
    graph: MLGraph | None
    outputs: list[tuple[str, TfliteValue, DType]]
    writes: list[tuple[str, VariableKey, TfliteTensor]]
    then: Remaining | None
    shapes: dict[TfliteValue, Shape]
    tensors: dict[str, MLTensor] = field(default_factory=dict[str, MLTensor])


@dataclass(kw_only=True)
class Remaining:
    """The nodes that are left of a program, and the stages compiled for them, by shapes."""

    nodes: Sequence[TfliteNode]
    aliases: Mapping[TfliteValue, TfliteValue]
    handles: Mapping[TfliteValue, VariableKey]
    known: Mapping[TfliteValue, Array]
    reads: tuple[TfliteValue, ...]
    depth: int = 0
    stages: OrderedDict[tuple[object, ...], list[StageOfProgram]] = field(
        default_factory=OrderedDict[tuple[object, ...], list["StageOfProgram"]]
    )


class TfliteProgram:
    """A subgraph that can be run.

    Args:
        module: the model.
        context: where it runs.
        variables: the variables of the model.
        graph: the use of the subgraph.
        capacity: number of sets of shapes, for each stage, whose graphs are kept.
        depth: the number of programs that run this one.
    """

    def __init__(
        self,
        module: TfliteModule,
        context: MLContext,
        variables: Variables,
        graph: TfliteGraph,
        capacity: int = 8,
        depth: int = 0,
    ) -> None:
        self.module, self.context, self.variables = module, context, variables
        self.inputs, self.outputs = tuple(graph.inputs), tuple(graph.outputs)
        self.values = tuple(graph.values)
        self.capacity, self._depth = capacity, depth
        self.compiled = 0
        """How many WebNN graphs were compiled so far."""
        self.staged = 0
        """How many stages were: those without a graph too."""
        self._start = Remaining(nodes=graph.nodes, aliases={}, handles={}, known={}, reads=tuple(dict.fromkeys(self.inputs)))
        self._bodies: dict[tuple[TfliteNode, int], TfliteProgram] = {}

    @property
    def nodes(self) -> Sequence[TfliteNode]:
        """The nodes of the subgraph, in the order of execution."""
        return self._start.nodes

    # running --------------------------------------------------------------------------------------------------------

    def run(self, feeds: Mapping[TfliteValue, Array], progress: Progress | None = None) -> list[Array]:
        """Run the subgraph.

        Args:
            feeds: an array for each of `inputs`, of its logical type.
            progress: as for `load`.
        """
        environment: Environment = dict(feeds)
        state: Remaining | None = self._start
        aliases: Mapping[TfliteValue, TfliteValue] = {}
        while state is not None:
            stage = self._stage(state, environment, progress)
            aliases = stage.lowered.aliases
            environment.update(stage.lowered.known)
            if stage.graph is not None:
                self._compute(stage, stage.graph, environment)
            for node in stage.lowered.host:
                with span("host", f"{node.record.name} '{node.label}'"):
                    self._on_host(node, environment, aliases)
            state = stage.then
        return [self._look_up(v, environment, aliases) for v in self.outputs]

    def _compute(self, stage: StageOfProgram, graph: MLGraph, environment: Environment) -> None:
        """Run a stage's graph. Variables stay on the device."""
        lowered = stage.lowered
        given = {name: encoded(environment[value]) for name, value in lowered.inputs.items()}
        if not lowered.reads and not stage.writes:
            results = compute(self.context, graph, given)
            for name, value, dtype in stage.outputs:
                environment[value] = decoded(np.asarray(results[name]), dtype)
            return
        with span("submit", f"{graph.operation_count} operators"):
            for name, array in given.items():
                self.context.write_tensor(stage.tensors[name], array)
            inputs = {name: stage.tensors[name] for name in given}
            for name, key in lowered.reads.items():
                inputs[name] = self.variables.tensor(key, *lowered.types[key], lowered.quantizations.get(key))
            outputs = {name: stage.tensors[name] for name, _, _ in stage.outputs}
            new = {key: self.variables.target(key, t.shape, t.dtype) for _, key, t in stage.writes}
            outputs |= {name: new[key] for name, key, _ in stage.writes}
            self.context.dispatch(graph, inputs, outputs)
            for _, key, tensor in stage.writes:
                self.variables.commit(key, new[key], tensor.shape, tensor.dtype)
        with span("read back", ", ".join(name for name, _, _ in stage.outputs)):
            for name, value, dtype in stage.outputs:
                environment[value] = decoded(np.asarray(self.context.read_tensor(stage.tensors[name])), dtype)

    def _look_up(self, value: TfliteValue, environment: Environment, aliases: Mapping[TfliteValue, TfliteValue]) -> Array:
        value = resolve(value, aliases)
        if value not in environment and self.module.constants.has(value.record):
            return self.module.constants.array(value.subgraph, value.record)
        return environment[value]

    # stages ---------------------------------------------------------------------------------------------------------

    def _stage(self, state: Remaining, environment: Environment, progress: Progress | None) -> StageOfProgram:
        """Return the stage that was compiled for these shapes and elements, or compile one."""
        key = tuple((environment[v].shape, environment[v].dtype) for v in state.reads)
        found = state.stages.setdefault(key, [])
        state.stages.move_to_end(key)
        for stage in found:
            if self._holds(stage, environment):
                return stage
        feeds = {v: Feed(environment[v].shape, environment[v].dtype, environment[v]) for v in state.reads}
        stage = self._compile(state, feeds, progress)
        found.insert(0, stage)
        while len(found) > self.capacity:
            self._discard(found.pop())
        self._evict(state)
        return stage

    def _evict(self, state: Remaining) -> None:
        """Free the stages of the oldest sets of shapes beyond the capacity."""
        while len(state.stages) > self.capacity:
            _, old = state.stages.popitem(last=False)
            for one in old:
                self._discard(one)

    def _holds(self, stage: StageOfProgram, environment: Environment) -> bool:
        """Return whether the elements and the variables are those that a stage was compiled for."""
        lowered, types = stage.lowered, self.variables.types()
        return all(np.array_equal(environment[v], array) for v, array in lowered.guards.items()) and all(
            types.get(key, wanted) == wanted for key, wanted in lowered.types.items()
        )

    def _compile(self, state: Remaining, feeds: Mapping[TfliteValue, Feed], progress: Progress | None) -> StageOfProgram:
        module = self.module
        with span("lower", f"{len(state.nodes)} nodes"):
            lowered = self.lower(state, feeds, progress=progress)
        graph = None
        if lowered.operands:
            with span("compile", ", ".join(lowered.operands)):
                graph = lowered.builder.build(
                    lowered.operands, progress=progress, wide_float16=module.wide_float16, tuning=module.tuning
                )
            used = set(graph.get_input_names())
            lowered.inputs = {name: value for name, value in lowered.inputs.items() if name in used}
            lowered.reads = {name: key for name, key in lowered.reads.items() if name in used}
            self.compiled += 1
        stage = StageOfProgram(
            lowered=lowered,
            graph=graph,
            outputs=[(name, value, t.dtype) for name, (value, t) in lowered.outputs.items()],
            writes=[(name, key, t) for name, (key, t) in lowered.writes.items()],
            then=self._remaining(state, lowered),
            shapes={value: t.shape for value, t in lowered.outputs.values()},
        )
        if lowered.reads or stage.writes:
            for name, value in lowered.inputs.items():
                stage.tensors[name] = self._tensor(TfliteTensor(shape=feeds[value].shape, dtype=feeds[value].dtype))
            for name, (_, tensor) in lowered.outputs.items():
                stage.tensors[name] = self._tensor(tensor)
        lowered.outputs.clear()
        lowered.writes.clear()
        self.staged += 1
        return stage

    def _tensor(self, tensor: TfliteTensor) -> MLTensor:
        return self.context.create_tensor(
            held_shape(tensor.shape, tensor.dtype),
            held_type(tensor.dtype),  # pyright: ignore[reportArgumentType]
            readable=True,
            writable=True,
        )

    def _remaining(self, state: Remaining, lowered: Lowered) -> Remaining | None:
        if not lowered.rest:
            return None
        if state.depth >= MOST_STAGES:
            raise self.module.refusal(lowered.rest[0], f"the model needs more than {MOST_STAGES} readbacks in one run")
        return Remaining(
            nodes=lowered.rest,
            aliases=lowered.aliases,
            handles=lowered.handles,
            known={**state.known, **lowered.known},
            reads=tuple(self._reads(lowered, state.reads)),
            depth=state.depth + 1,
        )

    def lower(
        self,
        state: Remaining | None,
        feeds: Mapping[TfliteValue, Feed],
        missing: Sequence[TfliteValue] = (),
        progress: Progress | None = None,
    ) -> Lowered:
        """Lower the nodes of a stage, by default the first, without compiling anything."""
        state = state or self._start
        lowering = TfliteLowering(
            self.module,
            self.context,
            feeds=feeds,
            aliases=state.aliases,
            handles=state.handles,
            variables=self.variables.types(),
            missing=missing,
            known={v: TfliteTensor.known(a, v.record.quantization) for v, a in state.known.items()},
        )
        return lowering.run(state.nodes, self.outputs, progress)

    def remaining(self, lowered: Lowered, reads: Sequence[TfliteValue]) -> Remaining | None:
        """Return the state after a stage that was lowered only."""
        return self._remaining(Remaining(nodes=(), aliases={}, handles={}, known={}, reads=tuple(reads)), lowered)

    def _reads(self, lowered: Lowered, before: Sequence[TfliteValue]) -> Iterator[TfliteValue]:
        """Yield the values that are there when the next stage begins, and that it may use."""
        there = {v: None for v in before}
        there.update({value: None for value, _ in lowered.outputs.values()})
        there.update({o: None for node in lowered.host for o in node.outputs})
        computed = {o for node in lowered.rest for o in node.outputs}
        wanted: dict[TfliteValue, None] = {}
        for node in lowered.rest:
            wanted.update(dict.fromkeys(v for v in node.inputs if v is not None))
        wanted.update(dict.fromkeys(self.outputs))
        for value in dict.fromkeys(resolve(v, lowered.aliases) for v in wanted):
            if value in there and value not in computed:
                yield value

    def _discard(self, stage: StageOfProgram) -> None:
        if stage.graph is not None:
            stage.graph.destroy()
        for tensor in stage.tensors.values():
            tensor.destroy()
        for found in stage.then.stages.values() if stage.then else ():
            for one in found:
                self._discard(one)

    def destroy(self) -> None:
        """Free every graph."""
        for found in self._start.stages.values():
            for stage in found:
                self._discard(stage)
        self._start.stages.clear()
        for body in self._bodies.values():
            body.destroy()

    # the host -------------------------------------------------------------------------------------------------------

    def _on_host(self, node: TfliteNode, environment: Environment, aliases: Mapping[TfliteValue, TfliteValue]) -> None:
        arrays = [None if v is None else self._look_up(v, environment, aliases) for v in node.inputs]
        found = handler(node.record.name, node.record.custom)
        try:
            with self.module.at(node, "running"):
                if node.record.name in CONTROL and not node.record.custom:
                    results = self._control(NodeFacts(self.module, node), [a for a in arrays if a is not None])
                else:
                    assert found is not None
                    assert found.host is not None
                    results = found.host(NodeFacts(self.module, node), arrays)
        except OnHost as reason:
            raise self.module.refusal(node, str(reason)) from reason.__cause__
        for output, result in zip(node.outputs, results, strict=False):
            environment[output] = np.asarray(result)

    def _control(self, facts: NodeFacts, arrays: Sequence[Array]) -> Sequence[Array]:
        """Run subgraphs of which the host chooses, or which it repeats."""
        name = facts.node.record.name
        if name == "WHILE":
            condition = self.body(facts, int(facts.option("CondSubgraphIndex")))
            body = self.body(facts, int(facts.option("BodySubgraphIndex")))
            current = list(arrays)
            for _ in range(MOST_ITERATIONS):
                if not bool(condition(current)[0].reshape(-1)[0]):
                    return current
                current = body(current)
            raise OnHost(f"loops of {MOST_ITERATIONS} and more iterations are taken for endless")
        branches = branches_of(facts)
        chosen = arrays[0].reshape(-1)[0]
        if name == "IF":
            index = branches[0 if chosen else 1]
        else:
            index = branches[int(chosen) if 0 <= int(chosen) < len(branches) else -1]
        return self.body(facts, index)(arrays[1:])

    def body(self, facts: NodeFacts, index: int) -> TfliteProgram:
        """Return the program of a subgraph that a node uses."""
        key = (facts.node, index)
        if key not in self._bodies:
            if self._depth >= DEEPEST:
                facts.fail(f"subgraphs use each other more than {DEEPEST} deep")
            graph = self.module.graph(index)
            self._bodies[key] = TfliteProgram(self.module, self.context, self.variables, graph, self.capacity, self._depth + 1)
        return self._bodies[key]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run the subgraph on arrays in the order of its inputs."""
        if len(arrays) != len(self.inputs):
            raise OnHost(f"the subgraph has {len(self.inputs)} inputs; the node gives it {len(arrays)}")
        return self.run(dict(zip(self.inputs, arrays, strict=True)))

    def prepare(self, given: Mapping[TfliteValue, Feed], progress: Progress | None = None) -> bool:
        """Compile the first stage for shapes and types of the inputs, unless it depends on their elements.

        Returns:
            Whether a stage without a dependence on elements is there, whose outputs `output_shapes` describes.
        """
        state = self._start
        key = tuple((given[v].shape, given[v].dtype) for v in state.reads)
        found = state.stages.get(key)
        if found:
            state.stages.move_to_end(key)
            return not found[0].lowered.guards
        try:
            state.stages[key] = [self._compile(state, {v: given[v] for v in state.reads}, progress)]
        except ValueNeeded:
            return False
        self._evict(state)
        return True

    def output_shapes(self) -> dict[int, Shape]:
        """Return the shapes of the outputs that the first stage, compiled last, computes, by position."""
        stage = next(self._latest(), None)
        if stage is None:
            return {}
        found: dict[int, Shape] = {}
        for index, output in enumerate(self.outputs):
            value = resolve(output, stage.lowered.aliases)
            if value in stage.shapes:
                found[index] = stage.shapes[value]
            elif value in stage.lowered.known:
                found[index] = stage.lowered.known[value].shape
        return found

    def graphs(self) -> list[MLGraph]:
        """Return the WebNN graphs of the stages compiled last."""
        return [stage.graph for stage in self._latest() if stage.graph is not None]

    def placements(self) -> tuple[Placed, ...]:
        """Return where the nodes run, by the stages compiled last."""
        return tuple(placed for stage in self._latest() for placed in stage.lowered.placed)

    def _latest(self) -> Iterator[StageOfProgram]:
        state: Remaining | None = self._start
        while state is not None and state.stages:
            found = next(reversed(state.stages.values()))
            if not found:
                return
            yield found[0]
            state = found[0].then


def branches_of(facts: NodeFacts) -> list[int]:
    """Return the subgraphs that a node chooses from."""
    if facts.node.record.name == "IF":
        return [int(facts.option("ThenSubgraphIndex")), int(facts.option("ElseSubgraphIndex"))]
    found = facts.option("BranchSubgraphIndices", [])
    return [int(i) for i in found] or facts.fail("it has no branches")
