"""The notation of formulas: expressions of WGSL as text, parsed into terms.

It has numbers, names, `params.field` for uniforms, calls, `bitcast<type>(x)`, members, and all operators but `&&` and `||`,
which become branches. `T` stands for a WGSL type, alone and at the end of a function's name: of the type i32, `div_T(a, T(1))`
is `div_i32(a, i32(1))`.
"""

from __future__ import annotations

import re
from functools import cache

from .terms import Bitcast, Component, FunctionCall, Infix, Numeral, Parentheses, Prefix, Symbol, Term, Uniform

_NUMBER = r"0x[0-9a-fA-F]+[iu]?|\d+(?:\.\d+)?(?:e[-+]?\d+)?(?:li|lu|[iufh])?"
_TOKEN = re.compile(rf"\s*(?:({_NUMBER})\b|([A-Za-z_]\w*)|(<<|>>|[<>=!]=|[-+*/%&|^~!<>().,]))")

_BINARY = (("|",), ("^",), ("&",), ("==", "!=", "<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
"""The operators between two terms, those that bind least first."""

_UNARY = ("-", "~", "!")


@cache
def term(notation: str, type_: str = "") -> Term:
    """Return the term of a text.

    Args:
        notation: an expression.
        type_: the WGSL type that `T` stands for.

    Raises:
        ValueError: the text is no expression. The message states the position.

    Example:
        >>> print(term("max(x, T(0)) * params.alpha", "i32"))
        max(x, i32(0)) * params.alpha
    """
    return _Parser(notation, type_).parsed()


class _Parser:
    """Descends recursively through one text."""

    def __init__(self, notation: str, type_: str) -> None:
        self._notation, self._type = notation, type_
        self._at = self._end = 0
        self._number = self._name = self._operator = ""
        self._advance()

    def parsed(self) -> Term:
        """Return the whole text as a term."""
        found = self._binary(0)
        if self._at < len(self._notation):
            raise self._error("an operator")
        return found

    def _advance(self) -> None:
        """Read the next token. At the end of the text, all tokens are empty."""
        self._at = self._end
        self._number = self._name = self._operator = ""
        if found := _TOKEN.match(self._notation, self._at):
            self._number, self._name, self._operator = (group or "" for group in found.groups())
            self._end = found.end()
        elif self._notation[self._at :].strip():
            raise self._error("a number, a name or an operator")
        else:
            self._at = len(self._notation)

    def _error(self, wanted: str) -> ValueError:
        return ValueError(f"{wanted} must stand at column {self._at + 1} of {self._notation!r}")

    def _take(self, operator: str) -> bool:
        """Read an operator if it is next."""
        found = self._operator == operator
        if found:
            self._advance()
        return found

    def _need(self, operator: str) -> None:
        if not self._take(operator):
            raise self._error(operator)

    def _binary(self, level: int) -> Term:
        if level == len(_BINARY):
            return self._unary()
        found = self._binary(level + 1)
        while self._operator in _BINARY[level]:
            operator = self._operator
            self._advance()
            found = Infix(operator, found, self._binary(level + 1))
        return found

    def _unary(self) -> Term:
        for operator in _UNARY:
            if self._take(operator):
                return Prefix(operator, self._unary())
        found = self._primary()
        while self._take("."):
            found = Component(found, self._taken_name())
        return found

    def _primary(self) -> Term:
        if self._take("("):
            found = self._binary(0)
            self._need(")")
            return Parentheses(found)
        if number := self._number:
            self._advance()
            return Numeral(number)
        name = self._taken_name()
        if name == "params":
            self._need(".")
            return Uniform(self._taken_name())
        if name == "bitcast":
            self._need("<")
            type_ = self._taken_name()
            self._need(">")
            self._need("(")
            value = self._binary(0)
            self._need(")")
            return Bitcast(value, type_)
        return FunctionCall(name, self._arguments()) if self._take("(") else Symbol(name)

    def _arguments(self) -> tuple[Term, ...]:
        found = [self._binary(0)]
        while self._take(","):
            found.append(self._binary(0))
        self._need(")")
        return tuple(found)

    def _taken_name(self) -> str:
        name = self._name
        if not name:
            raise self._error("a name")
        self._advance()
        if name == "T" or name.endswith("_T"):
            if not self._type:
                raise ValueError(f"{self._notation!r} has T, but no type is given for it")
            return name[:-1] + self._type
        return name
