"""Outputs with the memory of an input, `build(aliases=...)`: those that kernels write there directly.

An element-wise kernel that reads an input at the position of each store can replace it, as a cache update does. No later
dispatch may read the old elements. The planner copies all other such outputs to their inputs after the last dispatch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.graph import Graph
from ..kernels.spec import KernelCall, value_of
from ..ops import OPS
from .in_place import operand_that_result_replaces, written_over


def updated_values(graph: Graph, pieces: Collection[int]) -> dict[int, int]:
    """Return the outputs whose producers may write them into the memory of an input, each with that input.

    Args:
        graph: the graph, with its aliases.
        pieces: the values that share the memory of a larger value.
    """
    makers = {output: position for position, node in enumerate(graph.nodes) for output in node.outputs}
    found: dict[int, int] = {}
    for name, source_name in graph.aliases.items():
        output, source = graph.outputs[name], graph.inputs[source_name]
        if output in makers and _is_last_reader(graph, pieces, makers[output], source):
            found[output] = source
    return found


def _is_last_reader(graph: Graph, pieces: Collection[int], position: int, source: int) -> bool:
    """Return whether no node after a position reads an input or a view of it, and the node there reads the input alone."""
    same = {source}
    for at, node in enumerate(graph.nodes):
        read = same.intersection(node.operands)
        if not read:
            continue
        if OPS[node.op].view or node.outputs[0] in pieces:
            same.update(node.outputs)
        elif at > position or (at == position and (read != {source} or node.operands.count(source) > 1)):
            return False
    return same.isdisjoint(graph.outputs.values())


def over_source(calls: Sequence[KernelCall], output: int, source: int) -> list[KernelCall] | None:
    """Return a node's calls with the result in the memory of an input, or None if the kernel needs the input's old elements.

    Args:
        calls: the calls.
        output: the result.
        source: the input.
    """
    if not any(source in map(value_of, call.operands) for call in calls):
        return list(calls)
    read = operand_that_result_replaces(calls[0], output, source) if len(calls) == 1 else None
    return None if read is None else [written_over(calls[0], *read)]
