"""Global average pools that the kernel of the convolution before them computes: it stores the means and no image."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops import OPS
from ..ops._def import Lowering
from ..ops._pixel_means import is_pixel_mean
from ..ops.conv2d import CONV2D
from ..ops.fused import members_of
from .fuse import fuse_consumers, fused_node


def fuse_pools(graph: Graph, target: Target) -> Graph:
    """Fuse means over all pixels into the convolutions of the images, if workgroups compute all pixels of an image.

    The lowering decides. Nothing else reads the images. The operators behind a mean stay there.
    """
    if not target.costs.products.divides_sums:
        return graph

    def join(node: Node, consumers: Sequence[Node], _: Collection[int], inner: bool) -> tuple[Node, Node] | None:
        joined = _joined(graph, node, consumers[0], target) if inner and len(consumers) == 1 else None
        return (consumers[0], joined) if joined else None

    return fuse_consumers(graph, join)


def _joined(graph: Graph, node: Node, pool: Node, target: Target) -> Node | None:
    """Return one node for a convolution and the mean over all pixels of its result, or None if no kernel computes both."""
    first, members = members_of(pool, OPS), members_of(node, OPS)
    convolution = members.anchor
    if convolution is None or convolution.op != CONV2D.name or convolution.attrs["input_layout"] != "nhwc":
        return None
    image, mean = graph.type(node.outputs[0]), first.anchor
    if mean is None or members.normalization or first.normalization or not is_pixel_mean(mean, image.shape):
        return None
    # The kernel has bindings for the operands of its first expression alone, and stores values of one data type.
    if pool.operands != node.outputs or len(pool.outputs) != 1 or graph.type(pool.outputs[0]).data_type != image.data_type:
        return None
    bodies = [body if isinstance(body := each.attrs.get("body"), Graph) else graph.with_nodes((each,)) for each in (node, pool)]
    inner = {number: value for body in bodies for number, value in body.values.items()}
    joined = fused_node(graph, [each for body in bodies for each in body.nodes], inner)
    return joined if _stores_means(graph, joined, target) else None


def _stores_means(graph: Graph, node: Node, target: Target) -> bool:
    """Return whether a node is lowered to a kernel that stores means."""
    lower = OPS[node.op].lower
    assert lower is not None
    calls = lower(Lowering(node=node, graph=graph, target=target, ops=OPS))
    return any("pooled" in dict(call.spec.params) for call in calls)
