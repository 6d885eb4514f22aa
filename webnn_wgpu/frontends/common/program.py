"""`StagedProgram`: runs a graph of a model of any format.

A program is compiled for the shapes of its inputs, in stages: one WebNN graph, then the nodes that only the host can run.
The shapes of the next stage may depend on the results so far. Most models are one stage with nothing on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic

import numpy as np

from webnn_wgpu import MLContext, MLGraph, NotSupportedError
from webnn_wgpu.api.progress import Progress

from ..description import Placed, beyond_host
from ..timing import compute, span
from .calls import OnHost
from .held import Array, DType, Shape, decode, encode, is_held
from .lowering import LoweredT, ModuleT
from .stages import Feed, NodeT, ValueNeeded, ValueT, resolve


@dataclass(kw_only=True)
class CompiledStage(Generic[ValueT, NodeT, LoweredT]):
    """A compiled stage: run the graph, then the host's nodes. `then` has the nodes that are left."""

    lowered: LoweredT
    graph: MLGraph | None
    outputs: list[tuple[str, ValueT, Shape, DType]]
    then: Remaining[ValueT, NodeT, LoweredT] | None


@dataclass(kw_only=True)
class Remaining(Generic[ValueT, NodeT, LoweredT]):
    """The nodes that are left of a program, and the stages compiled for them.

    Attributes:
        nodes: the nodes.
        reads: the values that a stage may read.
        before: the stage before, None at the start.
        known: the elements that the stages before know.
        depth: the number of stages before.
        stages: the stages for the nodes, by shapes. Those for other elements of the same shapes are one list.
    """

    nodes: Sequence[NodeT]
    reads: tuple[ValueT, ...]
    before: LoweredT | None = None
    known: Mapping[ValueT, Array] = field(default_factory=dict[ValueT, Array])
    depth: int = 0
    stages: OrderedDict[tuple[object, ...], list[CompiledStage[ValueT, NodeT, LoweredT]]] = field(
        default_factory=OrderedDict[tuple[object, ...], list[CompiledStage[ValueT, NodeT, LoweredT]]]
    )

    @property
    def aliases(self) -> Mapping[ValueT, ValueT]:
        """The values that stand for others."""
        return self.before.aliases if self.before is not None else {}


class Environment(Generic[ValueT]):
    """The elements that a run has so far.

    Attributes:
        arrays: the elements by their values.
        aliases: values that stand for others.
    """

    def __init__(self, feeds: Mapping[ValueT, Array]) -> None:
        self.arrays = dict(feeds)
        self.aliases: Mapping[ValueT, ValueT] = {}


class StagedProgram(ABC, Generic[ModuleT, ValueT, NodeT, LoweredT]):
    """A graph that can be run.

    Args:
        module: the model.
        context: where it runs.
        nodes: the graph's nodes, in the order of execution.
        inputs: the inputs of `run`.
        outputs: its outputs.
        capacity: number of sets of shapes, for each stage, whose graphs are kept.

    Attributes:
        most_stages: the maximum number of stages, if there is one. A loop may add nodes in each of them.
    """

    most_stages: ClassVar[int | None] = None

    def __init__(
        self,
        module: ModuleT,
        context: MLContext,
        nodes: Sequence[NodeT],
        inputs: Iterable[ValueT],
        outputs: Iterable[ValueT],
        capacity: int,
    ) -> None:
        self.module, self.context = module, context
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.capacity = capacity
        self.compiled = 0
        """How many WebNN graphs were compiled so far."""
        self.staged = 0
        """How many stages were: those without a graph too."""
        self._start = Remaining[ValueT, NodeT, LoweredT](nodes=nodes, reads=tuple(dict.fromkeys(self.inputs)))

    @property
    def nodes(self) -> Sequence[NodeT]:
        """The nodes of the graph, in the order of execution."""
        return self._start.nodes

    @abstractmethod
    def lower(
        self,
        state: Remaining[ValueT, NodeT, LoweredT] | None,
        feeds: Mapping[ValueT, Feed],
        missing: Iterable[ValueT] = (),
        progress: Progress | None = None,
    ) -> LoweredT:
        """Lower the nodes of a stage without compiling anything.

        Args:
            state: the nodes that are left. None for the first stage.
            feeds: the values that are given.
            missing: values that nodes read but that are not given. Such nodes are left for later stages.
            progress: as for `load`.
        """

    @abstractmethod
    def _on_host(self, node: NodeT, arrays: Sequence[Array | None], environment: Environment[ValueT]) -> Sequence[Array]:
        """Return the outputs of a node that the host evaluates.

        Raises:
            OnHost: the host cannot evaluate it either.
        """

    # running --------------------------------------------------------------------------------------------------------

    def run(self, feeds: Mapping[ValueT, Array], progress: Progress | None = None) -> list[Array]:
        """Run the graph.

        Args:
            feeds: an array for each of `inputs`, of its logical type.
            progress: as for `load`.
        """
        environment = Environment(feeds)
        state: Remaining[ValueT, NodeT, LoweredT] | None = self._start
        while state is not None:
            stage = self._stage(state, environment.arrays, progress)
            environment.aliases = stage.lowered.aliases
            environment.arrays.update(stage.lowered.known)
            if stage.graph is not None:
                self._compute(stage, stage.graph, environment.arrays)
            for node in stage.lowered.host:
                placed = self.module.placed(node, "host")
                with span("host", f"{placed.op} '{placed.name}'"):
                    self._evaluate(node, environment, stage.lowered.placed)
            state = stage.then
        return [self._look_up(v, environment) for v in self.outputs]

    def _compute(self, stage: CompiledStage[ValueT, NodeT, LoweredT], graph: MLGraph, arrays: dict[ValueT, Array]) -> None:
        """Run a stage's graph."""
        given = {name: encode(arrays[value]) for name, value in stage.lowered.inputs.items()}
        results = compute(self.context, graph, given)
        for name, value, _, dtype in stage.outputs:
            arrays[value] = decode(np.asarray(results[name]), dtype)

    def _evaluate(self, node: NodeT, environment: Environment[ValueT], places: Iterable[Placed]) -> None:
        """Evaluate a node on the host. `places` has the reason why the device cannot run it."""
        arrays = [None if v is None else self._look_up(v, environment) for v in node.inputs]
        try:
            with self.module.at(node, "running"):
                results = self._on_host(node, arrays, environment)
        except OnHost as reason:
            raise self._beyond_host(node, str(reason), places) from reason.__cause__
        if len(results) != len(node.outputs):
            raise self.module.refusal(node, f"it has {len(node.outputs)} outputs, but {len(results)} results")
        for output, result in zip(node.outputs, results, strict=True):
            if not is_held(result.dtype):
                raise self.module.refusal(node, f"its results are {result.dtype}, which no tensor holds")
            environment.arrays[output] = result

    def _beyond_host(self, node: NodeT, obstacle: str, places: Iterable[Placed]) -> NotSupportedError:
        """Return the error of a node that the host cannot evaluate. `places` has the device's reason, often the cause."""
        name = self.module.placed(node, "host").name
        notes = [placed.note for placed in places if placed.where == "host" and placed.name == name]
        return self.module.refusal(node, beyond_host(notes[0] if notes else "", obstacle))

    def _look_up(self, value: ValueT, environment: Environment[ValueT]) -> Array:
        value = resolve(value, environment.aliases)
        if value in environment.arrays:
            return environment.arrays[value]
        if not self.module.is_constant(value):
            # An output of a broken model, such as a reference to a variable.
            raise NotSupportedError(f"{self.module.name}: no operator computes the elements of '{value.name}'")
        return self.module.initializer(value)

    # stages ---------------------------------------------------------------------------------------------------------

    def _stage(
        self, state: Remaining[ValueT, NodeT, LoweredT], arrays: Mapping[ValueT, Array], progress: Progress | None
    ) -> CompiledStage[ValueT, NodeT, LoweredT]:
        """Return the stage that was compiled for these shapes and elements, compiled on first use."""
        key = tuple((arrays[v].shape, arrays[v].dtype) for v in state.reads)
        found = state.stages.setdefault(key, [])
        state.stages.move_to_end(key)
        for stage in found:
            if self._holds(stage.lowered, arrays):
                return stage
        feeds = {v: Feed(arrays[v].shape, arrays[v].dtype, arrays[v]) for v in state.reads}
        stage = self._compile(state, feeds, progress)
        found.insert(0, stage)
        while len(found) > self.capacity:
            self._discard(found.pop())
        self._evict(state)
        return stage

    def _evict(self, state: Remaining[ValueT, NodeT, LoweredT]) -> None:
        """Free the stages of the oldest sets of shapes beyond the capacity."""
        while len(state.stages) > self.capacity:
            _, old = state.stages.popitem(last=False)
            for one in old:
                self._discard(one)

    def _holds(self, lowered: LoweredT, arrays: Mapping[ValueT, Array]) -> bool:
        """Return whether the elements are those that a stage was compiled for."""
        return all(np.array_equal(arrays[v], array) for v, array in lowered.guards.items())

    def _compile(
        self, state: Remaining[ValueT, NodeT, LoweredT], feeds: Mapping[ValueT, Feed], progress: Progress | None
    ) -> CompiledStage[ValueT, NodeT, LoweredT]:
        with span("lower", f"{len(state.nodes)} nodes"):
            lowered = self.lower(state, feeds, progress=progress)
        for node in lowered.host:
            if obstacle := self.module.host_obstacle(node):
                raise self._beyond_host(node, obstacle, lowered.placed)
        graph, operands = None, lowered.operands
        if operands:
            with span("compile", ", ".join(operands)):
                graph = lowered.builder.build(
                    operands, progress=progress, wide_float16=self.module.wide_float16, tuning=self.module.tuning
                )
            lowered.keep_inputs(set(graph.get_input_names()))
            self.compiled += 1
        stage = CompiledStage[ValueT, NodeT, LoweredT](
            lowered=lowered,
            graph=graph,
            outputs=[(name, value, t.shape, t.dtype) for name, (value, t) in lowered.outputs.items()],
            then=self.remaining(state, lowered),
        )
        self._complete(lowered, feeds)
        self.staged += 1
        return stage

    def _complete(self, lowered: LoweredT, feeds: Mapping[ValueT, Feed]) -> None:
        """Release the operands of a lowered stage after its graph is compiled, because they hold the constants."""
        del feeds
        lowered.outputs.clear()

    def remaining(
        self, state: Remaining[ValueT, NodeT, LoweredT] | None, lowered: LoweredT, reads: Iterable[ValueT] = ()
    ) -> Remaining[ValueT, NodeT, LoweredT] | None:
        """Return the nodes that a stage leaves, None if there are none.

        Args:
            state: the state that the preceding stage left. None for the first stage.
            lowered: the stage.
            reads: further values that are there.

        Raises:
            NotSupportedError: there are too many stages.
        """
        state = state or self._start
        if not lowered.rest:
            return None
        if self.most_stages is not None and state.depth >= self.most_stages:
            raise self.module.refusal(lowered.rest[0], f"the model needs more than {self.most_stages} readbacks in one run")
        return Remaining(
            nodes=lowered.rest,
            reads=tuple(self._reads(lowered, [*state.reads, *reads])),
            before=lowered,
            known={**state.known, **lowered.known},
            depth=state.depth + 1,
        )

    def _reads(self, lowered: LoweredT, before: Sequence[ValueT]) -> Iterator[ValueT]:
        """Yield the values that are there when the next stage begins, and that it may use."""
        there = {v: None for v in before}
        there.update({value: None for value, _ in lowered.outputs.values()})
        there.update({o: None for node in lowered.host for o in node.outputs})
        computed = {o for node in lowered.rest for o in node.outputs}
        wanted: dict[ValueT, None] = {}
        for node in lowered.rest:
            wanted.update(dict.fromkeys(self.module.uses(node)))
        wanted.update(dict.fromkeys(self.outputs))
        for value in dict.fromkeys(resolve(v, lowered.aliases) for v in wanted):
            if value in there and value not in computed:
                yield value

    def prepare(self, given: Mapping[ValueT, Feed], progress: Progress | None = None) -> bool:
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

    # facts ----------------------------------------------------------------------------------------------------------

    def output_shapes(self) -> dict[int, Shape]:
        """Return the shapes of the outputs that the first stage, compiled last, computes, by position."""
        stage = next(self._latest(), None)
        if stage is None:
            return {}
        shapes = {value: shape for _, value, shape, _ in stage.outputs}
        shapes |= {value: array.shape for value, array in stage.lowered.known.items()}
        values = [resolve(output, stage.lowered.aliases) for output in self.outputs]
        return {index: shapes[value] for index, value in enumerate(values) if value in shapes}

    def graphs(self) -> list[MLGraph]:
        """Return the WebNN graphs of the stages compiled last."""
        return [stage.graph for stage in self._latest() if stage.graph is not None]

    def placements(self) -> tuple[Placed, ...]:
        """Return where the nodes run, by the stages compiled last."""
        return tuple(placed for stage in self._latest() for placed in stage.lowered.placed)

    def _latest(self) -> Iterator[CompiledStage[ValueT, NodeT, LoweredT]]:
        state: Remaining[ValueT, NodeT, LoweredT] | None = self._start
        while state is not None and state.stages:
            found = next(reversed(state.stages.values()))
            if not found:
                return
            yield found[0]
            state = found[0].then

    # release --------------------------------------------------------------------------------------------------------

    def _discard(self, stage: CompiledStage[ValueT, NodeT, LoweredT]) -> None:
        if stage.graph is not None:
            stage.graph.destroy()
        for found in stage.then.stages.values() if stage.then else ():
            for one in found:
                self._discard(one)

    def destroy(self) -> None:
        """Free every graph."""
        for found in self._start.stages.values():
            for stage in found:
                self._discard(stage)
        self._start.stages.clear()
