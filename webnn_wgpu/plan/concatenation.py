"""Values without memory of their own, which producers write directly into the output of a concatenation.

A concatenation along the last dimension need not copy the results of matrix products and convolutions that have no other
consumer. Their kernels can store rows into columns of wider rows as well as into contiguous rows. Along the first dimension
that is not 1, the operands of a concatenation are contiguous in the output. There the rows of one producer follow the rows of
another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.caps import Caps
from ..ir.graph import Graph, Node
from ..kernels.element import padded_bytes
from ..ops import OPS
from ..ops._def import Part
from ..ops.fused import members_of
from ..ops.views import RESHAPE


def parts_in_place(graph: Graph, caps: Caps) -> dict[int, Part]:
    """Return the values of a graph that get no memory of their own, each with its part of another value.

    The consumers of such a value are the concatenation, and otherwise only operators that can read a part in place. The output
    of the concatenation fits one binding of the device.
    """
    readers: defaultdict[int, list[Node | None]] = defaultdict(list)
    for node in graph.nodes:
        for value in node.operands:
            readers[value].append(node)
    for value in graph.outputs.values():
        readers[value].append(None)
    makers = {output: node for node in graph.nodes for output in node.outputs}
    found: dict[int, Part] = {}
    for node in graph.nodes:
        movement = OPS[node.op].movement
        parts = movement and movement.parts
        if parts is None or padded_bytes(graph.type(node.outputs[0]).size_bytes) > _limit(caps):
            continue
        # Empty where the operands cannot be written in place.
        for value, part in zip(node.operands, parts(graph, node), strict=False):
            others = [reader for reader in readers[value] if reader is not node]
            once = len(others) == len(readers[value]) - 1
            if once and all(map(_reads_parts, others)) and value in makers:
                found |= _made_there(graph, value, part, makers, readers)
    return found


def _made_there(
    graph: Graph, value: int, part: Part, makers: Mapping[int, Node], readers: Mapping[int, Sequence[Node | None]]
) -> dict[int, Part]:
    """Return a value and the sources of its view with their parts.

    An empty result means that the producer cannot write there.
    """
    length = graph.type(value).shape[-1]
    found = {value: part}
    while (maker := makers[value]).op == RESHAPE.name:
        (value,) = maker.operands
        row = graph.type(value).shape[-1]
        # A run of elements is one by rows of any length.
        if value not in makers or len(readers[value]) > 1 or length not in (part.row, row):
            return {}
        found[value] = replace(part, row=row) if part.row == length else part
    return found if _writes_parts(maker) else {}


def _reads_parts(node: Node | None) -> bool:
    """Return whether a reader finds an operand that is a part of another value: no output of the graph does."""
    movement = OPS[node.op].movement if node else None
    return movement is not None and movement.reads_parts


def _limit(caps: Caps) -> int:
    return caps.limit("max-storage-buffer-binding-size")


def _writes_parts(node: Node) -> bool:
    """Return whether the operator that stores a node's result can write its rows into columns of wider rows."""
    writer = members_of(node, OPS).anchor
    epilogue = OPS[writer.op].epilogue if writer else None
    return writer is not None and epilogue is not None and epilogue.axis(writer.attrs) == -1
