"""Values that share the memory of a larger value: contiguous parts of splits, and contiguous slices.

No kernel copies such a range. Its consumers bind that part of the buffer.
"""

from __future__ import annotations

from collections.abc import Collection

from ..core.caps import Caps
from ..ir.graph import Graph
from ..kernels.element import padded_bytes
from ..ops import OPS


def pieces_in_place(graph: Graph, caps: Caps, parts: Collection[int]) -> dict[int, int]:
    """Return the values of a graph that are pieces of the first operand of their producer.

    All results of a node are pieces, or none is. Each piece begins at an offset that the device permits for a binding, and
    fills its binding. Graph outputs have memory of their own, and so have the sources of their views.

    Args:
        graph: the graph.
        caps: the device.
        parts: the values without memory of their own that are columns of others.

    Returns:
        The pieces, each with its offset in the larger value, in bytes.
    """
    alignment = caps.limit("min-storage-buffer-offset-alignment")
    views = [node for node in graph.nodes if OPS[node.op].view]
    apart = {*parts, *graph.constants}
    for node in views:
        apart.update(node.outputs if apart.intersection(node.operands) else ())
    ends = {*parts, *graph.outputs.values()}
    for node in reversed(views):
        ends.update(node.operands if ends.intersection(node.outputs) else ())
    found: dict[int, int] = {}
    for node in graph.nodes:
        movement = OPS[node.op].movement
        runs = movement and movement.runs
        if runs is None or apart.intersection(node.operands) or ends.intersection(node.outputs):
            continue
        types = [graph.type(value) for value in node.outputs]
        starts = [start * types[0].size_bytes // types[0].num_elements for start in runs(graph, node)]
        filled = all(padded_bytes(type_.size_bytes) == type_.size_bytes for type_ in types)
        if starts and filled and all(start % alignment == 0 for start in starts):
            found.update(zip(node.outputs, starts, strict=True))
    return found
