"""Runs an ONNX graph: the main one, or that of a loop.

A program is compiled for the shapes of its inputs, in stages: one WebNN graph, then the nodes that only the host can run.
The shapes of the next stage may depend on the results so far. Most models are one stage with nothing on the host.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir

from webnn_wgpu import MLGraph

from ..description import Placed
from ..timing import compute, span
from . import host
from .loops import run_batched_scan, run_loop, run_scan
from .lowering import Evaluator, Feed, Lowered, StageLowering, resolve
from .tensors import OnHost, ValueNeeded
from .types import HELD, Array, DType, decode, encode

if TYPE_CHECKING:
    from webnn_wgpu import MLContext
    from webnn_wgpu.api.progress import Progress

    from .module import OnnxModule

Environment = dict[onnx_ir.Value, Array]


@dataclass
class CompiledStage:
    """A compiled stage: run the graph, then the host's nodes. `then` has the nodes that are left."""

    lowered: Lowered
    graph: MLGraph | None
    outputs: list[tuple[str, onnx_ir.Value, DType]]
    then: ProgramState | None


@dataclass
class ProgramState:
    """The nodes that are left of a program, and the stages compiled for them, by shapes and elements."""

    nodes: Sequence[onnx_ir.Node]
    aliases: Mapping[onnx_ir.Value, onnx_ir.Value]
    reads: tuple[onnx_ir.Value, ...]
    stages: OrderedDict[tuple[object, ...], list[CompiledStage]] = field(default_factory=OrderedDict)


class OnnxProgram:
    """An ONNX graph that can be run.

    Args:
        module: the model.
        context: where it runs.
        nodes: the graph's nodes, in topological order.
        inputs: the inputs of `run`, with captured values of outer graphs.
        outputs: its outputs.
        capacity: number of sets of shapes, for each stage, whose graphs are kept.
    """

    def __init__(
        self,
        module: OnnxModule,
        context: MLContext,
        nodes: Sequence[onnx_ir.Node],
        inputs: Sequence[onnx_ir.Value],
        outputs: Sequence[onnx_ir.Value],
        capacity: int = 8,
    ) -> None:
        self.module, self.context = module, context
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.capacity = capacity
        self.compiled = 0
        """How many WebNN graphs were compiled so far."""
        self.staged = 0
        """How many stages were: those without a graph too."""
        self._start = ProgramState(nodes, {}, self.inputs)
        self._bodies: dict[onnx_ir.Node, OnnxProgram] = {}

    # running ------------------------------------------------------------------------------------------------------

    def run(self, feeds: Mapping[onnx_ir.Value, Array], progress: Progress | None = None) -> list[Array]:
        """Run the graph.

        Args:
            feeds: an array for each of `inputs`, of its logical type.
            progress: as for `load_onnx`.
        """
        environment: Environment = dict(feeds)
        state: ProgramState | None = self._start
        aliases: Mapping[onnx_ir.Value, onnx_ir.Value] = {}
        while state is not None:
            stage = self._stage(state, environment, progress)
            aliases = stage.lowered.aliases
            environment.update(stage.lowered.known)
            if stage.graph is not None:
                given = {name: encode(environment[value]) for name, value in stage.lowered.inputs.items()}
                results = compute(self.context, stage.graph, given)
                for name, value, dtype in stage.outputs:
                    environment[value] = decode(results[name], dtype)
            for node in stage.lowered.host:
                with span("host", f"{node.op_type} '{node.name or node.outputs[0].name}'"):
                    self._on_host(node, environment, aliases)
            state = stage.then
        return [self._look_up(v, environment, aliases) for v in self.outputs]

    def _look_up(self, value: onnx_ir.Value, environment: Environment, aliases: Mapping[onnx_ir.Value, onnx_ir.Value]) -> Array:
        value = resolve(value, aliases)
        if value not in environment and value.const_value is not None:
            return self.module.initializer(value)
        return environment[value]

    # stages -------------------------------------------------------------------------------------------------------

    def _stage(self, state: ProgramState, environment: Environment, progress: Progress | None) -> CompiledStage:
        """Return the stage that was compiled for these shapes and elements, compiled on first use."""
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
        while len(state.stages) > self.capacity:
            _, old = state.stages.popitem(last=False)
            for one in old:
                self._discard(one)
        return stage

    def _holds(self, stage: CompiledStage, environment: Environment) -> bool:
        """Whether the elements are those that a stage was compiled for."""
        if not stage.lowered.guards:
            return True
        evaluator = Evaluator(self.module, stage.lowered.aliases, dict(environment))
        try:
            return all(np.array_equal(evaluator(value), array) for value, array in stage.lowered.guards.items())
        except ValueNeeded:
            return False

    def _compile(self, state: ProgramState, feeds: Mapping[onnx_ir.Value, Feed], progress: Progress | None) -> CompiledStage:
        with span("lower", f"{len(state.nodes)} nodes"):
            lowered = self.lower(state.nodes, feeds, state.aliases, progress=progress)
        graph = None
        if lowered.outputs:
            with span("compile", ", ".join(lowered.outputs)):
                module = self.module
                graph = lowered.builder.build(
                    lowered.operands, progress=progress, wide_float16=module.wide_float16, tuning=module.tuning
                )
            used = set(graph.get_input_names())
            lowered.inputs = {name: value for name, value in lowered.inputs.items() if name in used}
            self.compiled += 1
        then = None
        if lowered.rest:
            then = ProgramState(lowered.rest, lowered.aliases, tuple(self._reads(lowered, state.reads)))
        results = [(name, value, dtype) for name, (value, _, dtype) in lowered.outputs.items()]
        lowered.outputs.clear()
        self.staged += 1
        return CompiledStage(lowered, graph, results, then)

    def lower(
        self,
        nodes: Sequence[onnx_ir.Node],
        feeds: Mapping[onnx_ir.Value, Feed],
        aliases: Mapping[onnx_ir.Value, onnx_ir.Value] | None = None,
        missing: Iterable[onnx_ir.Value] = (),
        progress: Progress | None = None,
    ) -> Lowered:
        """Lower nodes for given tensors, without compiling anything. Consumers of `missing` values are left."""
        return StageLowering(self.module, self.context, feeds, aliases or {}, missing).run(nodes, self.outputs, progress)

    def _reads(self, lowered: Lowered, before: Sequence[onnx_ir.Value]) -> Iterator[onnx_ir.Value]:
        """Return the values that are there when the next stage begins, and that it may use."""
        there = {v: None for v in before}
        there.update(dict.fromkeys(lowered.known))
        there.update({value: None for value, _, _ in lowered.outputs.values()})
        there.update({o: None for node in lowered.host for o in node.outputs})
        made = {o for node in lowered.rest for o in node.outputs}
        wanted: dict[onnx_ir.Value, None] = {}
        for node in lowered.rest:
            wanted.update(dict.fromkeys(self.module.uses(node)))
        wanted.update(dict.fromkeys(self.outputs))
        for value in dict.fromkeys(resolve(v, lowered.aliases) for v in wanted):
            if value in there and value not in made:
                yield value

    def _discard(self, stage: CompiledStage) -> None:
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
        for body in self._bodies.values():
            body.destroy()

    # the host -----------------------------------------------------------------------------------------------------

    def _on_host(self, node: onnx_ir.Node, environment: Environment, aliases: Mapping[onnx_ir.Value, onnx_ir.Value]) -> None:
        arrays = [None if v is None else self._look_up(v, environment, aliases) for v in node.inputs]
        try:
            with self.module.at(node, "running"):
                if node.op_type in host.CONTROL:
                    results = self._control(node, arrays, environment, aliases)
                else:
                    results = host.evaluate(node, arrays, self.module.version(node))
        except OnHost as reason:
            raise self.module.refusal(node, str(reason)) from reason.__cause__
        if len(results) != len(node.outputs):
            raise self.module.refusal(node, f"it has {len(node.outputs)} outputs, but {len(results)} results")
        for output, result in zip(node.outputs, results, strict=True):
            if result.dtype not in HELD:
                raise self.module.refusal(node, f"its results are {result.dtype}, which no tensor holds")
            environment[output] = result

    def _control(
        self,
        node: onnx_ir.Node,
        arrays: Sequence[Array | None],
        environment: Environment,
        aliases: Mapping[onnx_ir.Value, onnx_ir.Value],
    ) -> list[Array]:
        """Run a Loop or Scan whose end the device cannot know: the host counts, the body runs as a program of its own."""
        body = self.body(node)
        outer = {v: self._look_up(v, environment, aliases) for v in body.inputs if v in self.module.captures(node)}
        old = node.op_type == "Scan" and self.module.version(node) < 9
        run = run_loop if node.op_type == "Loop" else run_batched_scan if old else run_scan
        return run(node, arrays, lambda given: body.run({**dict(zip(body.inputs, given, strict=False)), **outer}))

    def body(self, node: onnx_ir.Node) -> OnnxProgram:
        """Return the program of the graph within a Loop or Scan."""
        if node not in self._bodies:
            graph: onnx_ir.Graph = node.attributes["body"].value
            inputs = [*graph.inputs, *(v for v in self.module.captures(node) if v.const_value is None)]
            self._bodies[node] = OnnxProgram(self.module, self.context, list(graph), inputs, graph.outputs, self.capacity)
        return self._bodies[node]

    def prepare(
        self,
        given: Mapping[onnx_ir.Value, tuple[tuple[int, ...], DType]],
        progress: Progress | None = None,
    ) -> None:
        """Compile the first stage for shapes and types of the inputs, unless it depends on their elements."""
        state = self._start
        key = tuple(given[v] for v in state.reads)
        if key in state.stages:
            return
        feeds = {v: Feed(*given[v]) for v in state.reads}
        try:
            state.stages[key] = [self._compile(state, feeds, progress)]
        except ValueNeeded:
            return

    def graphs(self) -> list[MLGraph]:
        """Return the WebNN graphs of the stages compiled last."""
        return [stage.graph for stage in self._latest() if stage.graph is not None]

    def placements(self) -> tuple[Placed, ...]:
        """Return where the nodes run, by the stages compiled last."""
        return tuple(placed for stage in self._latest() for placed in stage.lowered.placed)

    def _latest(self) -> Iterator[CompiledStage]:
        state: ProgramState | None = self._start
        while state is not None and state.stages:
            stage = next(reversed(state.stages.values()))[0]
            yield stage
            state = stage.then
