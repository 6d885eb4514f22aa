"""Normalizations of rows that the kernel which stores the rows computes as well, where the parts of their sums are added up."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops._def import Lowering
from ..ops._normalization import normalizes_last
from ..ops._normalized_sums import NORMALIZED_SUMS
from ..ops.fused import members_of
from .fuse import fuse_consumers, fused_node


def fuse_normalizations(graph: Graph, target: Target) -> Graph:
    """Fuse normalizations of rows into the products and convolutions of the rows, if workgroups divide the sums of these.

    The lowering decides: the kernel that adds up the parts of the sums also normalizes the rows. A fused node has two results
    if the rows have other consumers, as the sum has that a residual network passes from layer to layer.
    """
    if not target.costs.products.divides_sums:
        return graph

    def join(node: Node, consumers: Sequence[Node], known: Collection[int], inner: bool) -> tuple[Node, Node] | None:
        following = next((consumer for consumer in consumers if _follows(graph, node, consumer, known)), None)
        alone = inner and len(consumers) == 1
        joined = _joined(graph, node, following, target, alone=alone) if following else None
        return (following, joined) if following and joined else None

    return fuse_consumers(graph, join)


def _follows(graph: Graph, node: Node, reader: Node, known: Collection[int]) -> bool:
    """Return whether a reader normalizes the rows of a node's result, and its other operands exist before the node."""
    first, *others = reader.operands
    if first != node.outputs[0] or len(node.outputs) > 1 or any(value not in known for value in others):
        return False
    return normalizes_last(reader, graph.type(first).rank)


def _joined(graph: Graph, node: Node, normalization: Node, target: Target, *, alone: bool) -> Node | None:
    """Return one node for a product and a normalization, or None if no kernel computes both.

    Args:
        graph: the graph.
        node: the product or convolution, with or without operators behind it.
        normalization: the normalization of the rows of its result.
        target: the device.
        alone: whether nothing else reads the result.
    """
    if members_of(node, OPS).anchor is None:
        return None
    body = node.attrs.get("body")
    inside = body if isinstance(body, Graph) else graph.with_nodes((node,))
    results = (normalization,) if alone else (inside.nodes[-1], normalization)
    joined = fused_node(graph, [*inside.nodes, normalization], inside.values, results=results)
    return joined if _normalizes_sums(graph, joined, target) else None


def _normalizes_sums(graph: Graph, node: Node, target: Target) -> bool:
    """Return whether a node is lowered to the kernel that adds up parts of sums and normalizes the rows."""
    lower = OPS[node.op].lower
    assert lower is not None
    calls = lower(Lowering(node=node, graph=graph, target=target, ops=OPS))
    return any(call.spec.template == NORMALIZED_SUMS.name for call in calls)
