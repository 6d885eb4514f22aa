"""`dbg(value, "name");` in WGSL: the positions of such statements, and sources without them.

A template or an application's own source may have them anywhere in a function. Kernels are compiled without them. A traced run
(`debug.trace`) writes the values to a buffer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\bdbg\s*\(|[()\[\]]', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAMED = re.compile(r'(.*),\s*"((?:\\.|[^"\\\n])*)"\s*,?\s*', re.DOTALL)
_OWN = re.compile(r"\bfn\s+dbg\b")
_BRACKETS = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")
_END = re.compile(r"\s*;")
_SPACE = re.compile(r"[ \t]*")


def without_comments(source: str) -> str:
    """Return a source with spaces instead of its comments, so that the other text keeps its position.

    >>> without_comments("a /* b */ c")
    'a         c'
    """
    return _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), source)


@dataclass(frozen=True, kw_only=True)
class DbgStatement:
    """A `dbg` statement of a source.

    Attributes:
        start, end: the range of the statement in the source, with its semicolon.
        value: the expression to trace.
        value_start: the offset of the expression.
        name: the name of the value: the second argument, or the expression itself.
    """

    start: int
    end: int
    value: str
    value_start: int
    name: str

    @property
    def has_one_value(self) -> bool:
        """Whether the value is free of quotes, and of commas outside of brackets.

        >>> [s.has_one_value for s in dbg_statements("dbg(f(a, b)); dbg(a, b); dbg(a, 'b');")]
        [True, False, False]
        """
        text, count = self.value, 1
        while count:
            text, count = _BRACKETS.subn("", text)
        return not any(character in text for character in ",\"'")


def dbg_statements(source: str) -> list[DbgStatement]:
    """Return the `dbg` statements of a source in order. Empty if the source itself declares a function of that name.

    >>> [(s.value, s.name) for s in dbg_statements('fn main() { dbg(f(a, b)); dbg(x[1], "x"); } // dbg(y);')]
    [('f(a, b)', 'f(a, b)'), ('x[1]', 'x')]
    """
    if "dbg" not in source or _OWN.search(source):
        return []
    found: list[DbgStatement] = []
    tokens = _TOKEN.finditer(source)
    for token in tokens:
        if token[0].startswith("dbg"):
            closing = _closing(tokens)
            end = _END.match(source, closing + 1) if closing >= 0 else None
            if end is None:  # the compiler reports the fault
                continue
            text = source[token.end() : closing]
            named = _NAMED.fullmatch(text)
            value = named[1] if named else text
            start = token.end() + len(value) - len(value.lstrip())
            name = named[2] if named else " ".join(value.split())
            found.append(DbgStatement(start=token.start(), end=end.end(), value=value.strip(), value_start=start, name=name))
    return found


def _closing(tokens: Iterator[re.Match[str]]) -> int:
    """Return the offset of the bracket that closes the one just opened, or -1 if there is none."""
    depth = 1
    for token in tokens:
        depth += (token[0][-1] in "([") - (token[0] in (")", "]"))
        if not depth:
            return token.start()
    return -1


def dbg_ranges(source: str) -> list[tuple[int, int]]:
    """Return the parts of a source to leave out, so that it reads as if no `dbg` had been written.

    If a statement has a line of its own, the whole line is left out.
    """
    ranges: list[tuple[int, int]] = []
    for statement in dbg_statements(source):
        start, end = statement.start, statement.end
        if ranges and not source[ranges[-1][1] : start].strip(" \t"):
            start = ranges.pop()[0]
        ranges.append((start, end))
    return [_with_space(source, start, end) for start, end in ranges]


def _with_space(source: str, start: int, end: int) -> tuple[int, int]:
    line = source.rfind("\n", 0, start) + 1
    behind = _SPACE.match(source, end)
    assert behind is not None
    if source[line:start].strip(" \t"):
        return len(source[:start].rstrip(" \t")), end
    if source[behind.end() : behind.end() + 1] in ("\n", ""):
        return line, min(behind.end() + 1, len(source))
    return start, behind.end()


def without(source: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a text without some parts of it, which are in order."""
    ends = [0, *(end for _, end in ranges)]
    starts = [*(start for start, _ in ranges), len(source)]
    return "".join(source[a:b] for a, b in zip(ends, starts, strict=True))


def without_dbg(source: str) -> str:
    r"""Return a source without its `dbg` statements.

    >>> without_dbg('    let a = 1;\n    dbg(a, "a");\n    f(a); dbg(b); g();\n')
    '    let a = 1;\n    f(a); g();\n'
    """
    return without(source, dbg_ranges(source)) if "dbg" in source else source
