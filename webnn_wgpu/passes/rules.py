"""Rules: a pattern, and the operators that take its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.graph import Graph, Node
from .matching import Match, matches
from .patterns import AnyNumber, Apply, OneOf, Option, Pattern, Variable, alternatives, parts
from .rewriting import Rewriter, rewrite

Conditions: TypeAlias = Mapping[str, Callable[[Match], bool]]
"""What must hold of a match, by its text."""


@dataclass(frozen=True, eq=False)
class Computed(Pattern):
    """An operand or option of a rule's result that takes code.

    Attributes:
        text: how formulas spell it.
        make: returns it, a value or an option; None where the rule does not hold after all.
    """

    text: str
    make: Callable[[Match], object]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False, kw_only=True)
class Rule:
    """Puts a result in the place of a pattern.

    A rule that does not hold leaves the graph as it was, also where that shows while the result is made.

    Attributes:
        name: its name.
        pattern: what it looks for.
        result: what takes its place, made of the pattern's variables, numbers and options.
        where: further conditions.
        build: makes the result of a match, whose last node is given, and returns True, or returns False. It is there where that
            takes code, and `result` is for readers then.
    """

    name: str
    pattern: Pattern
    result: Apply
    where: Conditions = field(default_factory=dict[str, Callable[[Match], bool]], kw_only=True)
    build: Callable[[Match, Node], bool] | None = field(default=None, kw_only=True)

    def __call__(self, r: Rewriter, node: Node) -> bool:
        """Put the result in the place of a node that is the pattern, and return True; else return False."""
        return any(r.attempt(self._build, match, node) for match in matches(r, self.pattern, node))

    @functools.cached_property
    def ends(self) -> frozenset[str]:
        """The operators that the pattern may end in."""
        return frozenset(name for each in alternatives(self.pattern) for name in each.operator.names)

    def _build(self, match: Match, node: Node) -> bool:
        if not all(holds(match) for holds in self.where.values()):
            return False
        if self.build is not None:
            return self.build(match, node)
        return _operand(match, self.result, node.outputs[0]) is not None

    def describe(self) -> str:
        """Return the rule as text: the result, the pattern, the parts of it that have names, and the conditions.

        >>> from .patterns import Operator
        >>> x = Variable("x")
        >>> print(Rule("reciprocal", 1 / x, Operator("reciprocal")(x)).describe())
        reciprocal(x) <- 1 / x
        """
        inside = dict.fromkeys([*parts(self.pattern), *parts(self.result)])
        named = [p for p in inside if isinstance(p, (Apply, OneOf)) and p.name]
        definitions = [f"\n    where {p.name} = {p.definition()}" for p in named]
        conditions = [f"\n    if {text}" for text in self.where]
        return "".join([f"{self.result} <- {self.pattern.definition()}", *definitions, *conditions])


def apply_rules(graph: Graph, *rules: Rule) -> Graph:
    """Apply rules to every node, the first that holds; operands have been rewritten before."""
    by_operator: dict[str, list[Rule]] = {}
    for rule in rules:
        for op in rule.ends:
            by_operator.setdefault(op, []).append(rule)

    def change(r: Rewriter, node: Node) -> bool:
        return any(rule(r, node) for rule in by_operator[node.op])

    return rewrite(graph, change, at=by_operator)


def _operand(match: Match, pattern: Pattern, output: int | None = None) -> int | None:
    """Return an operand of a rule's result, or the result itself, which has a value already; None if it cannot be made."""
    match pattern:
        case Apply():
            like = None if pattern.like is None else match[pattern.like]
            operands = [None if each is None else _operand(match, each) for each in pattern.operands]
            options = {key: _option(match, option) for key, option in pattern.options.items()}
            missing = [
                each
                for each, operand in zip(pattern.operands, operands, strict=True)
                if each is not None and operand is None and not (isinstance(each, Variable) and each.optional)
            ]
            if missing or None in options.values():
                return None
            if like is None:
                return match.r.add(pattern.operator.names[0], operands, options, match.nodes, output)
            more = like.inputs[len(operands) :] if pattern.more else ()
            return match.r.add(like.op, (*operands, *more), {**like.attrs, **options}, match.nodes, output)
        case Computed():
            value = pattern.make(match)
            assert value is None or isinstance(value, int)
            return value
        case Variable():
            return match.get(pattern)
        case _:
            raise AssertionError(f"{pattern} is no operand of a result")


def _option(match: Match, option: object) -> object:
    match option:
        case Computed():
            return option.make(match)
        case AnyNumber() | Option():
            return match.found[option]
        case _:
            return option
