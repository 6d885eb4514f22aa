"""The nodes of TFLite's runtime that a device can run, and the reasons for all others."""

from __future__ import annotations

from webnn_wgpu import MLContext, NotSupportedError

from ...common.stages import Feed, ValueNeeded
from ..call import NodeFacts
from ..lowering import CONTROL, TfliteLowering
from ..module import TfliteModule
from ..operators.composites import COMPOSITES
from ..tensors import TfliteGraph, TfliteNode, TfliteTensor, TfliteValue
from .parameters import COMPOSITE
from .snapshot import RuntimeModule

SUBGRAPHS = CONTROL | {"CALL", "CALL_ONCE", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"}
"""Operators that run other subgraphs, which only the runtime has."""


class SupportWalk:
    """Lowers the nodes of a subgraph one by one, as the importer does, without a compilation.

    Args:
        module: the subgraph.
        context: where the nodes would run.
        graph: the use of the subgraph.
    """

    def __init__(self, module: RuntimeModule, context: MLContext, graph: TfliteGraph) -> None:
        self._module, self._context, self._graph = module, context, graph
        self._feeds: dict[TfliteValue, Feed] = {}
        self._known: dict[TfliteValue, TfliteTensor] = {}

    def reasons(self) -> dict[int, str]:
        """Return the reasons why nodes cannot run on the device, by their numbers."""
        found: dict[int, str] = {}
        for node in self._graph.nodes:
            reason = self._reason(node)
            if reason:
                found[node.record.index] = reason
        read_on_cpu = {v for n in self._graph.nodes if n.record.index in found for v in n.inputs}
        for node in self._graph.nodes:
            if is_stored_weight(self._module, node) and node.outputs[0] in read_on_cpu:
                # The runtime's kernel computes it once. Partitions that read it have a copy of the node.
                reason = self._module.refusal(node, "a node on the CPU reads the weights")
                found.setdefault(node.record.index, str(reason))
        return found

    def _reason(self, node: TfliteNode) -> str:
        record = node.record
        if not record.custom and (record.name in SUBGRAPHS or self._is_unknown_composite(node)):
            return str(self._module.refusal(node, "it runs subgraphs, which stay in the runtime"))
        for index in (*record.inputs, *record.outputs):
            if index in self._module.faults:
                return str(self._module.refusal(node, self._module.faults[index]))
        used = [v for v in node.inputs if v is not None and not self._module.constants.has(v.record)]
        feeds: dict[TfliteValue, Feed] = {}
        for value in used:
            if value in self._known or value.variable is not None:
                continue
            feed = self._feeds.get(value) or self._declared(value)
            if feed is not None:
                feeds[value] = feed
        known = {v: self._known[v] for v in used if v in self._known}
        lowering = TfliteLowering(self._module, self._context, feeds=feeds, known=known)
        try:
            lowered = lowering.run([node], node.outputs)
        except ValueNeeded as wait:
            return str(
                self._module.refusal(node, f"it needs the elements of '{wait.values[0].name}', which only a run computes")
            )
        except NotSupportedError as error:
            return str(error)
        self._feeds |= {value: Feed(t.shape, t.dtype) for value, t in lowered.outputs.values()}
        self._known |= {v: TfliteTensor.known(a, v.record.quantization) for v, a in lowered.known.items()}
        return ""

    def _is_unknown_composite(self, node: TfliteNode) -> bool:
        return node.record.name == COMPOSITE and NodeFacts(self._module, node).option("Name", "") not in COMPOSITES

    def _declared(self, value: TfliteValue) -> Feed | None:
        record = value.record
        return None if record.dtype is None or record.shape is None else Feed(record.shape, record.dtype)


def is_stored_weight(module: TfliteModule, node: TfliteNode) -> bool:
    """Return whether a node only widens a float16 constant. Each partition that reads the result has a copy of the node."""
    value = node.inputs[0] if node.record.name == "DEQUANTIZE" and node.inputs else None
    return value is not None and value.record.type_name == "float16" and module.constants.has(value.record)
