"""The passes, in order, each with its reason. Every pass keeps what the reference computes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..core.errors import MLTypeError
from ..ir.graph import Graph
from .cleanup import drop_dead_nodes, drop_identities, merge_identical_nodes
from .fold import fold_constants
from .fuse import fuse_elementwise, fuse_epilogues


@dataclass(frozen=True)
class Pass:
    """One pass: its name, its function, and why it is there."""

    name: str
    run: Callable[[Graph], Graph]
    reason: str


@dataclass(frozen=True)
class PassReport:
    """What one pass did: number of nodes before and after."""

    name: str
    nodes_before: int
    nodes_after: int

    def __str__(self) -> str:
        return f"{self.name}: {self.nodes_before} -> {self.nodes_after} nodes"


PASSES = (
    Pass("drop_dead_nodes", drop_dead_nodes, "what no output needs is not computed"),
    Pass("fold_constants", fold_constants, "what depends on constants alone is computed once, at build time"),
    Pass("drop_identities", drop_identities, "identity, and reshape to the same shape, are other names for their input"),
    Pass("merge_identical_nodes", merge_identical_nodes, "the same operator on the same operands is computed once"),
    Pass("fuse_epilogues", fuse_epilogues, "bias, activation and residual are applied before a matrix product is stored"),
    Pass("fuse_elementwise", fuse_elementwise, "a chain of element-wise operators reads and writes memory once"),
)
"""Every pass in the order it runs."""


def run_passes(graph: Graph, disabled: Collection[str] = ()) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run every pass that is not disabled.

    Args:
        graph: the source graph.
        disabled: names of passes to leave out.

    Returns:
        The rewritten graph, and what each pass did.

    Raises:
        MLTypeError: `disabled` names no pass.
    """
    unknown = set(disabled) - {p.name for p in PASSES}
    if unknown:
        allowed = ", ".join(p.name for p in PASSES)
        raise MLTypeError("disabled_passes must name passes", operator="build", got=sorted(unknown)[0], allowed=allowed)
    reports: list[PassReport] = []
    for each in PASSES:
        if each.name not in disabled:
            before = len(graph.nodes)
            graph = each.run(graph)
            reports.append(PassReport(each.name, before, len(graph.nodes)))
    return graph, tuple(reports)
