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
"""Conditions on a match, by their texts."""


@dataclass(frozen=True, eq=False)
class Computed(Pattern):
    """An operand or option of a rule's result that takes code.

    Attributes:
        text: its spelling in formulas.
        make: returns a value or an option, or None if the rule does not apply after all.
    """

    text: str
    make: Callable[[Match], object]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False, kw_only=True)
class Rule:
    """A rewrite rule, which replaces each match of a pattern with a result.

    A rule that does not apply leaves the graph unchanged, even if its result cannot be built.

    Attributes:
        name: its name.
        pattern: the pattern.
        result: the replacement, in terms of the pattern's variables, numbers and options.
        where: the conditions besides the pattern.
        build: builds the result of a match and its last node, and returns True, or returns False. A rule has it if its result
            takes code. `result` is documentation then.
    """

    name: str
    pattern: Pattern
    result: Apply
    where: Conditions = field(default_factory=dict[str, Callable[[Match], bool]], kw_only=True)
    build: Callable[[Match, Node], bool] | None = field(default=None, kw_only=True)

    def __call__(self, r: Rewriter, node: Node) -> bool:
        """Replace a node that matches the pattern and return True, or return False."""
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
        >>> print(Rule(name="reciprocal", pattern=1 / x, result=Operator("reciprocal")(x)).describe())
        reciprocal(x) <- 1 / x
        """
        inside = dict.fromkeys([*parts(self.pattern), *parts(self.result)])
        named = [p for p in inside if isinstance(p, (Apply, OneOf)) and p.name]
        definitions = [f"\n    where {p.name} = {p.definition()}" for p in named]
        conditions = [f"\n    if {text}" for text in self.where]
        return "".join([f"{self.result} <- {self.pattern.definition()}", *definitions, *conditions])


def apply_rules(graph: Graph, *rules: Rule) -> Graph:
    """Apply the first rule that matches to every node. The operands of the node are rewritten before."""
    by_operator: dict[str, list[Rule]] = {}
    for rule in rules:
        for op in rule.ends:
            by_operator.setdefault(op, []).append(rule)

    def change(r: Rewriter, node: Node) -> bool:
        return any(rule(r, node) for rule in by_operator[node.op])

    return rewrite(graph, change, at=by_operator)


def _operand(match: Match, pattern: Pattern, output: int | None = None) -> int | None:
    """Return an operand of a rule's result, or the result itself with its value number. None if it cannot be built."""
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
