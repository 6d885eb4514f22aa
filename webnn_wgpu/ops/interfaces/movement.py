"""How operators move elements: results that are copies of operands, found at steps in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.graph import Array, Attrs, Graph, Node

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""A number of indices and the distance of elements from one to the next. There are several pairs, the outermost first, where a
dimension joins some that do not lie one behind the other. Those of size 1 are left out."""


def joined(dims: Iterable[Steps]) -> Steps:
    """Return the steps of a dimension that takes the place of several."""
    found: list[tuple[int, int]] = []
    for size, step in (each for steps in dims for each in steps):
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        elif size != 1:
            found.append((size, step))
    return tuple(found)


def divided(steps: Steps, shape: Sequence[int]) -> tuple[Steps, ...] | None:
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


@dataclass(frozen=True)
class Stepped:
    """Where the elements of a value lie in memory.

    Attributes:
        offset: the first element.
        dims: the steps of each dimension.
    """

    offset: int
    dims: tuple[Steps, ...]

    def cut(self, starts: Sequence[int], strides: Sequence[int], before: Sequence[int], after: Sequence[int]) -> Stepped | None:
        """Return where a part lies; None where a dimension that is cut has no single step.

        Args:
            starts: the first index along each dimension.
            strides: the distance of one index to the next.
            before: the shape of the value.
            after: the shape of the part.
        """
        offset, dims = self.offset, list(self.dims)
        for d, (start, stride, old, new) in enumerate(zip(starts, strides, before, after, strict=True)):
            if (start, stride, new) == (0, 1, old):
                continue
            if len(dims[d]) != 1:
                return None
            ((_, step),) = dims[d]
            offset += start * step
            dims[d] = ((new, step * stride),) if new != 1 else ()
        return Stepped(offset, tuple(dims))


@dataclass(frozen=True, kw_only=True)
class Move:
    """One movement from the first operand to one of the outputs.

    Attributes:
        attrs: the node's attributes.
        before: the first operand's shape.
        after: the output's shape.
        output: the output's position.
        constants: the operands; None for those that are no constants.
    """

    attrs: Attrs
    before: tuple[int, ...]
    after: tuple[int, ...]
    output: int
    constants: Sequence[Array | None]


Follow = Callable[[Stepped, Move], Stepped | None]
"""Returns where an output's elements lie from where the first operand's do; None where no steps describe it."""


@dataclass(frozen=True)
class Part:
    """Neighbouring columns of a value's rows, or a run of it, where another value is put instead of into memory of its own.

    Attributes:
        value: the value whose columns they are.
        start: the first of them, or the first element of the run.
        row: elements of a row, all of its columns; of a run those of a row of what is put there.
    """

    value: int
    start: int
    row: int

    def within(self, joint: Array, shape: Sequence[int]) -> Array:
        """Return the part of the joint value, a view of it by rows, that a value of that shape is put into."""
        if self.row == shape[-1]:
            return joint.reshape(-1)[self.start : self.start + math.prod(shape)].reshape(-1, self.row)
        return joint.reshape(-1, self.row)[:, self.start : self.start + shape[-1]]


@dataclass(frozen=True, kw_only=True)
class Movement:
    """An operator whose kernels compute nothing: each element of its results is an element of an operand, or a constant.

    Attributes:
        follow: returns where the outputs' elements lie in the first operand's memory, for operators of which steps tell that.
        permutes: whether each element of the first operand is in the output exactly once.
        parts: for operators that put their operands side by side, returns of which part of the output each is a copy; () where
            the operands' producers cannot write there themselves.
        runs: for operators that cut their first operand, returns where in it each output begins, in elements; () where an
            output is not one run of elements.
        reads_parts: whether `lower` finds its first operand where `Lowering.parts` says.
        updates: whether the output is the first operand but for the elements that the others overwrite, so that it may be that
            operand's memory.
    """

    follow: Follow | None = None
    permutes: bool = False
    parts: Callable[[Graph, Node], Sequence[Part]] | None = None
    runs: Callable[[Graph, Node], Sequence[int]] | None = None
    reads_parts: bool = False
    updates: bool = False


MOVES = Movement()
"""Operators of whose movement nothing more is asked."""
