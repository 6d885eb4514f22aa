"""Values without memory of their own, which producers write directly into the output of a concatenation.

A concatenation along the last dimension need not copy the results of matrix products and convolutions that have no other
consumer. Their kernels can store rows into columns of wider rows as well as into contiguous rows. Along the first dimension
that is not 1, the operands of a concatenation are contiguous in the output. There the rows of one producer follow the rows of
another. Any other producer can write a contiguous operand too: the device binds that range of the output.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.caps import Caps
from ..ir.graph import Graph, Node
from ..kernels.element import padded_bytes
from ..ops import OPS
from ..ops._def import Part
from ..ops.attention_gradient import ATTENTION_GRADIENT
from ..ops.column_sums import COLUMN_SUMS
from ..ops.fused import members_of
from ..ops.transposes import TRANSPOSES
from ..ops.views import RESHAPE

_WRITING_SEVERAL = (COLUMN_SUMS.name, TRANSPOSES.name, ATTENTION_GRADIENT.name)
"""Operators of several results whose kernels write all of their results and read none."""


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


def ranges_in_place(graph: Graph, caps: Caps, parts: Mapping[int, Part]) -> dict[int, tuple[int, int]]:
    """Return the results that are contiguous operands of concatenations, each with the output and its offset there, in bytes.

    Only the concatenation reads such a result. It begins at an offset that the device permits for a binding, and fills its
    binding. Its producer reads nothing that has the same memory, since a dispatch must not read a buffer that it writes.

    Args:
        graph: the graph.
        caps: the device.
        parts: the values that producers store as rows of other values.
    """
    times_read = Counter(value for node in graph.nodes for value in node.operands)
    times_read.update(graph.outputs.values())
    makers = {output: node for node in graph.nodes for output in node.outputs}
    alignment = caps.limit("min-storage-buffer-offset-alignment")
    found: dict[int, tuple[int, int]] = {}
    for node in graph.nodes:
        movement = OPS[node.op].movement
        places = movement.parts(graph, node) if movement and movement.parts else ()
        output = node.outputs[0]
        for value, part in zip(node.operands, places, strict=False):
            shape, offset = graph.type(value).shape, part.start * graph.type(value).numpy.itemsize
            contiguous = part.row == shape[-1] or graph.type(value).num_elements == shape[-1]
            source = _only_read(value, makers, times_read)
            if source is None or value in parts or not contiguous or offset % alignment:
                continue
            filled = padded_bytes(graph.type(source).size_bytes) == graph.type(source).size_bytes
            if filled and _writes_range(makers[source], output, makers, parts):
                found[source] = output, offset
    return found


def _only_read(value: int, makers: Mapping[int, Node], times_read: Mapping[int, int]) -> int | None:
    """Return the result that a value is a view of, if neither has another reader. None for graph inputs and constants."""
    while value in makers and times_read[value] == 1:
        if not OPS[makers[value].op].view:
            return value
        (value,) = makers[value].operands
    return None


def _writes_range(node: Node, output: int, makers: Mapping[int, Node], parts: Mapping[int, Part]) -> bool:
    """Return whether a node may write a result into a range of the output of a concatenation.

    Of operators with several results, only sums, transposes and the gradients of attention have kernels that write them and
    read none.
    """
    op = OPS[node.op]
    moves = op.movement is not None and (op.movement.parts is not None or op.movement.runs is not None or op.movement.updates)
    if op.opaque or moves or (len(node.outputs) > 1 and node.op not in _WRITING_SEVERAL):
        return False
    sources = {_source(value, makers) for value in node.operands}
    return not any(value in parts and parts[value].value == output for value in sources)


def _source(value: int, makers: Mapping[int, Node]) -> int:
    """Return the value that a value is a view of, or the value itself."""
    while value in makers and OPS[makers[value].op].view:
        (value,) = makers[value].operands
    return value


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
    members = members_of(node, OPS)
    writer = members.anchor if len(node.outputs) == 1 and members.normalization is members.pool is None else None
    epilogue = OPS[writer.op].epilogue if writer else None
    return writer is not None and epilogue is not None and epilogue.parts and epilogue.axis(writer.attrs) == -1
