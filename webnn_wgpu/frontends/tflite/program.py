"""Runs a subgraph of a model: the main one, or that of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webnn_wgpu import MLContext, MLGraph, MLTensor
from webnn_wgpu.api.progress import Progress

from ..common.calls import OnHost
from ..common.held import Array, DType, Shape, decode, encode, held_shape, held_type
from ..common.program import CompiledStage, Environment, Remaining, StagedProgram
from ..common.stages import Feed
from ..timing import dispatched, span
from .call import NodeFacts
from .lowering import CONTROL, TfliteLowering
from .module import DEEPEST, TfliteModule
from .operators import handler
from .stages import TfliteStage
from .state import Variables
from .tensors import TfliteGraph, TfliteNode, TfliteTensor, TfliteValue

MOST_ITERATIONS = 1 << 20
"""The number of iterations from which a loop is refused as endless."""

Stage = CompiledStage[TfliteValue, TfliteNode, TfliteStage]
State = Remaining[TfliteValue, TfliteNode, TfliteStage]


class TfliteProgram(StagedProgram[TfliteModule, TfliteValue, TfliteNode, TfliteStage]):
    """A subgraph that can be run.

    Args:
        module: the model.
        context: where it runs.
        variables: the variables of the model.
        graph: the use of the subgraph.
        capacity: number of sets of shapes, for each stage, whose graphs are kept.
        depth: the number of programs that run this one.
    """

    most_stages = 64

    def __init__(
        self,
        module: TfliteModule,
        context: MLContext,
        variables: Variables,
        graph: TfliteGraph,
        capacity: int = 8,
        depth: int = 0,
    ) -> None:
        super().__init__(module, context, graph.nodes, graph.inputs, graph.outputs, capacity)
        self.variables = variables
        self._depth = depth
        self._bodies: dict[tuple[TfliteNode, int], TfliteProgram] = {}

    # stages ---------------------------------------------------------------------------------------------------------

    def lower(
        self,
        state: State | None,
        feeds: Mapping[TfliteValue, Feed],
        missing: Iterable[TfliteValue] = (),
        progress: Progress | None = None,
    ) -> TfliteStage:
        """Lower the nodes of a stage without compiling anything, as the base class says."""
        state = state or self._start
        lowering = TfliteLowering(
            self.module,
            self.context,
            feeds=feeds,
            aliases=state.aliases,
            handles=state.before.handles if state.before is not None else {},
            variables=self.variables.types(),
            missing=missing,
            known={v: TfliteTensor.known(a, v.record.quantization) for v, a in state.known.items()},
        )
        return lowering.run(state.nodes, self.outputs, progress)

    def _holds(self, lowered: TfliteStage, arrays: Mapping[TfliteValue, Array]) -> bool:
        """Return whether the elements and the variables are those that a stage was compiled for."""
        types = self.variables.types()
        return super()._holds(lowered, arrays) and all(types.get(k, wanted) == wanted for k, wanted in lowered.types.items())

    def _complete(self, lowered: TfliteStage, feeds: Mapping[TfliteValue, Feed]) -> None:
        if lowered.reads or lowered.writes:
            for name, value in lowered.inputs.items():
                lowered.tensors[name] = self._tensor(feeds[value].shape, feeds[value].dtype)
            for name, (_, tensor) in lowered.outputs.items():
                lowered.tensors[name] = self._tensor(tensor.shape, tensor.dtype)
            plain = {name: (key, TfliteTensor(shape=t.shape, dtype=t.dtype)) for name, (key, t) in lowered.writes.items()}
            lowered.writes = plain
        super()._complete(lowered, feeds)

    def _tensor(self, shape: Shape, dtype: DType) -> MLTensor:
        return self.context.create_tensor(held_shape(shape, dtype), held_type(dtype), readable=True, writable=True)

    def _discard(self, stage: Stage) -> None:
        super()._discard(stage)
        for tensor in stage.lowered.tensors.values():
            tensor.destroy()

    def destroy(self) -> None:
        """Free every graph."""
        super().destroy()
        for body in self._bodies.values():
            body.destroy()

    # running --------------------------------------------------------------------------------------------------------

    def _compute(self, stage: Stage, graph: MLGraph, arrays: dict[TfliteValue, Array]) -> None:
        """Run a stage's graph. Variables stay on the device."""
        lowered = stage.lowered
        if not lowered.reads and not lowered.writes:
            super()._compute(stage, graph, arrays)
            return
        with span("submit", f"{graph.operation_count} operators"):
            for name, value in lowered.inputs.items():
                self.context.write_tensor(lowered.tensors[name], encode(arrays[value]))
            inputs = {name: lowered.tensors[name] for name in lowered.inputs}
            for name, key in lowered.reads.items():
                inputs[name] = self.variables.tensor(key, *lowered.types[key], lowered.quantizations.get(key))
            outputs = {name: lowered.tensors[name] for name, _, _, _ in stage.outputs}
            new = {key: self.variables.target(key, t.shape, t.dtype) for key, t in lowered.writes.values()}
            outputs |= {name: new[key] for name, (key, _) in lowered.writes.items()}
            self.context.dispatch(graph, inputs, outputs)
            for key, tensor in lowered.writes.values():
                self.variables.commit(key, new[key], tensor.shape, tensor.dtype)
        # The tensors that the run read keep their elements until the next one.
        dispatched(graph, lambda: {name: np.asarray(self.context.read_tensor(t)) for name, t in inputs.items()})
        with span("read back", ", ".join(name for name, _, _, _ in stage.outputs)):
            for name, value, _, dtype in stage.outputs:
                arrays[value] = decode(np.asarray(self.context.read_tensor(lowered.tensors[name])), dtype)

    def _on_host(
        self, node: TfliteNode, arrays: Sequence[Array | None], environment: Environment[TfliteValue]
    ) -> Sequence[Array]:
        del environment
        facts = NodeFacts(self.module, node)
        if node.record.name in CONTROL and not node.record.custom:
            return self._control(facts, [a for a in arrays if a is not None])
        found = handler(node.record.name, node.record.custom)
        assert found is not None
        assert found.host is not None
        return [np.asarray(result) for result in found.host(facts, arrays)]

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


def branches_of(facts: NodeFacts) -> list[int]:
    """Return the subgraphs that a node chooses from."""
    if facts.node.record.name == "IF":
        return [int(facts.option("ThenSubgraphIndex")), int(facts.option("ElseSubgraphIndex"))]
    found = facts.option("BranchSubgraphIndices", [])
    return [int(i) for i in found] or facts.fail("it has no branches")
