"""Values that lie in another where they are cut from it: parts of splits, and slices, that are one run of its elements.

No kernel copies what lies in one piece already: whoever reads it binds that piece of the buffer.
"""

from __future__ import annotations

from collections.abc import Collection

from ..core.caps import Caps
from ..ir.graph import Graph
from ..kernels.element import padded_bytes
from ..ops import OPS


def pieces_in_place(graph: Graph, caps: Caps, parts: Collection[int]) -> dict[int, int]:
    """Return the values of a graph that are pieces of another, the first operand of the node that makes them.

    What a node makes is all pieces or none: each begins where the device lets a binding begin, and fills what is bound. Outputs
    of the graph have memory of their own, and so has what they are views of.

    Args:
        graph: the graph.
        caps: the device.
        parts: values without memory of their own, that lie in columns of others.

    Returns:
        The pieces, and how many bytes of the other come before each.
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
