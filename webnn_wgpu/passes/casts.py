"""Casts of casts."""

from __future__ import annotations

from ..core.data_types import DATA_TYPES
from ..ir.graph import Graph
from .matching import Match
from .patterns import Operator, Option, Variable
from .rules import Rule, apply_rules

_DIGITS = {"float16": 11, "float32": 24}
"""Binary digits up to which every integer is a float of the type."""


def holds(outer: str, inner: str) -> bool:
    """Return whether a data type has all the numbers of another.

    >>> holds("float32", "float16"), holds("float16", "float32"), holds("float16", "uint8"), holds("uint64", "int8")
    (True, False, True, False)
    """
    if outer == inner:
        return True
    if inner in _DIGITS:
        return outer in _DIGITS and _DIGITS[outer] > _DIGITS[inner]
    low, high = DATA_TYPES[inner].limits
    if outer in _DIGITS:
        return high < 2 ** _DIGITS[outer]
    return DATA_TYPES[outer].limits[0] <= low and high <= DATA_TYPES[outer].limits[1]


cast = Operator("cast")
x, data_type = Variable("x"), Option[str]("data_type")
first = cast(x).shared()
second = cast(first, data_type=data_type)


def _types(m: Match) -> tuple[str, str, str]:
    """Return the data types before the first cast, between the two, and behind the second."""
    return m.r.type(m[x]).data_type, m.r.type(m.value(first)).data_type, m[data_type]


def _loses_nothing(m: Match) -> bool:
    inner, outer, _ = _types(m)
    return holds(outer, inner)


def _wraps_nothing(m: Match) -> bool:
    inner, outer, wanted = _types(m)
    # Floats saturate where integers wrap.
    return outer not in _DIGITS or inner in _DIGITS or wanted in _DIGITS or holds(wanted, inner)


RULES = (
    Rule(
        name="cast of cast",
        pattern=second,
        result=cast(x, data_type=data_type),
        where={
            "the first cast loses nothing": _loses_nothing,
            "the second does not saturate what one alone wraps": _wraps_nothing,
        },
    ),
)


def merge_casts(graph: Graph) -> Graph:
    """Cast the operand of an earlier cast directly, if the earlier cast loses nothing."""
    return apply_rules(graph, *RULES)
