"""Runs a graph of a model: the main one, or that of a loop or a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from webnn_wgpu import MLContext
from webnn_wgpu.api.progress import Progress

from ..common.calls import OnHost
from ..common.held import Array
from ..common.program import Environment, Remaining, StagedProgram
from ..common.stages import Feed
from . import host
from .lowering import DEEPEST, TfjsLowering, TfjsStage
from .module import TfjsModule
from .tensors import TfjsGraph, TfjsNode, TfjsTensor, TfjsValue

MOST_ITERATIONS = 1 << 20
"""The number of iterations from which a loop is refused as endless."""
State = Remaining[TfjsValue, TfjsNode, TfjsStage]


class TfjsProgram(StagedProgram[TfjsModule, TfjsValue, TfjsNode, TfjsStage]):
    """A graph that can be run.

    Args:
        module: the model.
        context: where it runs.
        graph: the graph.
        capacity: number of sets of shapes, for each stage, whose graphs are kept.
        depth: the number of programs that run this one.
    """

    most_stages = 64

    def __init__(self, module: TfjsModule, context: MLContext, graph: TfjsGraph, capacity: int = 8, depth: int = 0) -> None:
        super().__init__(module, context, graph.nodes, graph.inputs, graph.outputs, capacity)
        self._depth = depth
        self._bodies: dict[TfjsGraph, TfjsProgram] = {}

    def lower(
        self,
        state: State | None,
        feeds: Mapping[TfjsValue, Feed],
        missing: Iterable[TfjsValue] = (),
        progress: Progress | None = None,
    ) -> TfjsStage:
        """Lower the nodes of a stage without compiling anything, as the base class says."""
        state = state or self._start
        known = {v: TfjsTensor.known(a) for v, a in state.known.items()}
        lowering = TfjsLowering(self.module, self.context, feeds=feeds, aliases=state.aliases, missing=missing, known=known)
        return lowering.run(state.nodes, self.outputs, progress)

    def destroy(self) -> None:
        """Free every graph."""
        super().destroy()
        for body in self._bodies.values():
            body.destroy()

    # the host -------------------------------------------------------------------------------------------------------

    def _on_host(self, node: TfjsNode, arrays: Sequence[Array | None], environment: Environment[TfjsValue]) -> Sequence[Array]:
        given = [a for a in arrays if a is not None]
        if not node.graphs:
            return host.evaluate(node, given)
        if node.op in ("While", "StatelessWhile"):
            current = given
            for _ in range(MOST_ITERATIONS):
                holds = self._inner(node, "cond", current, environment)
                if len(holds) != 1 or holds[0].size != 1:
                    raise OnHost("its condition is not one truth")
                if not bool(holds[0].reshape(-1)[0]):
                    return current[: len(node.outputs)]
                current = self._inner(node, "body", current, environment)
            raise OnHost(f"loops of {MOST_ITERATIONS} and more iterations are taken for endless")
        holds = bool(given[0].any()) if given and given[0].size else False
        results = self._inner(node, "then_branch" if holds else "else_branch", given[1:], environment)
        return results[: len(node.outputs)]

    def _inner(self, node: TfjsNode, name: str, arrays: Sequence[Array], environment: Environment[TfjsValue]) -> list[Array]:
        """Run a graph of a node. It may read values of the graph around."""
        graph = node.graphs.get(name)
        if graph is None or len(graph.inputs) != len(arrays):
            raise OnHost(f"the graph {name} is missing, or does not have {len(arrays)} inputs")
        if graph not in self._bodies:
            if self._depth >= DEEPEST:
                raise OnHost(f"graphs use each other more than {DEEPEST} deep")
            around = [v for v in self.module.uses(node) if v not in node.inputs and not self.module.is_constant(v)]
            whole = TfjsGraph(name=graph.name, nodes=graph.nodes, inputs=[*graph.inputs, *around], outputs=graph.outputs)
            self._bodies[graph] = TfjsProgram(self.module, self.context, whole, self.capacity, self._depth + 1)
        body = self._bodies[graph]
        feeds = dict(zip(graph.inputs, arrays, strict=True))
        outer = {v: self._look_up(v, environment) for v in body.inputs if v not in feeds}
        return body.run({**outer, **feeds})
