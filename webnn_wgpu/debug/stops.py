"""Stopping the interpreter in one invocation: breakpoints, steps, variables, and a prompt for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import numpy as np

from ..core.errors import MLTypeError, WebNNError
from .wgsl.machine import Machine
from .wgsl.syntax import SyntaxNode
from .wgsl.values import Fault
from .wgsl.wave import Triple


class Quit(Exception):
    """The interpretation is to end here."""


class Stop:
    """An invocation that has stopped before a statement. `interpret` passes it to `on_stop`.

    `on_stop` decides where the invocation stops next. The default is the next breakpoint.

    Attributes:
        kernel: the name of the kernel.
        line: the line of the WGSL, from 1.
        text: the text of that line.
        function: the current function.
        calls: the lines of the calls that lead there, the outermost first.
        invocation: the global_invocation_id.
        active: the number of the invocations side by side that run this statement too.
        variables: the parameters and variables of the function by name: numpy's numbers and arrays, structures as dicts.
    """

    def __init__(self, kernel: str, lines: list[str], node: SyntaxNode, machine: Machine, lane: int) -> None:
        self._machine, self._lane, self._lines = machine, lane, lines
        function = machine.frame.function
        self.kernel, self.line = kernel, node.line
        self.text = lines[node.line - 1].strip()
        self.function = function.name if function else ""
        self.calls = machine.frame.calls
        self.invocation = machine.wave.invocation(int(machine.wave.ids[lane]))
        self.active = int(np.count_nonzero(machine.mask.lanes))
        self.mode = "resume"

    @property
    def variables(self) -> Mapping[str, Any]:
        """The values of the function's names in the invocation."""
        return self._machine.variables_in(self._lane)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a WGSL expression in the invocation.

        Args:
            expression: the expression. It may name local variables, workgroup variables and buffers.

        Raises:
            MLTypeError: the text is no expression, or cannot be evaluated here.
        """
        try:
            return self._machine.inspect(expression, self._lane)
        except WebNNError as error:
            # Faults are located in the expression, whose line is always 1, and their hints are about sources.
            reason = str(error.__context__) if isinstance(error.__context__, Fault) else f"{error.rule}, {error.got}"
            raise MLTypeError(
                f"the expression must be valid where the invocation stopped, at line {self.line}",
                operator="evaluate",
                label=self.kernel,
                got=f"{expression}: {reason}",
                allowed=", ".join([*self.variables, "workgroup variables and buffers"]),
            ) from error

    def step(self) -> None:
        """Stop at the next statement of the invocation, in any function."""
        self.mode = "step"

    def next(self) -> None:
        """Stop at the next statement of the invocation that is in no function called from here."""
        self.mode = "next"

    def resume(self) -> None:
        """Stop at the next breakpoint."""
        self.mode = "resume"

    def quit(self) -> None:
        """End the interpretation. Buffers keep their content."""
        self.mode = "quit"

    def around(self, lines: int = 4) -> str:
        """Return the source around the current line, with a mark on that line.

        Args:
            lines: the number of lines before and after it.
        """
        first = max(1, self.line - lines)
        shown = enumerate(self._lines[first - 1 : self.line + lines], first)
        return "\n".join(f"{'>' if i == self.line else ' '} {i:4} {text}" for i, text in shown)

    def __str__(self) -> str:
        return f"{self.kernel or 'kernel'} line {self.line} in {self.function}, invocation {self.invocation}: {self.text}"


class Stopper:
    """A debugger that stops a kernel at breakpoints.

    Args:
        kernel: the name of the kernel.
        source: the WGSL.
        breakpoints: the line numbers.
        invocation: the global_invocation_id of the invocation that stops. None is the first one at a breakpoint.
        on_stop: a function that is called at each stop.
    """

    def __init__(
        self,
        kernel: str,
        source: str,
        breakpoints: Collection[int],
        invocation: Triple | None,
        on_stop: Callable[[Stop], None],
    ) -> None:
        self._kernel, self._lines = kernel, source.splitlines()
        wrong = [line for line in breakpoints if not 1 <= line <= len(self._lines)]
        if wrong:
            raise MLTypeError(
                "a breakpoint must be a line of the kernel",
                operator="interpret",
                label=kernel,
                got=", ".join(map(str, wrong)),
                allowed=f"1..{len(self._lines)}",
            )
        self._breakpoints, self._invocation, self._on_stop = frozenset(breakpoints), invocation, on_stop
        # An invocation without breakpoints stops at its first statement.
        self._mode, self._depth = ("step" if invocation is not None and not breakpoints else "resume"), 0

    def before(self, node: SyntaxNode, machine: Machine) -> None:
        """Stop here, if it is the place and the invocation."""
        depth = len(machine.frame.calls)
        steps = self._mode == "step" or (self._mode == "next" and depth <= self._depth)
        if not steps and node.line not in self._breakpoints:
            return
        if self._invocation is None:
            lane = machine.mask.first
            self._invocation = machine.wave.invocation(int(machine.wave.ids[lane]))
        found = machine.wave.lane_of(self._invocation)
        if found is None or not machine.mask.lanes[found]:
            return
        stop = Stop(self._kernel, self._lines, node, machine, found)
        self._on_stop(stop)
        self._mode, self._depth = stop.mode, depth
        if self._mode == "quit":
            raise Quit


HELP = """\
s  step: to the next statement            n  next: the same, but over calls
c  continue: to the next breakpoint       q  quit
v  variables                              p EXPRESSION  print a WGSL expression
l  list the source around here            w  where: the calls that lead here"""


class Prompt:
    """An `on_stop` that reads commands from a terminal.

    Args:
        read: returns the next command.
        write: shows a text.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"y": b.neg(x)})
        >>> commands = iter(["p lane", "q"])
        >>> prompt = debug.Prompt(lambda: next(commands), print)
        >>> feeds = {"x": np.ones((2, 3), np.float32)}
        >>> _ = debug.interpret(graph, feeds, invocation=(1, 0, 0), on_stop=prompt)
        neg_0 line ... in main, invocation (1, 0, 0): ...
        1
    """

    def __init__(self, read: Callable[[], str], write: Callable[[str], Any]) -> None:
        self._read, self._write, self._last = read, write, "s"

    def __call__(self, stop: Stop) -> None:
        """Ask until a command lets the invocation go on."""
        self._write(str(stop))
        while True:
            line = self._read().strip() or self._last
            command, _, rest = line.partition(" ")
            moves = {"s": stop.step, "n": stop.next, "c": stop.resume, "q": stop.quit}
            if command in moves:
                self._last = command
                return moves[command]()
            self._write(self._answer(stop, command, rest))

    def _answer(self, stop: Stop, command: str, rest: str) -> str:
        match command:
            case "v":
                return "\n".join(f"{name} = {_shown(value)}" for name, value in stop.variables.items()) or "none yet"
            case "p":
                try:
                    return _shown(stop.evaluate(rest))
                except MLTypeError as error:
                    return error.got
            case "l":
                return stop.around()
            case "w":
                return "\n".join([*(f"called from line {line}" for line in stop.calls), str(stop)])
            case _:
                return HELP


def _shown(value: Any) -> str:
    """Write a value as people read it: of structures the members, without numpy's types."""
    if not isinstance(value, dict):
        return str(value)
    members = cast("dict[str, Any]", value).items()
    return f"{{{', '.join(f'{name}: {_shown(member)}' for name, member in members)}}}"
