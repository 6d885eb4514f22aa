"""The partitions of a subgraph: nodes that the device runs without a node of the host between them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .tensors import TfliteNode


def partitions_of(nodes: Sequence[TfliteNode], apart: Collection[TfliteNode]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the nodes of each partition, cut as TFLite cuts a graph for a delegate.

    Nodes on the device whose inputs are ready form a partition. Then the host runs all its nodes that became ready, and so on.

    Args:
        nodes: the nodes in the order of execution.
        apart: those of them that do not run on the device.
    """
    waiting = {value for node in nodes for value in node.outputs}
    left = list(nodes)
    found: list[tuple[int, ...]] = []
    device = True
    idle = 0
    while left and idle < 2:
        taken: list[TfliteNode] = []
        for node in left:
            if (node not in apart) is device and not any(value in waiting for value in node.inputs):
                taken.append(node)
                waiting.difference_update(node.outputs)
        if device and taken:
            found.append(tuple(node.record.index for node in taken))
        members = set(taken)
        left = [node for node in left if node not in members]
        idle = 0 if taken else idle + 1
        device = not device
    return tuple(found)
