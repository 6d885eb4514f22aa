"""The layers of a model, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from ..tensors import TfjsGraph, TfjsNode, TfjsValue
from ._call import Flow, LayerCall, LayerScope


def run_layer(scope: LayerScope, node: TfjsNode, inputs: Sequence[Flow]) -> list[Flow]:
    """Add a layer to a graph and return its results.

    Raises:
        NotSupportedError: the layer cannot run, or has fewer results than the model uses.
    """
    call = LayerCall(scope, node.op, node.attributes, node.path or node.name, inputs, node.name)
    results = call.results()
    if len(results) < len(node.outputs):
        call.fail(f"the model uses {len(node.outputs)} of its {len(results)} results")
    return results


def run_model(scope: LayerScope, graph: TfjsGraph, inputs: Sequence[Flow]) -> list[Flow]:
    """Add the layers of a model to a graph and return its outputs."""
    flows: dict[TfjsValue, Flow] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        flows.update(zip(node.outputs, run_layer(scope, node, [flows[v] for v in node.inputs]), strict=False))
    return [flows[v] for v in graph.outputs]
