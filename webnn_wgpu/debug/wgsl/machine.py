"""Statements and functions, run by all invocations of a wave side by side.

A statement gets the lanes that reach it, and returns those that continue behind it. The function or loop keeps the lanes that
return, break or continue until its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ...core.errors import MLTypeError, OperationError
from . import syntax
from .expressions import ASSIGNABLE, Frame, Texture, located
from .findings import Findings
from .intrinsics import Intrinsics
from .memory import Clock, MemoryVariable
from .names import Names
from .parsing import parse_expression
from .places import InvocationVariable, LocalPlace, MemoryPlace
from .syntax import Block, Expression, Function, Statement, SyntaxNode, attribute
from .types import StructType
from .values import Composite, Fault, Value, binary, concrete, converted, describe, in_lane, merged, type_of, zero
from .wave import Mask, Wave, joined


class Debugger(Protocol):
    """An object that is notified of each statement before it runs."""

    def before(self, node: SyntaxNode, machine: Machine) -> None:
        """Examine the machine, which is about to run a statement."""
        ...


@dataclass(eq=False)
class _Target:
    """A loop or switch: the lanes that left it by `break`, and those that wait for its next iteration."""

    loop: bool
    broken: Mask | None = None
    continued: Mask | None = None


@dataclass
class Budget:
    """The number of statements that may still run.

    Attributes:
        steps: the number at the beginning.
        left: the remaining number.
    """

    steps: int
    left: int


class Machine(Intrinsics):
    """An interpreter of an entry point.

    Args:
        names: the module.
        wave: the invocations.
        variables: the variables of the module by name.
        findings: the collector of faults.
        clocks: the clock of each address space, which barriers advance.
        budget: the number of statements that may run.
        debugger: the object that is notified of each statement, or None.
    """

    def __init__(
        self,
        names: Names,
        wave: Wave,
        variables: dict[str, InvocationVariable | MemoryVariable | Texture],
        findings: Findings,
        clocks: dict[str, Clock],
        budget: Budget,
        debugger: Debugger | None = None,
    ) -> None:
        super().__init__(names, wave, variables, findings)
        self.clocks, self._budget, self._debugger = clocks, budget, debugger
        self._targets: list[_Target] = []

    def run(self, entry: Function) -> None:
        """Run the entry point in all lanes."""
        self.frame = Frame(function=entry)
        for parameter in entry.parameters:
            builtin = attribute(parameter, "builtin")
            type_ = self.names.type(parameter.type, self.evaluate)
            if builtin is not None:
                self.frame.names[parameter.name] = self._builtin(builtin)
            elif isinstance(type_, StructType):
                declared = self.names.module.declarations[type_.name]
                assert isinstance(declared, syntax.Structure)
                data = {m.name: self._builtin(a) for m in declared.members if (a := attribute(m, "builtin"))}
                self.frame.names[parameter.name] = Composite(type_, data)
        with np.errstate(all="ignore"):
            self._block(entry.body, self.wave.every)

    def _builtin(self, builtin: syntax.Attribute) -> Value:
        name = str(builtin.arguments[0])
        value = self.wave.builtin(name)
        if value is None:
            raise MLTypeError(
                "compute shaders do not have this built-in value", operator="interpret", got=f"{name}, line {builtin.line}"
            )
        return value

    def invoke(self, function: Function, arguments: list[Value], node: SyntaxNode) -> Value:
        """Call a function of the module."""
        if len(arguments) != len(function.parameters):
            raise Fault(f"{function.name} has {len(function.parameters)} parameters; {len(arguments)} arguments are given")
        if self.frame.within(function):
            raise Fault(f"{function.name} calls itself, which no function of WGSL may, also by way of others")
        frame = Frame(function=function, call=node, caller=self.frame)
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            try:
                frame.names[parameter.name] = converted(argument, self.names.type(parameter.type, self.evaluate))
            except Fault as fault:
                raise Fault(f"{fault} for the parameter {parameter.name} of {function.name}") from None
        outer, mask, targets = self.frame, self.mask, self._targets
        self.frame, self._targets = frame, []
        self._block(function.body, mask)
        self.frame, self.mask, self._targets = outer, mask, targets
        return frame.result

    def _block(self, block: Block, mask: Mask) -> Mask | None:
        outer = self.frame.names
        self.frame.names = dict(outer)
        after = self._all(block.statements, mask)
        self.frame.names = outer
        return after

    def _all(self, statements: tuple[Statement, ...], mask: Mask) -> Mask | None:
        left: Mask | None = mask
        for statement in statements:
            if left is None:
                return None
            left = self._run(statement, left)
        return left

    def _run(self, node: Statement, mask: Mask) -> Mask | None:
        self.mask = mask
        self._count(node)
        if self._debugger is not None:
            self._debugger.before(node, self)
        try:
            return self._RUN[type(node)](self, node, mask)
        except Fault as fault:
            raise located(fault, node) from None

    def _count(self, node: SyntaxNode) -> None:
        self._budget.left -= 1
        if self._budget.left < 0:
            raise OperationError(
                "the kernel did not end within the allowed number of steps",
                operator="interpret",
                got=f"line {node.line} after {self._budget.steps} statements",
                hint="Is there a loop without end? If not, give a higher max_steps, or fewer workgroups",
            )

    def _declaration(self, node: syntax.Declaration, mask: Mask) -> Mask:
        value = None if node.value is None else self.evaluate(node.value)
        if node.type is not None:
            type_ = self.names.type(node.type, self.evaluate)
            value = zero(type_) if value is None else converted(value, type_)
        elif node.kind != "const":
            value = concrete(value)
        self.frame.names[node.name] = InvocationVariable(value, mask) if node.kind == "var" else value
        return mask

    def _assign(self, node: syntax.Assign, mask: Mask) -> Mask:
        if node.target is None:
            self.evaluate(node.value)
            return mask
        place = self.reach(node.target, writing=True)
        if not isinstance(place, LocalPlace | MemoryPlace):
            raise Fault(ASSIGNABLE)
        value = self.evaluate(node.value)
        if node.operator != "=":
            value = binary(node.operator[:-1], self.load(place, node), value)
        self.store(place, self._fitting(place, value), node)
        return mask

    def _fitting(self, place: LocalPlace | MemoryPlace, value: Value) -> Value:
        if isinstance(place, MemoryPlace):
            return converted(value, place.type)
        old = place.load()
        return converted(value, type_of(old)) if isinstance(old, np.ndarray | Composite) else value

    def _call_statement(self, node: syntax.CallStatement, mask: Mask) -> Mask:
        self.evaluate(node.call)
        return mask

    def _assertion(self, node: syntax.Assertion, mask: Mask) -> Mask:
        if not self._truth(node.condition).all():
            raise Fault("the const_assert does not hold")
        return mask

    def _truth(self, node: Expression) -> Any:
        condition = self.evaluate(node)
        if not isinstance(condition, np.ndarray) or condition.dtype.kind != "b" or condition.ndim != 1:
            raise located(Fault(f"a condition must be a bool, and {describe(condition)} is given"), node)
        return condition

    def _if(self, node: syntax.If, mask: Mask) -> Mask | None:
        yes, no = mask.split(self._truth(node.condition))
        after = None if yes is None else self._block(node.then, yes)
        if no is None or node.other is None:
            return joined(after, no)
        other = self._run(node.other, no)
        return joined(after, other)

    def _switch(self, node: syntax.Switch, mask: Mask) -> Mask | None:
        selector = concrete(self.evaluate(node.selector))
        target = _Target(loop=False)
        self._targets.append(target)
        left: Mask | None = mask
        after: Mask | None = None
        default = next((case for case in node.cases if None in case.selectors), None)
        chosen: list[tuple[syntax.SwitchClause, Mask]] = []
        for case in node.cases:
            for expression in case.selectors:
                if left is None or expression is None:
                    continue
                yes, left = left.split(binary("==", selector, self.evaluate(expression)))
                chosen += [(case, yes)] if yes is not None else []
        if left is not None:
            if default is None:
                after = left
            else:
                chosen.append((default, left))
        for case, lanes in chosen:
            after = joined(after, self._block(case.body, lanes))
        self._targets.pop()
        return joined(after, target.broken)

    def _loop(self, node: syntax.Loop, mask: Mask) -> Mask | None:
        outer = self.frame.names
        self.frame.names = dict(outer)
        target = _Target(loop=True)
        self._targets.append(target)
        active: Mask | None = mask if node.start is None else self._run(node.start, mask)
        while active is not None:
            self._count(node)
            active = self._round(node, active, target)
        self._targets.pop()
        self.frame.names = outer
        return target.broken

    def _round(self, node: syntax.Loop, active: Mask, target: _Target) -> Mask | None:
        """Go through a loop once and return the lanes that go through it again."""
        self.mask = active
        left: Mask | None = active
        if node.condition is not None:
            left, out = active.split(self._truth(node.condition))
            target.broken = joined(target.broken, out)
            if left is None:
                return None
        scope, target.continued = self.frame.names, None
        self.frame.names = dict(scope)
        left = joined(self._all(node.body.statements, left), target.continued)
        # `continuing` may use names that the body declares. A `for` may not.
        if left is not None and node.continuing is not None:
            left = self._all(node.continuing.statements, left)
        if left is not None and node.break_if is not None:
            self.mask = left
            out, left = left.split(self._truth(node.break_if))
            target.broken = joined(target.broken, out)
        self.frame.names = scope
        return self._run(node.update, left) if left is not None and node.update is not None else left

    def _jump(self, node: syntax.Jump, mask: Mask) -> None:
        if node.kind == "break":
            self._targets[-1].broken = joined(self._targets[-1].broken, mask)
            return
        loop = next(target for target in reversed(self._targets) if target.loop)
        loop.continued = joined(loop.continued, mask)

    def _return(self, node: syntax.Return, mask: Mask) -> None:
        if node.value is None:
            return
        frame, function = self.frame, self.frame.function
        assert function is not None
        value = self.evaluate(node.value)
        if function.result is None:
            raise Fault(f"{function.name} returns nothing")
        value = converted(value, self.names.type(function.result, self.evaluate))
        frame.result = value if frame.result is None else merged(mask.lanes, value, frame.result)

    _RUN: ClassVar[dict[type[Any], Callable[[Any, Any, Mask], Mask | None]]] = {
        syntax.Declaration: _declaration,
        syntax.Assign: _assign,
        syntax.CallStatement: _call_statement,
        syntax.Assertion: _assertion,
        syntax.Block: _block,
        syntax.If: _if,
        syntax.Switch: _switch,
        syntax.Loop: _loop,
        syntax.Jump: _jump,
        syntax.Return: _return,
    }

    def variables_in(self, lane: int) -> dict[str, Any]:
        """Return the parameters and variables of the running function as one invocation sees them."""
        found: dict[str, Any] = {}
        for name, value in self.frame.names.items():
            held = value.value if isinstance(value, InvocationVariable) else value
            if isinstance(held, np.ndarray | Composite | int | float):
                found[name] = in_lane(held, lane)
        return found

    def inspect(self, expression: str, lane: int) -> Any:
        """Return the value of an expression in one lane, without side effects."""
        mask, debugger, findings = self.mask, self._debugger, self.findings
        self.mask, self._debugger, self.quiet = Mask(np.arange(self.wave.lanes) == lane, self.wave.lanes == 1), None, True
        self.findings = Findings("", "", None)
        try:
            return in_lane(self.evaluate(parse_expression(expression)), lane)
        finally:
            self.mask, self._debugger, self.quiet, self.findings = mask, debugger, False, findings
