"""The heads of attention as exporters separate them: elements of rows, which movements turn into a matrix for each head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.graph import Node
from ..ops import OPS
from ..ops.interfaces.movement import Steps, joined
from ..ops.strided import SLICE
from .rewriting import Rewriter
from .views import View, moved_from, view_of

HEADS_LAST = (0, 2, 1, 3)
"""The permutation between [batch, heads, length, size] and [batch, length, heads, size]."""


@dataclass(frozen=True)
class HeadRows:
    """The location of rows of heads in a value that is a matrix of as many rows.

    Attributes:
        columns: the columns of the matrix.
        start: the first column of the first head.
        step: the distance from one head to the next, in columns.
        length_first: whether rows are [length, batch], not [batch, length].
    """

    columns: int
    start: int
    step: int
    length_first: bool


@dataclass(frozen=True, kw_only=True)
class Heads:
    """A matrix for each head, [batch, count, length, size].

    Attributes:
        view: the elements of the matrices.
        given: a value with these matrices, which may repeat each one for the queries that share it.
        swapped: whether that value has the matrices transposed.
        sources: the values that movements produced `given` from, `given` first.
        rows: the location of the heads in rows, if the matrices are columns of rows.
    """

    view: View
    batch: int
    count: int
    length: int
    size: int
    given: int
    swapped: bool
    sources: tuple[int, ...]
    rows: HeadRows | None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """[batch, count, length, size]."""
        return self.batch, self.count, self.length, self.size

    def plain(self, r: Rewriter) -> bool:
        """Return whether a value has the matrices in contiguous form."""
        size = math.prod(self.shape)
        return self.view.steps in (((size, 1),), ()) and math.prod(r.shape(self.view.value)) == size

    def in_rows(self, r: Rewriter, rows: HeadRows, nodes: tuple[Node, ...]) -> int:
        """Return rows of heads, [batch, length, count * size], or [length, batch, ...] if the rows have that order."""
        outer = (self.length, self.batch) if rows.length_first else (self.batch, self.length)
        batches, heads, lengths, elements = self.view.dims
        order = (lengths, batches) if rows.length_first else (batches, lengths)
        wanted = View(self.view.value, self.view.offset, (*order, heads, elements))
        for source in reversed(self.sources):
            # They may have been cut off already, and not been moved before.
            view = view_of(r, source)
            if view.same(wanted) and all(selects_range(node) for node in view.nodes):
                return r.reshaped(source, (*outer, self.count * self.size), nodes)
        whole = self.view.value
        if rows.step == self.size:
            place = {"starts": (0, 0, rows.start), "sizes": (*outer, self.count * self.size)}
            return r.add(SLICE.name, (r.reshaped(whole, (*outer, rows.columns), nodes),), place, nodes)
        head, first = divmod(rows.start, rows.step)
        apart = r.reshaped(whole, (*outer, rows.columns // rows.step, rows.step), nodes)
        place = {"starts": (0, 0, head, first), "sizes": (*outer, self.count, self.size)}
        return r.reshaped(r.add(SLICE.name, (apart,), place, nodes), (*outer, self.count * self.size), nodes)


def heads_of(r: Rewriter, value: int, shape: Sequence[int], *, swapped: bool = False, shared: bool = False) -> Heads | None:
    """Return the value that has the matrices of another value by head, with their arrangement.

    Args:
        r: the graph.
        value: the value of matrices by head.
        shape: [batch, heads, length, size], independent of the value's shape.
        swapped: whether the value has the matrices transposed.
        shared: whether repetitions of a matrix count as one head.
    """
    view = _over(view_of(r, value), shape, swapped=swapped)
    if view is None:
        return None
    sources = tuple(moved_from(r, value))
    # A source of the value may have these matrices already.
    if (source := next((s for s in reversed(sources) if view_of(r, s).same(view)), None)) is not None:
        value, swapped = source, False
    batch, count, length, size = shape
    if shared and view.dims[1][-1:] and view.dims[1][-1][1] == 0:
        *own, (repeats, _) = view.dims[1]
        view = replace(view, dims=(view.dims[0], tuple(own), *view.dims[2:]))
        count //= repeats
    return Heads(
        view=view,
        batch=batch,
        count=count,
        length=length,
        size=size,
        given=value,
        swapped=swapped,
        sources=sources,
        rows=_rows(r, view, (batch, count, length, size)),
    )


def _over(view: View, shape: Sequence[int], *, swapped: bool) -> View | None:
    if swapped:
        *outer, last, before = view.dims
        view = replace(view, dims=(*outer, before, last))
    return view.over(shape)


def _rows(r: Rewriter, view: View, shape: tuple[int, int, int, int]) -> HeadRows | None:
    """Return the location of rows of heads in a value. None if the value has none."""
    batch, count, length, size = shape
    batches, heads, rows, elements = view.dims
    if elements != joined([((size, 1),)]) or max(map(len, view.dims)) > 1:
        return None
    step, outer = _step(heads, size), joined([batches, rows])
    swapped = joined([rows, batches])
    length_first = len(outer) > 1
    if length_first and len(swapped) > 1:
        return None
    total = math.prod(r.shape(view.value))
    columns = _step(swapped if length_first else outer, total)
    if columns * batch * length != total or columns < size:
        return None
    if step == size:
        return HeadRows(columns, view.offset, step, length_first) if view.offset + count * size <= columns else None
    head, first = divmod(view.offset, step) if step else (0, 0)
    fits = step > size and columns % step == 0 and first + size <= step and (head + count) * step <= columns
    return HeadRows(columns, view.offset, step, length_first) if fits else None


def selects_range(node: Node) -> bool:
    """Return whether a movement selects a contiguous range of elements, or moves none of them."""
    op = OPS[node.op]
    return op.view or (op.movement is not None and op.movement.runs is not None)


def _step(steps: Steps, single: int) -> int:
    """Return the distance between neighbors, or a given one for a dimension of size 1."""
    return steps[0][1] if steps else single
