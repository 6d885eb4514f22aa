"""Values as views of others: the same elements in another order, with steps in memory instead of copies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..ir.graph import Node
from .rewriting import Rewriter

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""A number of indices and the distance of elements from one to the next; several, the outermost first, where a dimension joins
some that do not lie one behind the other. Those of size 1 are left out."""

MOVEMENTS = ("transpose", "reshape", "slice", "split", "gather", "expand")
"""The operators whose results hold elements of their first operand."""


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
        dims = _divided(self.steps, shape)
        return None if dims is None else replace(self, dims=dims)


def joined(dims: Iterable[Steps]) -> Steps:
    """Return the steps of a dimension that takes the place of several."""
    found: list[tuple[int, int]] = []
    for size, step in (each for steps in dims for each in steps):
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        elif size != 1:
            found.append((size, step))
    return tuple(found)


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
    dims = _divided(((size, 1),), shape) if size > 1 else ((),) * len(shape)
    assert dims is not None
    return View(value, 0, dims)


def _moved(r: Rewriter, view: View, node: Node, output: int) -> View | None:
    """Return a node's result as a view of what its operand is one of; None where there are no such steps."""
    shape, dims, nodes = r.shape(output), view.dims, (*view.nodes, node)
    if node.op == "transpose":
        permutation: tuple[int, ...] = node.attrs["permutation"]
        return replace(view, dims=tuple(dims[d] for d in permutation), nodes=nodes)
    if node.op == "reshape":
        return replace(view, nodes=nodes).over(shape)
    if node.op == "expand":
        more = len(shape) - len(dims)
        before, of_before = (1,) * more + r.shape(node.operands[0]), [*(() for _ in range(more)), *dims]
        repeated = [steps if old == n else ((n, 0),) for steps, old, n in zip(of_before, before, shape, strict=True)]
        return replace(view, dims=tuple(repeated), nodes=nodes)
    return _cut(r, view, node, output)


def _cut(r: Rewriter, view: View, node: Node, output: int) -> View | None:
    """Return the part that a slice, a split, or a gather of one index takes."""
    before, after = r.shape(node.operands[0]), list(r.shape(output))
    starts, strides = [0] * len(before), [1] * len(before)
    if node.op == "slice":
        starts, strides = list(node.attrs["starts"]), list(node.attrs["strides"] or strides)
    elif node.op == "split":
        axis, number = node.attrs["axis"], node.outputs.index(output)
        starts[axis] = sum(node.attrs["splits"][:number])
    else:
        axis, index = node.attrs["axis"], r.number(node.operands[1])
        if index is None or r.shape(node.operands[1]) or not -before[axis] <= index < before[axis]:
            return None
        starts[axis] = int(index) % before[axis]
        after.insert(axis, 1)
    offset, dims = view.offset, list(view.dims)
    for d, (start, stride, old, new) in enumerate(zip(starts, strides, before, after, strict=True)):
        if (start, stride, new) == (0, 1, old):
            continue
        if len(dims[d]) != 1:
            return None
        ((_, step),) = dims[d]
        offset += start * step
        dims[d] = ((new, step * stride),) if new != 1 else ()
    if node.op == "gather":
        del dims[node.attrs["axis"]]
    return replace(view, offset=offset, dims=tuple(dims), nodes=(*view.nodes, node))


def _divided(steps: Steps, shape: Sequence[int]) -> tuple[Steps, ...] | None:
    """Return steps by dimension of a shape; None where a dimension ends between two of them."""
    left, found = list(steps), list[Steps]()
    for size in reversed(shape):
        dim: list[tuple[int, int]] = []
        wanted = size
        while wanted > 1:
            if not left:
                return None
            count, step = left.pop()
            part = math.gcd(count, wanted)
            # Either all of them, or the last of them.
            if part not in (count, wanted):
                return None
            dim.insert(0, (part, step))
            if part != count:
                left.append((count // part, step * part))
            wanted //= part
        found.insert(0, tuple(dim))
    return tuple(found)
