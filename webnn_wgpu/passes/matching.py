"""The search for patterns in a graph."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

import numpy as np

from ..core.data_types import FLOATS, numpy_dtype
from ..ir.graph import Node
from ..ops import OPS
from .patterns import AnyNumber, Apply, Number, OneOf, Option, Pattern, T, Variable
from .rewriting import Rewriter


@dataclass(frozen=True, eq=False)
class Match:
    """An assignment of the nodes and values of a graph to all parts of a pattern.

    Attributes:
        r: the graph.
        found: pattern -> value of a variable, number, option, or node and result of an operator.
    """

    r: Rewriter
    found: Mapping[object, Any]

    @overload
    def __getitem__(self, pattern: Variable) -> int: ...
    @overload
    def __getitem__(self, pattern: AnyNumber) -> float: ...
    @overload
    def __getitem__(self, pattern: Option[T]) -> T: ...
    @overload
    def __getitem__(self, pattern: Apply) -> Node: ...
    def __getitem__(self, pattern: object) -> Any:
        """Return the value of a variable that is given, the number, the option, or an operator's node."""
        found = self.found[pattern]
        return found[0] if isinstance(pattern, Apply) else found

    def __contains__(self, pattern: Pattern) -> bool:
        """Return whether a pattern took part: of alternatives just one does."""
        return self.found.get(pattern) is not None

    def get(self, pattern: Variable) -> int | None:
        """Return the value of a variable that may be absent."""
        return self.found.get(pattern)

    def value(self, pattern: Apply) -> int:
        """Return the result of an operator."""
        return self.found[pattern][1]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of all operators, producers before consumers."""
        return self.nodes_of(*(pattern for pattern in self.found if isinstance(pattern, Apply)))

    def nodes_of(self, *patterns: Apply) -> tuple[Node, ...]:
        """Return the nodes of those among some operators that took part, in the order that is given."""
        return tuple(dict.fromkeys(self[pattern] for pattern in patterns if pattern in self))


def matches(r: Rewriter, pattern: Pattern, node: Node) -> Iterator[Match]:
    """Yield the matches of a pattern whose last operator is a certain node.

    The pattern bounds the number of steps for every graph. The search has as many paths as the pattern has alternatives and
    orders of operands. Each path visits as many values as it has operands.

    Yields:
        Every match of the pattern with the node, in the order of the alternatives.
    """
    for found in _solved(r, pattern, node.outputs[0], {}, node):
        match = Match(r, found)
        if _closed(match, node):
            yield match


def match_of(r: Rewriter, pattern: Pattern, node: Node | None) -> Match | None:
    """Return the first match of a pattern with a node. None if there is none."""
    return None if node is None else next(matches(r, pattern, node), None)


def _closed(match: Match, last: Node) -> bool:
    """Return whether values inside a match have no consumers but its nodes."""
    nodes = match.nodes
    return all(
        node is last or pattern.is_shared or match.r.inner(value, sum(value in other.inputs for other in nodes))
        for pattern, (node, value) in ((p, f) for p, f in match.found.items() if isinstance(p, Apply))
    )


_Found: TypeAlias = dict[object, Any]


def _solved(
    r: Rewriter, pattern: Pattern | None, value: int | None, found: _Found, node: Node | None = None
) -> Iterator[_Found]:
    """Yield the ways to match a pattern with a value, given other matched patterns.

    `node` is the producer, for the last node.
    """
    match pattern:
        case OneOf():
            for choice in pattern.choices:
                yield from _solved(r, choice, value, found, node)
        case Apply() if value is not None:
            if pattern not in found:
                yield from _applied(r, pattern, value, found, node or r.made(value, *pattern.operator.names))
            elif found[pattern][1] == value:
                yield found
        case Variable():
            if pattern in found:
                fits = found[pattern] == value
            elif value is None:
                fits = pattern.optional
            else:
                fits = not pattern.constant or value in r.constants
                fits = fits and (not pattern.types or r.type(value).data_type in pattern.types)
            if fits:
                yield {**found, pattern: value}
        case Number():
            number = r.number(value)
            if number is not None and value is not None:
                low, high = _bounds(pattern.value, r.type(value).data_type)
                if low <= number <= high:
                    yield found
        case AnyNumber():
            number = r.number(value)
            if number is not None and found.get(pattern, number) == number:
                yield {**found, pattern: number}
        case _:
            if pattern is None and value is None:
                yield found


def _applied(r: Rewriter, pattern: Apply, value: int, found: _Found, node: Node | None) -> Iterator[_Found]:
    """Find a pattern of an operator in the node that makes a value, if any does."""
    if node is None or node.op not in pattern.operator.names:
        return
    if pattern.types and r.type(value).data_type not in pattern.types:
        return
    for key, wanted in pattern.options.items():
        if not isinstance(wanted, Option):
            if node.attrs.get(key) != wanted:
                return
            continue
        option = cast("Option[object]", wanted)
        given = node.attrs[key] if option.read is None else option.read(r, node)
        if found.get(option, given) != given:
            return
        found = {**found, option: given}
    count = len(pattern.operands)
    if not pattern.more and any(other is not None for other in node.inputs[count:]):
        return
    inputs = (*node.inputs[:count], *(None for _ in range(len(node.inputs), count)))
    for operands in dict.fromkeys((inputs, inputs[::-1])) if OPS[node.op].commutative else (inputs,):
        possible = all(_may_be(r, operand, other) for operand, other in zip(pattern.operands, operands, strict=True))
        if possible and _keeps_shape(r, node, pattern.operands, operands):
            for each in _all_solved(r, pattern.operands, operands, found):
                yield {**each, pattern: (node, value)}


def _may_be(r: Rewriter, pattern: Pattern | None, value: int | None) -> bool:
    """Return whether a value may match a pattern. This quick check rejects most of the values that do not."""
    match pattern:
        case Apply():
            return r.made(value, *pattern.operator.names) is not None
        case OneOf():
            return any(_may_be(r, choice, value) for choice in pattern.choices)
        case Number() | AnyNumber():
            return value in r.constants
        case _:
            return True


def _keeps_shape(r: Rewriter, node: Node, patterns: Sequence[Pattern | None], operands: Sequence[int | None]) -> bool:
    """Return whether another operand keeps its shape beside numbers."""
    others = [v for p, v in zip(patterns, operands, strict=True) if not isinstance(p, (Number, AnyNumber))]
    if len(others) == len(patterns):
        return True
    shape = r.shape(node.outputs[0])
    return any(value is not None and r.shape(value) == shape for value in others)


def _all_solved(
    r: Rewriter, patterns: Sequence[Pattern | None], values: Sequence[int | None], found: _Found
) -> Iterator[_Found]:
    if not patterns:
        yield found
        return
    for each in _solved(r, patterns[0], values[0], found):
        yield from _all_solved(r, patterns[1:], values[1:], each)


@functools.cache
def _bounds(value: float, data_type: str) -> tuple[float, float]:
    """Return the least and the greatest number of a data type that stand for a number."""
    if data_type not in FLOATS:
        return value, value
    with np.errstate(over="ignore"):
        nearest = numpy_dtype(data_type).type(value)
    if float(nearest) == value or not np.isfinite(nearest):
        return value, value
    step = abs(float(np.spacing(nearest)))
    return value - step, value + step
