"""Operators that apply an expression to their result before they store it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...costs import Costs
from ...ir.graph import Attrs, Graph, Node


def _last(attrs: Attrs) -> int:
    return -1


def _no_vectors(graph: Graph, node: Node) -> bool:
    return False


def _always(costs: Costs) -> bool:
    return True


@dataclass(frozen=True)
class TakesEpilogue:
    """An operator whose `lower` applies `Lowering.epilogue`.

    Attributes:
        axis: returns the dimension of the output, counted from its end (-1), along which an epilogue may read a vector.
        vectors: returns whether an epilogue may also read a vector for each matrix of the output: [..., 1, columns].
        several: whether an epilogue may have several results, of which `Lowering.part` holds none.
        parts: whether `lower` stores the result in `Lowering.part`.
        pays: returns whether an epilogue takes less time than a kernel of its own.
    """

    axis: Callable[[Attrs], int] = _last
    vectors: Callable[[Graph, Node], bool] = _no_vectors
    several: bool = False
    parts: bool = True
    pays: Callable[[Costs], bool] = _always
