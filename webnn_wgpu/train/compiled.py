"""`CompiledStep`: the graphs of a step for the shapes of a batch, with the tensors that only they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webnn_wgpu import MLGraph, MLTensor
from webnn_wgpu.api.progress import Progress

from .step_graphs import METRICS, StepGraphs


@dataclass(frozen=True)
class CompiledStep:
    """The graphs of a step for the shapes of a batch.

    Attributes:
        graph: the graph that updates the parameters.
        accumulating: the graph that adds gradients up, None without one.
        metrics: the names of the scalar results.
        batch: the tensors of the inputs that `forward` uses.
        results: the tensor of the scalar results of each graph.
    """

    graph: MLGraph
    accumulating: MLGraph | None
    metrics: Sequence[str]
    batch: Mapping[str, MLTensor]
    results: Mapping[MLGraph, MLTensor]

    @staticmethod
    def of(graphs: StepGraphs, progress: Progress | None) -> CompiledStep:
        """Compile the graphs of a step."""
        graph, metrics = graphs.updating(progress)
        accumulating = graphs.accumulating(progress)[0] if graphs.accumulates else None
        return CompiledStep(
            graph,
            accumulating,
            metrics,
            # Inputs that `forward` does not use are not inputs of the graph.
            {
                name: graphs.context.create_tensor(wanted.shape, wanted.data_type, writable=True)
                for name, wanted in graph.inputs.items()
                if name in graphs.inputs
            },
            {
                each: graphs.context.create_tensor(each.outputs[METRICS].shape, "float32", readable=True)
                for each in (graph, accumulating)
                if each is not None
            },
        )

    def destroy(self) -> None:
        """Free the graphs and the tensors."""
        for graph in self.results:
            graph.destroy()
        for tensors in (self.batch, self.results):
            for tensor in tensors.values():
                tensor.destroy()
