"""Runs an ONNX graph: the main one, or that of a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir

from ..common.program import Environment, Remaining, StagedProgram
from ..common.stages import Feed, ValueNeeded
from . import host
from .loops import run_batched_scan, run_loop, run_scan
from .lowering import Evaluator, OnnxLowering, OnnxStage
from .module import OnnxModule
from .types import Array

if TYPE_CHECKING:
    from webnn_wgpu import MLContext
    from webnn_wgpu.api.progress import Progress

State = Remaining[onnx_ir.Value, onnx_ir.Node, OnnxStage]


class OnnxProgram(StagedProgram[OnnxModule, onnx_ir.Value, onnx_ir.Node, OnnxStage]):
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
        super().__init__(module, context, nodes, inputs, outputs, capacity)
        self._bodies: dict[onnx_ir.Node, OnnxProgram] = {}

    def lower(
        self,
        state: State | None,
        feeds: Mapping[onnx_ir.Value, Feed],
        missing: Iterable[onnx_ir.Value] = (),
        progress: Progress | None = None,
    ) -> OnnxStage:
        """Lower the nodes of a stage without compiling anything, as the base class says."""
        state = state or self._start
        lowering = OnnxLowering(self.module, self.context, feeds, state.aliases, missing, known=state.known)
        return lowering.run(state.nodes, self.outputs, progress)

    def _holds(self, lowered: OnnxStage, arrays: Mapping[onnx_ir.Value, Array]) -> bool:
        """Return whether the elements, and those that follow from them, are those that a stage was compiled for."""
        if not lowered.guards:
            return True
        evaluator = Evaluator(self.module, lowered.aliases, dict(arrays))
        try:
            return all(np.array_equal(evaluator(value), array) for value, array in lowered.guards.items())
        except ValueNeeded:
            return False

    def destroy(self) -> None:
        """Free every graph."""
        super().destroy()
        for body in self._bodies.values():
            body.destroy()

    # the host -----------------------------------------------------------------------------------------------------

    def _on_host(
        self, node: onnx_ir.Node, arrays: Sequence[Array | None], environment: Environment[onnx_ir.Value]
    ) -> Sequence[Array]:
        if node.op_type in host.CONTROL:
            return self._control(node, arrays, environment)
        return host.evaluate(node, arrays, self.module.version(node))

    def _control(
        self,
        node: onnx_ir.Node,
        arrays: Sequence[Array | None],
        environment: Environment[onnx_ir.Value],
    ) -> list[Array]:
        """Run a Loop or Scan whose end the device cannot know: the host counts, the body runs as a program of its own."""
        body = self.body(node)
        outer = {v: self._look_up(v, environment) for v in body.inputs if v in self.module.captures(node)}
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
