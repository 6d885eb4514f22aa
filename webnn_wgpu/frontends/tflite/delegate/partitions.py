"""The choice of partitions, and the report of a delegate on a subgraph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class DelegationReport:
    """The nodes of one subgraph that a delegate runs, and the reasons for the others.

    Attributes:
        operators: the operator of each node, by the node's number in the order of execution.
        partitions: the numbers of the nodes of each partition.
        reasons: the reason of each node that stays on the CPU, by its number.
    """

    operators: Mapping[int, str]
    partitions: tuple[tuple[int, ...], ...]
    reasons: Mapping[int, str]

    @property
    def summary(self) -> str:
        """One line with the numbers of nodes and partitions."""
        nodes = sum(map(len, self.partitions))
        return f"{nodes} of {len(self.operators)} nodes run on WebNN, in {len(self.partitions)} partitions"

    def __str__(self) -> str:
        """Return the summary, a line for each partition, and a line for each node that stays on the CPU."""
        lines = [self.summary]
        for number, partition in enumerate(self.partitions):
            lines.append(f"partition {number}: " + ", ".join(f"{n} {self.operators[n]}" for n in partition))
        lines += [f"CPU: {n} {self.operators[n]}: {reason}" for n, reason in self.reasons.items()]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Candidate(Generic[Item]):
    """A partition that the runtime proposes.

    Attributes:
        nodes: the numbers of its nodes.
        item: an object of the caller.
    """

    nodes: tuple[int, ...]
    item: Item


def chosen(
    nodes: Sequence[int],
    preview: Callable[[Sequence[int]], Sequence[Candidate[Item]]],
    accepts: Callable[[Candidate[Item]], str],
    *,
    most: int = 0,
    least: int = 0,
) -> tuple[list[Candidate[Item]], dict[int, str]]:
    """Return the partitions that a delegate takes, and the reasons for the nodes of all others.

    The runtime cuts the nodes anew after each choice, because partitions can merge if others stay on the CPU.

    Args:
        nodes: the supported nodes, in the order of execution.
        preview: returns the partitions into which the runtime cuts nodes.
        accepts: returns "" if a partition can be compiled, or the reason why not.
        most: the greatest number of partitions, those with most nodes. 0 for no limit.
        least: the least number of nodes of a partition.
    """
    reasons: dict[int, str] = {}
    remaining = list(nodes)
    while remaining:
        candidates = preview(remaining)
        kept: list[Candidate[Item]] = []
        # The sort is stable: of partitions of one size the first remain.
        for candidate in sorted(candidates, key=lambda c: -len(c.nodes)):
            if len(candidate.nodes) < least:
                reason = f"its partition has {len(candidate.nodes)} nodes; min_nodes_per_partition is {least}"
            elif most and len(kept) >= most:
                reason = f"its partition is not among the {most} with most nodes; max_delegated_partitions is {most}"
            else:
                reason = accepts(candidate)
            if reason:
                reasons.update(dict.fromkeys(candidate.nodes, reason))
            else:
                kept.append(candidate)
        if len(kept) == len(candidates):
            return sorted(kept, key=lambda c: c.nodes), reasons
        left = {n for c in kept for n in c.nodes}
        remaining = [n for n in remaining if n in left]
    return [], reasons
