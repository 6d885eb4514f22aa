"""Patterns: formulas of operators, written as formulas.

    x = Variable("x")
    gelu = product(0.5, x, 1 + Operator("erf")(x / Number(math.sqrt(2), "sqrt(2)")))

Arithmetic between patterns makes patterns of `add`, `sub`, `mul`, `div`, `pow` and `neg`, and numbers in it are constants. Each
use of the same variable, or of the same pattern of an operator, is the same value. Sums and products match in both orders, and
`a | b` is a or else b. A value inside a match has no consumer outside of it and is no output of the graph, so that the rewrite
can drop it. `shared()` removes that condition. `matching.py` matches patterns with graphs, and `rules.py` replaces the matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import EllipsisType, MappingProxyType
from typing import Generic, TypeAlias, TypeVar

from ..ir.graph import Node
from ..ops import OPS
from .rewriting import Rewriter

T = TypeVar("T")

_SYMBOLS = {"add": " + ", "sub": " - ", "mul": " * ", "div": " / ", "pow": " ** "}
_PRECEDENCE = {"add": 1, "sub": 1, "mul": 2, "div": 2, "neg": 3, "pow": 4}
_ATOM = 5


@dataclass(frozen=True, eq=False)
class Pattern:
    """A description of values, which matches some of them. Printed, it is a formula."""

    def __add__(self, other: Part) -> Apply:
        return Operator("add")(self, other)

    def __radd__(self, other: Part) -> Apply:
        return Operator("add")(other, self)

    def __sub__(self, other: Part) -> Apply:
        return Operator("sub")(self, other)

    def __rsub__(self, other: Part) -> Apply:
        return Operator("sub")(other, self)

    def __mul__(self, other: Part) -> Apply:
        return Operator("mul")(self, other)

    def __rmul__(self, other: Part) -> Apply:
        return Operator("mul")(other, self)

    def __truediv__(self, other: Part) -> Apply:
        return Operator("div")(self, other)

    def __rtruediv__(self, other: Part) -> Apply:
        return Operator("div")(other, self)

    def __pow__(self, other: Part) -> Apply:
        return Operator("pow")(self, other)

    def __neg__(self) -> Apply:
        return Operator("neg")(self)

    def __or__(self, other: Pattern) -> OneOf:
        return OneOf((*(self.choices if isinstance(self, OneOf) else (self,)), other))

    @property
    def precedence(self) -> int:
        """How tightly the formula holds together: 0 for alternatives, 5 for a name or call."""
        return _ATOM

    def definition(self) -> str:
        """Return the formula, also of a pattern that has a name."""
        return str(self)


@dataclass(frozen=True, eq=False)
class Variable(Pattern):
    """Any value.

    Attributes:
        name: its name in formulas.
        types: the permitted data types. Empty permits all.
        constant: whether it must be a constant.
        optional: whether it may be an absent operand.
    """

    name: str
    types: tuple[str, ...] = ()
    constant: bool = False
    optional: bool = False

    def __str__(self) -> str:
        return f"[{self.name}]" if self.optional else self.name


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    """A constant of one element, which is a certain number.

    A number that the constant's data type holds must be exactly that. Others, which exporters round in one way or another, may
    be off by the distance of neighbors in the data type.

    Attributes:
        value: the number.
        text: its spelling in formulas, unless it is spelled in digits.
    """

    value: float
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"{self.value:g}"


@dataclass(frozen=True, eq=False)
class AnyNumber(Pattern):
    """Any constant of one element. Each use of the same pattern is the same number.

    Attributes:
        name: its name in formulas.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Option(Generic[T]):
    """Any value of an operator's option. Each use of the same object must have an equal value.

    Attributes:
        name: its name in formulas.
        read: returns a node's option, if that is not the attribute itself.
    """

    name: str
    read: Callable[[Rewriter, Node], T] | None = None

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class OneOf(Pattern):
    """The first of several patterns that matches.

    Attributes:
        choices: the patterns.
        text: its spelling in formulas, unless it is spelled as its patterns.
        name: its name in formulas, which then define it separately.
    """

    choices: tuple[Pattern, ...]
    text: str = ""
    name: str = ""

    def named(self, name: str) -> OneOf:
        """Return the pattern with a name."""
        return replace(self, name=name)

    @property
    def precedence(self) -> int:
        """How tightly the formula holds together."""
        return _ATOM if self.name else 2 if self.text else 0

    def definition(self) -> str:
        """Return the formula."""
        return self.text or " | ".join(map(str, self.choices))

    def __str__(self) -> str:
        return self.name or self.definition()


@dataclass(frozen=True, eq=False, kw_only=True)
class Apply(Pattern):
    """The result of an operator.

    Attributes:
        operator: the operator.
        operands: its operands. None is an absent operand.
        options: the required values of its options, or an `Option`. Other options may have any value.
        more: whether more operands are permitted.
        types: the permitted data types of the result. Empty permits all.
        is_shared: whether the result may have other consumers, or be an output of the graph.
        name: its name in formulas, which then define it separately.
        like: the pattern whose operator and options this operator copies, in the result of a rule.
    """

    operator: Operator
    operands: tuple[Pattern | None, ...]
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    more: bool = False
    types: tuple[str, ...] = ()
    is_shared: bool = False
    name: str = ""
    like: Apply | None = None

    def shared(self) -> Apply:
        """Return the pattern of a result that may have other consumers, or be an output of the graph."""
        return replace(self, is_shared=True)

    def named(self, name: str) -> Apply:
        """Return the pattern with a name."""
        return replace(self, name=name)

    def of(self, *types: str) -> Apply:
        """Return the pattern of a result of one of these data types."""
        return replace(self, types=types)

    def on(self, *operands: Part | EllipsisType, **options: object) -> Apply:
        """Return the same operator with other operands, and the same options but for those that are given: a rule's result.

        `...` behind the operands stands for the operator's own others.
        """
        return replace(self.operator(*operands, **options), like=self)

    @property
    def precedence(self) -> int:
        """How tightly the formula holds together."""
        return _ATOM if self.name else _PRECEDENCE.get(str(self.operator), _ATOM)

    def definition(self) -> str:
        """Return the formula."""
        op, own = str(self.operator), _PRECEDENCE.get(str(self.operator), _ATOM)
        if op == "neg":
            return f"-{_bracketed(self.operands[0], own)}"
        if op in _SYMBOLS:
            left, right = self.operands
            # a - (b - c) is not a - b - c, but a + (b + c) is a + b + c.
            same = isinstance(right, Apply) and str(right.operator) == op and OPS[op].commutative
            return f"{_bracketed(left, own)}{_SYMBOLS[op]}{_bracketed(right, own if same else own + 1)}"
        listed = [str(operand) if operand else "none" for operand in self.operands]
        options = [key if str(value) == key else f"{key}={_spelled(value)}" for key, value in self.options.items()]
        return f"{op}({', '.join([*listed, *(['...'] if self.more else []), *options])})"

    def __str__(self) -> str:
        return self.name or self.definition()


def _spelled(option: object) -> str:
    return f"{option}" if isinstance(option, Pattern) else f"{option!r}"


def _bracketed(pattern: Pattern | None, precedence: int) -> str:
    return f"({pattern})" if pattern is not None and pattern.precedence < precedence else str(pattern)


Part: TypeAlias = "Pattern | float | None"
"""An operand as patterns are written: a number is a constant, None an operand that is absent."""


@dataclass(frozen=True, init=False)
class Operator:
    """An operator, or any of several, by name: called, it makes the pattern of its result.

    Attributes:
        names: the names of the operators.
        text: their spelling in formulas.

    >>> x = Variable("x")
    >>> print(1 / (1 + Operator("exp")(-x)))
    1 / (1 + exp(-x))
    """

    names: tuple[str, ...]
    text: str

    def __init__(self, *names: str, text: str = "") -> None:
        unknown = [name for name in names if name not in OPS]
        assert names
        assert not unknown, f"no such operators: {unknown}"
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "text", text or "|".join(names))

    def __call__(self, *operands: Part | EllipsisType, **options: object) -> Apply:
        """Return the pattern of a result. `...` behind the operands stands for any others."""
        known = {attr.name for name in self.names for attr in OPS[name].attrs}
        assert known.issuperset(options), f"{self} has no options {sorted(set(options) - known)}"
        given = tuple(Number(p) if isinstance(p, (int, float)) else p for p in operands if not isinstance(p, EllipsisType))
        return Apply(operator=self, operands=given, options=MappingProxyType(options), more=len(given) < len(operands))

    def __str__(self) -> str:
        return self.text


def product(a: Part, b: Part, c: Part) -> OneOf:
    """Return the pattern of a product of three factors, whichever two of them are multiplied first."""
    factors = [Number(p) if isinstance(p, (int, float)) else p for p in (a, b, c)]
    times = Operator("mul")
    # The single factor comes first.
    pairs = ((factors[i], times(*factors[:i], *factors[i + 1 :])) for i in range(3))
    return OneOf(tuple(times(*pair) for pair in pairs), " * ".join(_bracketed(f, _PRECEDENCE["mul"]) for f in factors))


def alternatives(pattern: Pattern) -> Iterator[Apply]:
    """Yield the operators that a pattern may end in."""
    if isinstance(pattern, OneOf):
        for choice in pattern.choices:
            yield from alternatives(choice)
    elif isinstance(pattern, Apply):
        yield pattern


def parts(pattern: Pattern) -> Iterator[Pattern]:
    """Yield a pattern and all patterns inside it, each once, from the last operator to the first."""
    queue: dict[Pattern, None] = {pattern: None}
    left = [pattern]
    while left:
        each = left.pop(0)
        inner = each.choices if isinstance(each, OneOf) else each.operands if isinstance(each, Apply) else ()
        new = [p for p in inner if p is not None and p not in queue]
        queue.update(dict.fromkeys(new))
        left += new
    yield from queue
