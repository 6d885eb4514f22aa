"""`AnalysisWalk`: the stages of a program, lowered one after the other without a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic

from webnn_wgpu import NotSupportedError, OutOfMemoryError
from webnn_wgpu.api.graph import PassReport

from ..description import Memory, Placed, beyond_host
from .lowering import LoweredT, ModuleT
from .program import Remaining, StagedProgram
from .stages import Feed, NodeT, ValueNeeded, ValueT, resolve


class AnalysisWalk(Generic[ModuleT, ValueT, NodeT, LoweredT]):
    """A walk through the stages of a program, which are planned but not compiled.

    Args:
        program: the program.
        feeds: shapes and types of its inputs, as far as they are known.
        declared: returns the shape and type that the model states for a value, None where it does not.

    Attributes:
        placed: where the nodes run.
        apart: the nodes that the device cannot run.
        graphs: the number of graphs.
        dispatches: the number of their dispatches.
        memory: the memory of all graphs.
        problem: the reason why the model cannot run, or "".
        passes: the reports of the passes, one for each graph.
    """

    def __init__(
        self,
        program: StagedProgram[ModuleT, ValueT, NodeT, LoweredT],
        feeds: Mapping[ValueT, Feed],
        declared: Callable[[ValueT], Feed | None] = lambda _: None,
    ) -> None:
        self._program, self._feeds, self._declared = program, dict(feeds), declared
        self._missing = {v: None for v in program.inputs if v not in self._feeds}
        self.placed: list[Placed] = []
        self.apart: set[NodeT] = set()
        self.graphs = self.dispatches = 0
        self.memory: Memory | None = None
        self.problem = ""
        self.passes: list[tuple[PassReport, ...]] = []

    def run(self) -> None:
        """Lower all stages."""
        state: Remaining[ValueT, NodeT, LoweredT] | None = None
        left: Sequence[NodeT] = self._program.nodes
        while left:
            try:
                lowered = self._program.lower(state, self._feeds, self._missing)
            except ValueNeeded as wait:
                # Only a run gives the elements: everything that depends on them stays open.
                for value in wait.values:
                    self._miss(value if state is None else resolve(value, state.aliases))
                continue
            except NotSupportedError as error:
                self._fail(left, error)
                return
            self._record(lowered)
            self._plan(lowered)
            if len(lowered.rest) == len(left):
                self.apart.update(left)
                self.placed += self._later(left, "its shapes or elements are known only when the model runs")
                return
            self._feeds |= {v: Feed(t.shape, t.dtype) for v, t in lowered.outputs.values()}
            for output in (o for node in lowered.host for o in node.outputs):
                feed = self._declared(output)
                if feed is None:
                    self._miss(output)
                else:
                    self._feeds[output] = feed
            state = self._program.remaining(state, lowered, self._feeds)
            left = lowered.rest

    def _miss(self, value: ValueT) -> None:
        self._feeds.pop(value, None)
        self._missing[value] = None

    def _record(self, lowered: LoweredT) -> None:
        """Take the places of a stage's nodes. Those for the host may be beyond it too."""
        obstacles = {self._program.module.placed(n, "").name: self._program.module.host_obstacle(n) for n in lowered.host}
        for placed in lowered.placed:
            obstacle = obstacles.get(placed.name, "") if placed.where == "host" else ""
            beyond = Placed(placed.name, placed.op, "unsupported", beyond_host(placed.note, obstacle))
            self.placed.append(beyond if obstacle else placed)
        self.apart.update(lowered.host)

    def _fail(self, left: Sequence[NodeT], error: NotSupportedError) -> None:
        """Take the places of nodes of which one cannot run."""
        module = self._program.module
        self.problem = str(error)
        self.apart.update(left)
        refusals = ((n, module.refusal(n, "")) for n in left)
        failed = next((n for n, r in refusals if (r.operator, r.label) == (error.operator, error.label)), None)
        if failed is not None:
            self.placed.append(module.placed(failed, "unsupported", str(error)))
        self.placed += self._later([n for n in left if n is not failed], "another operator is not supported")

    def _later(self, nodes: Sequence[NodeT], note: str) -> list[Placed]:
        return [self._program.module.placed(node, "later", note) for node in nodes]

    def _plan(self, lowered: LoweredT) -> None:
        operands = lowered.operands
        if not operands:
            return
        self.graphs += 1
        try:
            plan = lowered.builder.plan(operands, wide_float16=self._program.module.wide_float16)
        except OutOfMemoryError as error:
            self.problem = str(error)
            return
        self.passes.append(lowered.builder.passes)
        if plan is not None:
            self.memory = Memory.of(plan) + (self.memory or Memory())
            self.dispatches += len(plan.dispatches)
