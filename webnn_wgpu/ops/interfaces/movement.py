"""How operators move elements: results that are copies of operands, found at steps in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.graph import Array, Attrs, Graph, Node

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of a number of indices and the distance in elements from one index to the next, outermost pair first. A dimension has
several pairs if it joins dimensions that are not contiguous. Pairs of size 1 are left out."""


def joined(dims: Iterable[Steps]) -> Steps:
    """Return the steps of a dimension that replaces several dimensions."""
    found: list[tuple[int, int]] = []
    for size, step in (each for steps in dims for each in steps):
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        elif size != 1:
            found.append((size, step))
    return tuple(found)


def divided(steps: Steps, shape: Sequence[int]) -> tuple[Steps, ...] | None:
    """Return the steps by dimension of a shape, or None if a dimension ends between two steps."""
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
    """The positions of a value's elements in memory.

    Attributes:
        offset: the position of the first element.
        dims: the steps of each dimension.
    """

    offset: int
    dims: tuple[Steps, ...]

    def cut(self, starts: Sequence[int], strides: Sequence[int], before: Sequence[int], after: Sequence[int]) -> Stepped | None:
        """Return the positions of a part of the value, or None if a dimension that is cut has no single step.

        Args:
            starts: the first index along each dimension.
            strides: the distance from one index to the next along each dimension.
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
        constants: the operands, with None for each that is no constant.
    """

    attrs: Attrs
    before: tuple[int, ...]
    after: tuple[int, ...]
    output: int
    constants: Sequence[Array | None]


Follow = Callable[[Stepped, Move], Stepped | None]
"""Returns the positions of an output's elements, from those of the first operand's elements. None if no steps describe them."""


@dataclass(frozen=True)
class Part:
    """Neighboring columns of a value's rows, or a run of its elements, in which a producer stores another value.

    Attributes:
        value: the value that contains the part.
        start: the first column, or the first element of the run.
        row: the number of elements of a whole row of `value`. For a run, the number of elements of a row of the other value.
    """

    value: int
    start: int
    row: int

    def within(self, joint: Array, shape: Sequence[int]) -> Array:
        """Return the part of the larger value for a value of a shape, as a view by rows."""
        if self.row == shape[-1]:
            return joint.reshape(-1)[self.start : self.start + math.prod(shape)].reshape(-1, self.row)
        return joint.reshape(-1, self.row)[:, self.start : self.start + shape[-1]]


@dataclass(frozen=True, kw_only=True)
class Movement:
    """An operator whose kernels compute nothing: each element of its results is an element of an operand, or a constant.

    Attributes:
        follow: returns the positions of the outputs' elements in the first operand's memory, for operators with such steps.
        permutes: whether `follow` finds each element of the first operand in the output exactly once.
        parts: returns the part of the output that is a copy of each operand, for operators that put their operands side by
            side. () means that the operands' producers cannot write there themselves.
        runs: returns the start of each output in the first operand, in elements, for operators that cut this operand. ()
            means that an output is not one run of elements.
        reads_parts: whether `lower` reads its operands from the parts that `Lowering.parts` names.
        updates: whether the output is the first operand except for the elements that the other operands overwrite, so that
            it may have the memory of the first operand.
    """

    follow: Follow | None = None
    permutes: bool = False
    parts: Callable[[Graph, Node], Sequence[Part]] | None = None
    runs: Callable[[Graph, Node], Sequence[int]] | None = None
    reads_parts: bool = False
    updates: bool = False

    def __post_init__(self) -> None:
        if self.permutes and self.follow is None:
            raise TypeError("a movement that permutes states its steps: `follow` must not be None where `permutes` is True")


MOVES = Movement()
"""Operators without further facts about their movement."""
