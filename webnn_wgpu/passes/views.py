"""Values as views of others: the same elements in another order, with steps in memory instead of copies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..ir.graph import Node
from ..ops import OPS
from ..ops.interfaces.movement import Move, Stepped, Steps, divided, joined
from .rewriting import Rewriter

MOVEMENTS = tuple(op.name for op in OPS.values() if op.movement and op.movement.follow)
"""The operators whose results hold elements of their first operand at steps."""

PERMUTATIONS = tuple(op.name for op in OPS.values() if op.movement and op.movement.permutes)
"""Those among them that leave no element out and take none twice."""


@dataclass(frozen=True)
class View:
    """A value that holds elements of another.

    Attributes:
        value: the other, whose elements lie one behind the other.
        offset: the first element.
        dims: the steps of each dimension.
        nodes: what moves them, the first first.
    """

    value: int
    offset: int
    dims: tuple[Steps, ...]
    nodes: tuple[Node, ...] = ()

    @property
    def steps(self) -> Steps:
        """Those of all dimensions, one behind the other."""
        return joined(self.dims)

    def same(self, other: View) -> bool:
        """Return whether both hold the same elements one after the other, whatever their shapes are."""
        return (self.value, self.offset, self.steps) == (other.value, other.offset, other.steps)

    def over(self, shape: Sequence[int]) -> View | None:
        """Return the same elements with another shape; None where its dimensions are none of steps."""
        dims = divided(self.steps, shape)
        return None if dims is None else replace(self, dims=dims)


def view_of(r: Rewriter, value: int, *movements: str) -> View:
    """Return a value as a view of what its elements were moved from, as far back as steps can tell.

    Args:
        r: the graph.
        value: the value.
        movements: the operators that are gone back through; all that move elements if none are given.
    """
    *moved, first = moved_from(r, value, *movements)
    view = _whole(r, first)
    for output in reversed(moved):
        node = r.made(output, *MOVEMENTS)
        assert node is not None
        view = moved_by(r, view, node, output)
    return view


def moved_from(r: Rewriter, value: int, *movements: str) -> Iterator[int]:
    """Return a value, what it was moved from, and so on; by all movements if none are given."""
    yield value
    while (node := r.made(value, *(movements or MOVEMENTS))) is not None:
        value = node.operands[0]
        yield value


def moved_by(r: Rewriter, view: View, node: Node, output: int) -> View:
    """Return a movement's result as a view of what its operand is one of, or else of the operand, or of itself."""
    found = _moved(r, view, node, output) or _moved(r, _whole(r, node.operands[0]), node, output)
    return _whole(r, output) if found is None else found


def _whole(r: Rewriter, value: int) -> View:
    shape, size = r.shape(value), math.prod(r.shape(value))
    dims = divided(((size, 1),), shape) if size > 1 else ((),) * len(shape)
    assert dims is not None
    return View(value, 0, dims)


def _moved(r: Rewriter, view: View, node: Node, output: int) -> View | None:
    """Return a node's result as a view of what its operand is one of; None where there are no such steps."""
    movement = OPS[node.op].movement
    assert movement is not None
    assert movement.follow is not None
    constants = [None if value is None else r.constants.get(value) for value in node.inputs]
    move = Move(
        attrs=node.attrs,
        before=r.shape(node.operands[0]),
        after=r.shape(output),
        output=node.outputs.index(output),
        constants=constants,
    )
    found = movement.follow(Stepped(view.offset, view.dims), move)
    return None if found is None else View(view.value, found.offset, found.dims, (*view.nodes, node))
