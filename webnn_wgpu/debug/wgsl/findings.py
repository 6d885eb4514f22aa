"""The findings of the interpreter: faults of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .syntax import SyntaxNode
from .wave import Triple

Kind: TypeAlias = Literal["out of bounds", "race", "uninitialized", "barrier"]

Site: TypeAlias = tuple[str] | tuple[int, int]

_NAMED = 4
"""Most invocations that a finding names."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A fault of a kernel.

    Attributes:
        kind: "out of bounds", "race", "uninitialized" (a read of memory without an earlier write) or "barrier" (one that some
            invocations of a workgroup do not reach).
        kernel: the name of the kernel, or "" if a source alone was interpreted.
        line: the line of the rendered WGSL, from 1.
        column: the column in that line.
        calls: the lines of the calls that lead there, the outermost first.
        template: the line in its template, as `file:line`, or "" if it is unknown.
        text: the text of the line.
        message: the fault with variable, index, size and invocations.
        variable: the accessed variable.
        invocations: the first invocations with the fault, by global_invocation_id. For a barrier, those that reach it.
        others: the other invocations of a race, which access the same memory, or those that do not reach the barrier.
        other_line: the line of their access. 0 for other kinds.
        count: the number of occurrences. A barrier that is not reached counts once for each workgroup or subgroup.
        harmless: whether the value of the read does not reach an output. Idle invocations may make such reads.
    """

    kind: Kind
    kernel: str
    line: int
    column: int
    calls: tuple[int, ...]
    template: str
    text: str
    message: str
    variable: str
    invocations: tuple[Triple, ...]
    others: tuple[Triple, ...] = ()
    other_line: int = 0
    count: int = 1
    harmless: bool = False

    @property
    def site(self) -> Site:
        """The key of reads to poison, which shows whether they matter: the position in the source, or the variable."""
        return (self.variable,) if self.kind == "uninitialized" else (self.line, self.column)

    def __str__(self) -> str:
        where = f"line {self.line}" + (f" ({self.template})" if self.template else "")
        called = f", called from line {', '.join(map(str, reversed(self.calls)))}" if self.calls else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        kernel = f"{self.kernel}: " if self.kernel else ""
        return f"{kernel}{self.kind} at {where}{called}: {self.message}{times}\n    {self.text}"


class Findings:
    """A collector of findings, which reports each kind of fault once for each position and variable.

    Args:
        source: the WGSL.
        kernel: the name of the kernel.
        template: returns the template location of a line and column.
    """

    def __init__(self, source: str, kernel: str, template: Callable[[int, int], str] | None) -> None:
        self._lines, self._kernel, self._template = source.splitlines(), kernel, template
        self._found: dict[tuple[str, int, int, str, int], Finding] = {}

    def add(
        self,
        kind: Kind,
        node: SyntaxNode,
        calls: tuple[int, ...],
        variable: str,
        message: str,
        invocations: Sequence[Triple],
        others: Sequence[Triple] = (),
        other_line: int = 0,
        count: int = 1,
        *,
        read: bool = False,
    ) -> None:
        """Add a finding, or count it if an equal one exists."""
        key = (kind, node.line, node.column, variable, other_line)
        if (found := self._found.get(key)) is not None:
            self._found[key] = replace(found, count=found.count + count)
            return
        template = self._template(node.line, node.column) if self._template else ""
        text = self._lines[node.line - 1].strip() if node.line <= len(self._lines) else ""
        named = tuple(invocations[:_NAMED])
        self._found[key] = Finding(
            kind=kind,
            kernel=self._kernel,
            line=node.line,
            column=node.column,
            calls=calls,
            template=template,
            text=text,
            message=message,
            variable=variable,
            invocations=named,
            others=tuple(others[:_NAMED]),
            other_line=other_line,
            count=count,
            harmless=read,
        )

    def all(self) -> tuple[Finding, ...]:
        """Return the findings in the order of their occurrence."""
        return tuple(self._found.values())
