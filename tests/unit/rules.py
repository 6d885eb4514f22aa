"""Graphs made of the rules of passes: examples that match, and near misses of them that must not."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import Sketch
from tests.unit.rewrites import normal
from tests.unit.rule_examples import GIVEN
from webnn_wgpu.core.data_types import ANY
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import PASSES
from webnn_wgpu.passes.patterns import AnyNumber, Apply, Number, OneOf, Option, Pattern, Variable, parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.passes.rules import Rule

RULES = {rule.name: rule for each in PASSES for rule in each.rules}


@dataclass(frozen=True)
class Form:
    """One of the forms that a pattern has.

    Attributes:
        chosen: the choice of every pattern of alternatives.
        swapped: whether sums and products have their operands the other way round.
        given: whether operands that may be absent are there.
        operators: which operator of several.
    """

    chosen: Mapping[OneOf, int]
    swapped: bool
    given: bool
    operator: int


@dataclass(kw_only=True)
class Change:
    """What makes a near miss of an example.

    Attributes:
        number: a number that is another.
        widened: a number that adds a dimension to what it is combined with.
        varying: a constant that is an input.
        parted: an operator, and its operand that is not what stands elsewhere.
        turned: an operator whose first two operands are swapped.
        options: an operator, and options that it has instead.
        replaced: an operator, and what stands in its place.
        data_type: what floats are.
        given: what the example is made of, instead of what it would be.
    """

    number: Number | None = None
    widened: Pattern | None = None
    varying: Variable | None = None
    parted: tuple[Apply, int] | None = None
    turned: Apply | None = None
    options: tuple[Apply, dict[str, Any]] | None = None
    replaced: tuple[Apply, str] | None = None
    data_type: str = ""
    given: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Example:
    """The graph of a form of a rule's pattern.

    Attributes:
        sketch: the graph without outputs.
        values: what stands for each pattern in it.
        last: its output.
    """

    rule: Rule
    form: Form
    change: Change = field(default_factory=Change)
    sketch: Sketch = field(default_factory=Sketch, init=False)
    values: dict[Pattern, int | None] = field(default_factory=dict[Pattern, "int | None"], init=False)

    def __post_init__(self) -> None:
        self.given = GIVEN.get(self.rule.name, {}) | self.change.given
        self._named: dict[str, int] = {}
        last = self.make(self.rule.pattern)
        assert last is not None
        self.last = last

    def graph(self, *outputs: int) -> Graph:
        """Return the graph, with further outputs."""
        return self.sketch.graph(self.last, *outputs)

    def make(self, pattern: Pattern | None, like: int | None = None) -> int | None:
        """Return what stands for a pattern; `like` has a number's data type."""
        if pattern is None:
            return None
        if pattern not in self.values:
            self.values[pattern] = self._made(pattern, like)
        return self.values[pattern]

    def _made(self, pattern: Pattern, like: int | None) -> int | None:
        match pattern:
            case OneOf():
                return self.make(pattern.choices[self.form.chosen[pattern]])
            case Apply():
                return self._applied(pattern)
            case Variable():
                absent = pattern.optional and not self.form.given
                return (
                    None
                    if absent
                    else self.named(pattern.name, constant=pattern.constant and pattern is not self.change.varying)
                )
            case AnyNumber() | Number():
                number: Any = pattern.value if isinstance(pattern, Number) else self.given[pattern.name]
                if pattern is self.change.number:
                    number = 1.02 * number + 0.03 if isfinite(number) else 0
                dtype = np.float32 if like is None else self.sketch.type(like).numpy
                array = number if isinstance(number, np.ndarray) else np.asarray(number, dtype)
                if pattern is self.change.widened and like is not None:
                    array = array.reshape((1,) * (self.sketch.type(like).rank + 1))
                return self.sketch.constant(self.typed(array))
            case _:
                raise AssertionError(pattern)

    def named(self, name: str, *, constant: bool = False) -> int:
        """Return what is given by a name: an input, or else a constant."""
        if name not in self._named:
            given = self.given.get(name, normal(4, 4, 4, seed=len(self._named)))
            if callable(given):
                given = given(self)
            if isinstance(given, np.ndarray):
                array = self.typed(given)
                given = self.sketch.constant(array) if constant else self.sketch.input(array)
            self._named[name] = given
        return self._named[name]

    def another(self, value: int) -> int:
        """Return another value of the same type: a number for a number, or else the same elements."""
        array = self.sketch.constants.get(value)
        if array is None or array.size > 1:
            return self.sketch.apply("identity", value)
        return self.sketch.constant(np.asarray(2 * array, array.dtype))

    def typed(self, array: Array) -> Array:
        """Return an array of another data type, if a near miss has another in the place of its own."""
        types = {name for p in parts(self.rule.pattern) if isinstance(p, (Apply, Variable)) for name in p.types}
        return array.astype(self.change.data_type) if self.change.data_type and array.dtype.name in types else array

    def _applied(self, pattern: Apply) -> int | None:
        # A condition has a type of its own.
        alike = pattern.operands[1:] if "where" in pattern.operator.names else pattern.operands
        first = next((p for p in alike if p is not None and not isinstance(p, (Number, AnyNumber))), None)
        like = None if first is None else self.make(first)
        operands = [self.make(p, like) for p in pattern.operands]
        if self.change.parted is not None and pattern is self.change.parted[0]:
            operands[self.change.parted[1]] = self.another(operands[self.change.parted[1]] or 0)
        for place, array in self.given.get(f"operands of {pattern.operator}", {}).items():
            operands[place] = self.sketch.constant(array)
        names = pattern.operator.names
        op = names[self.form.operator % len(names)]
        if pattern is self.change.turned or (self.form.swapped and OPS[op].commutative):
            operands[:2] = operands[1::-1]
        given = self.given.get(str(pattern.operator), {})
        options = dict(given(self, operands) if callable(given) else given)
        for key, option in pattern.options.items():
            options[key] = self.given[option.name] if isinstance(option, Option) else option
        if self.change.options is not None and pattern is self.change.options[0]:
            options |= self.change.options[1]
        if self.change.replaced is not None and pattern is self.change.replaced[0]:
            op, options = self.change.replaced[1], {}
        more = self.given["more"] if pattern.more and "more" in self.given else ()
        return self.sketch.apply(op, *operands, *(self.sketch.constant(array) for array in more), label=op, **options)

    def takes(self, pattern: Pattern) -> bool:
        """Return whether a pattern is the chosen one of its alternatives."""
        return any(each.choices[number] is pattern for each, number in self.form.chosen.items())


def forms(rule: Rule) -> Iterator[Form]:
    """Yield the forms of a rule's pattern."""
    inside = list(parts(rule.pattern))
    several = [p for p in inside if isinstance(p, OneOf)]
    names = max(len(p.operator.names) for p in inside if isinstance(p, Apply))
    optional = any(isinstance(p, Variable) and p.optional for p in inside)
    swappable = any(isinstance(p, Apply) and OPS[p.operator.names[0]].commutative for p in inside)
    for numbers in product(*(range(len(p.choices)) for p in several)):
        for swapped, given, operator in product({False, swappable}, {True, not optional}, range(names)):
            yield Form(dict(zip(several, numbers, strict=True)), swapped, given, operator)


def near_misses(rule: Rule, form: Form) -> Iterator[tuple[str, Graph]]:
    """Yield graphs that are almost an example of a rule, each with the difference."""
    example = Example(rule, form)
    made = [p for p in example.values if isinstance(p, Apply)]
    for pattern in made:
        value = example.values[pattern]
        if value is None or value == example.last:
            continue
        if not pattern.is_shared:
            yield f"{pattern} is an output", example.graph(value)
            again = Example(rule, form)
            value = again.values[pattern]
            yield f"{pattern} has a second consumer", again.graph(again.sketch.apply("identity", value))
    for what, change in changes(example, made):
        try:
            yield what, Example(rule, form, change).graph()
        except MLTypeError:
            continue


def changes(example: Example, made: list[Apply]) -> Iterator[tuple[str, Change]]:
    """Yield what would make a near miss of an example, if operators allow it."""
    for pattern in example.values:
        if isinstance(pattern, Number):
            yield f"{pattern} is another number", Change(number=pattern)
        if isinstance(pattern, (Number, AnyNumber)):
            yield f"{pattern} adds a dimension", Change(widened=pattern)
        if isinstance(pattern, Variable) and pattern.constant and example.values[pattern] is not None:
            yield f"{pattern} is an input", Change(varying=pattern)
    places = [(p, i) for p in made for i, operand in enumerate(p.operands) if isinstance(operand, (Variable, AnyNumber))]
    for pattern, i in places:
        operand = pattern.operands[i]
        if sum(p.operands[j] is operand for p, j in places) > 1 and example.values[operand] is not None:
            yield f"{operand} of {pattern} is another value", Change(parted=(pattern, i))
    for pattern in made:
        operands = [p and example.values[p] for p in pattern.operands]
        op = example.sketch.nodes[[n.outputs[0] for n in example.sketch.nodes].index(example.values[pattern] or 0)]
        if len(operands) > 1 and None not in operands[:2] and operands[0] != operands[1] and not OPS[op.op].commutative:
            yield f"{pattern} has its operands swapped", Change(turned=pattern)
        for key, option in pattern.options.items():
            for other in others(op.attrs[key] if isinstance(option, Option) else option):
                # An option that stands nowhere else is what it is.
                if not isinstance(option, Option) or sum(option in p.options.values() for p in made) > 1:
                    yield f"{pattern} has {key}={other}", Change(options=(pattern, {key: other}))
        for other in substitutes(op.op, len(op.operands)):
            if other not in pattern.operator.names:
                yield f"{other} instead of {pattern}", Change(replaced=(pattern, other))
    typed = {p.types for p in parts(example.rule.pattern) if isinstance(p, (Apply, Variable)) and p.types}
    for data_type in ANY if typed else ():
        if not any(data_type in types for types in typed):
            yield f"{data_type} numbers", Change(data_type=data_type)


def others(option: Any) -> list[Any]:
    """Return what an option might be instead."""
    match option:
        case bool():
            return [not option]
        case int() | float():
            return [option + 1 if isfinite(option) else 0]
        case str():
            return {"constant": ["edge", "reflection"]}.get(option, [])
        case tuple() if len(option) > 1:
            return [option[::-1]]
        case tuple():
            return [tuple(n - 1 for n in option)]
        case _:
            return []


def substitutes(op: str, operands: int) -> list[str]:
    """Return operators that may stand in the place of one with as many operands."""
    elementwise = OPS[op].elementwise is not None
    if elementwise and operands == 1:
        return ["abs", "tanh", "softplus"]
    if elementwise:
        return ["max", "add", "mul", "sub", "div"]
    return {"reduceMean": ["reduceSum", "reduceMax"], "transpose": ["neg"]}.get(op, [])
