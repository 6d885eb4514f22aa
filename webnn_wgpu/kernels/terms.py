"""Terms: expressions of WGSL as small immutable trees. This module alone turns them into text: `str(term)` is WGSL.

Formulas of operators are written in WGSL's own notation and parsed into terms (`kernels/notation.py`). Fusion, the sharing of
kernels and emulation compare and rewrite the trees. A template prints them when it is rendered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

OPAQUE_ZERO = "opaque_zero"
"""Uniform that is always 0, which compilers do not know."""

_LEVELS = {"*": 3, "/": 3, "%": 3, "+": 2, "-": 2, **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 1)}
"""The precedence of the operators that WGSL allows beside others without parentheses."""


class Term:
    """An expression of WGSL. Terms are equal if their trees are. Its `repr` is its text in quotes.

    Example:
        >>> difference = Infix("-", Symbol("x"), Symbol("mean"))
        >>> print(Infix("*", difference, Uniform("scale")))
        (x - mean) * params.scale
    """

    __slots__ = ()

    @property
    def parts(self) -> tuple[Term, ...]:
        """The terms right below this one."""
        return ()

    def with_parts(self, *parts: Term) -> Term:
        """Return the same node above other terms, as many as it has."""
        del parts
        return self

    def rewritten(self, change: Callable[[Term], Term]) -> Term:
        """Return the tree with `change` applied to every node: to a node's parts first, then to the node above the results."""
        parts = self.parts
        new = [part.rewritten(change) for part in parts]
        same = all(map(operator.is_, new, parts))
        return change(self if same else self.with_parts(*new))

    def substituted(self, terms: Mapping[str, Term]) -> Term:
        """Return the tree with names replaced by terms. Names without a term stay.

        >>> print(FunctionCall("max", (Symbol("x"), Symbol("low"))).substituted({"low": Numeral("0.0")}))
        max(x, 0.0)
        """
        return self.rewritten(lambda term: terms.get(term.name, term) if isinstance(term, Symbol) else term)

    def walk(self) -> Iterator[Term]:
        """Yield every node, parts before the nodes that contain them."""
        for part in self.parts:
            yield from part.walk()
        yield self

    def __str__(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        # Plans in JSON and the keys of rendered sources use representations: they contain the text, as kernels do.
        return repr(str(self))


@dataclass(frozen=True, slots=True, repr=False)
class Symbol(Term):
    """An operand of a formula, or an argument or step of an expression."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class Uniform(Term):
    """A field of the kernel's uniform buffer."""

    field: str

    def __str__(self) -> str:
        return f"params.{self.field}"


@dataclass(frozen=True, slots=True, repr=False)
class Numeral(Term):
    """A number as WGSL spells it, with the suffix of its type: `0.0`, `31u`."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, repr=False)
class FunctionCall(Term):
    """A call of a function, WGSL's own or one of `shaders/lib/math`, or of a type, which converts or constructs a value."""

    function: str
    arguments: tuple[Term, ...]

    @property
    def parts(self) -> tuple[Term, ...]:
        """The arguments."""
        return self.arguments

    def with_parts(self, *parts: Term) -> FunctionCall:
        """Return the call with other arguments."""
        return FunctionCall(self.function, parts)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True, repr=False)
class Infix(Term):
    """An operator between two terms. Parentheses that WGSL needs around these are printed."""

    operator: str
    left: Term
    right: Term

    @property
    def parts(self) -> tuple[Term, ...]:
        """Both operands."""
        return self.left, self.right

    def with_parts(self, *parts: Term) -> Infix:
        """Return the operator between other operands."""
        return Infix(self.operator, *parts)

    def __str__(self) -> str:
        # Operators of one level are computed from left to right.
        return f"{self._beside(self.left, follows=True)} {self.operator} {self._beside(self.right, follows=False)}"

    def _beside(self, term: Term, *, follows: bool) -> str:
        """Return the text of an operand that precedes or, if `follows` is false, follows the operator."""
        if not isinstance(term, Infix):
            return str(term)
        if follows and term.operator == self.operator in ("&", "|", "^"):
            return str(term)
        own, inner = _LEVELS.get(self.operator, 9), _LEVELS.get(term.operator, 0)
        bare = inner > max(own, 1) or (follows and inner == own > 1)
        return str(term) if bare else f"({term})"


@dataclass(frozen=True, slots=True, repr=False)
class Prefix(Term):
    """An operator in front of a term. Parentheses that WGSL needs around this are printed."""

    operator: str
    value: Term

    @property
    def parts(self) -> tuple[Term, ...]:
        """The operand."""
        return (self.value,)

    def with_parts(self, *parts: Term) -> Prefix:
        """Return the operator in front of another operand."""
        return Prefix(self.operator, *parts)

    def __str__(self) -> str:
        return f"{self.operator}{_operand(self.value)}"


@dataclass(frozen=True, slots=True, repr=False)
class _Around(Term):
    """A node around one term."""

    value: Term

    @property
    def parts(self) -> tuple[Term, ...]:
        """The one term."""
        return (self.value,)

    def with_parts(self, *parts: Term) -> Self:
        """Return the node around another term."""
        (value,) = parts
        others = [getattr(self, name) for name in self.__match_args__[1:]]
        return type(self)(value, *others)


@dataclass(frozen=True, slots=True, repr=False)
class Parentheses(_Around):
    """A term in parentheses of the notation, which are kept even if WGSL does not need them."""

    def __str__(self) -> str:
        return f"({self.value})"


@dataclass(frozen=True, slots=True, repr=False)
class Component(_Around):
    """A component of a vector."""

    name: str

    def __str__(self) -> str:
        return f"{_operand(self.value)}.{self.name}"


@dataclass(frozen=True, slots=True, repr=False)
class Bitcast(_Around):
    """The bits of a value as another type."""

    type: str

    def __str__(self) -> str:
        return f"bitcast<{self.type}>({self.value})"


@dataclass(frozen=True, slots=True, repr=False)
class Rounded(_Around):
    """A value rounded to a data type that WGSL computes in a wider one, as if it had been stored.

    Attributes:
        data_type: one of `ROUNDED`.
    """

    data_type: str

    def __str__(self) -> str:
        if self.data_type == "uint8":
            return f"({Infix('&', self.value, Numeral('0xffu'))})"
        if self.data_type == "int8":
            return f"extractBits({self.value}, 0u, 8u)"
        # Not f32(f16(x)): some compilers leave both conversions out.
        return f"round_float16({self.value})"


ROUNDED = ("float16", "int8", "uint8")
"""The data types that WGSL computes in wider ones."""


@dataclass(frozen=True, slots=True, repr=False)
class Hidden(_Around):
    """A float that compilers cannot simplify across: it is combined with an unknown zero by exclusive or.

    Attributes:
        number: shifts the zero. Each use in an expression has a number of its own: the same zero twice would cancel out again.
    """

    number: int

    def __str__(self) -> str:
        return f"bitcast<f32>(bitcast<u32>({self.value}) ^ (params.{OPAQUE_ZERO} << {self.number % 32}u))"


def _operand(value: Term) -> str:
    """Return the text of a term, in parentheses if it has an operator."""
    return f"({value})" if isinstance(value, Infix | Prefix) else str(value)
