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
        value: the other value, whose elements are contiguous.
        offset: the number of the first element.
        dims: the steps of each dimension.
        nodes: the nodes that move the elements, the first one first.
    """

    value: int
    offset: int
    dims: tuple[Steps, ...]
    nodes: tuple[Node, ...] = ()

    @property
    def steps(self) -> Steps:
        """The steps of all dimensions in sequence."""
        return joined(self.dims)

    def same(self, other: View) -> bool:
        """Return whether both have the same elements in the same order. Their shapes may differ."""
        return (self.value, self.offset, self.steps) == (other.value, other.offset, other.steps)

    def over(self, shape: Sequence[int]) -> View | None:
        """Return the same elements with another shape. None if steps cannot describe its dimensions."""
        dims = divided(self.steps, shape)
        return None if dims is None else replace(self, dims=dims)


def view_of(r: Rewriter, value: int, *movements: str) -> View:
    """Return a value as a view of the source of its elements, as far back as steps can describe it.

    Args:
        r: the graph.
        value: the value.
        movements: the operators to trace back through. Empty is all movements.
    """
    *moved, first = moved_from(r, value, *movements)
    view = _whole(r, first)
    for output in reversed(moved):
        node = r.made(output, *MOVEMENTS)
        assert node is not None
        view = moved_by(r, view, node, output)
    return view


def run_of(r: Rewriter, value: int) -> View | None:
    """Return a value as neighboring elements of another one, which is no constant. None if it is no such part."""
    view = view_of(r, value)
    whole = view.value == value or view.value in r.constants
    return None if whole or view.steps != ((math.prod(r.shape(value)), 1),) else view


def moved_from(r: Rewriter, value: int, *movements: str) -> Iterator[int]:
    """Yield a value, the operand of its movement, and so on. No operators stand for all movements."""
    yield value
    while (node := r.made(value, *(movements or MOVEMENTS))) is not None:
        value = node.operands[0]
        yield value


def moved_by(r: Rewriter, view: View, node: Node, output: int) -> View:
    """Return a movement's result as a view of its operand's source, or else of the operand, or of itself."""
    found = _moved(r, view, node, output) or _moved(r, _whole(r, node.operands[0]), node, output)
    return _whole(r, output) if found is None else found


def _whole(r: Rewriter, value: int) -> View:
    shape, size = r.shape(value), math.prod(r.shape(value))
    dims = divided(((size, 1),), shape) if size > 1 else ((),) * len(shape)
    assert dims is not None
    return View(value, 0, dims)


def _moved(r: Rewriter, view: View, node: Node, output: int) -> View | None:
    """Return a movement's result as a view of its operand's source. None if steps cannot describe it."""
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
