"""Source maps: the template location of each line of a kernel, through imports, macros and included functions.

The module renders the template once more, with a mark before each piece of its text. A mark is a character of Unicode's private
planes that stands for a file, line and column. Without the marks, the text is the source to the byte.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, count
from typing import Any

import jinja2
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from .dbg import dbg_ranges, without
from .expression import Expression, LetStatement
from .spec import KernelSpec
from .templates import library_files, make_environment, render_with_dbg, template_file
from .terms import Term

OWN_SOURCE = "<wgsl>"
"""The file name of a source that the application passes as text."""

_PLACES, _STEPS = 0xF0000, 0xE000
"""The first characters that stand for places in templates, and for steps of an expression."""

_MARKS = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")


@dataclass(frozen=True)
class SourceOrigin:
    """The location of a part of a kernel's source in a template.

    Attributes:
        file: the template's path below `shaders/`, or the name of an application's own source.
        line, column: the position in the file, from 1. The result of an expression `{{ }}` has the position of the expression.
        operators: the labels of the operators whose formula the line computes, if it was generated from operators.
    """

    file: str
    line: int
    column: int
    operators: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        return f"{where} ({', '.join(self.operators)})" if self.operators else where


@dataclass(frozen=True)
class _Mark:
    """The origin of a piece of source: a text, whose columns advance, or an expression with a single position."""

    place: SourceOrigin
    is_text: bool


class SourceMap:
    """The template locations of the lines of a source.

    Attributes:
        text: the source.
        file: the template, or the name of an application's own source.
    """

    def __init__(
        self, text: str, file: str, marks: Mapping[int, _Mark], steps: Mapping[int, int], labels: Sequence[tuple[str, ...]] = ()
    ) -> None:
        """Create a map.

        Args:
            text: the source.
            file: the file of the whole source.
            marks: offset in the source -> mark of the text from there on.
            steps: offset in the source -> number of the expression step at that offset.
            labels: the labels of the operators that each step computes.
        """
        self.text, self.file = text, file
        self._marks, self._steps, self._labels = marks, steps, labels
        self._offsets = sorted(marks)
        self._lines = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.text.splitlines())

    def place(self, line: int, column: int = 1) -> SourceOrigin:
        """Return the template location of a position in the source.

        Args:
            line: line of the source, from 1.
            column: column of the source, from 1.

        Raises:
            IndexError: the source has no such line.
        """
        if not 1 <= line <= len(self):
            raise IndexError(f"the source has lines 1..{len(self)}; got {line}")
        start, end = self._lines[line - 1 : line + 1]
        offset = max(start, min(start + column - 1, end - 1))
        first = bisect_left(self._offsets, start)
        here = self._offsets[first : bisect_left(self._offsets, end)]
        # The indentation of a line belongs to its text. A blank line belongs to the text before it.
        found = next((at for at in reversed(here) if at <= offset), here[0] if here else self._offsets[max(first - 1, 0)])
        mark = self._marks[found]
        operators = [label for step in self.steps(line) if step < len(self._labels) for label in self._labels[step]]
        place = replace(mark.place, operators=tuple(dict.fromkeys(operators)))
        if not mark.is_text:
            return place
        return replace(place, column=place.column + max(offset - found, 0) if found >= start else 1)

    def steps(self, line: int) -> tuple[int, ...]:
        """Return the numbers of the steps of the kernel's expression that a line computes."""
        start, end = self._lines[line - 1 : line + 1]
        return tuple(step for at, step in self._steps.items() if start <= at < end)

    def without_dbg(self) -> SourceMap:
        """Return the map of the source without its `dbg` statements."""
        return self.without(dbg_ranges(self.text))

    def without(self, ranges: Sequence[tuple[int, int]]) -> SourceMap:
        """Return the map of the source without some parts of it, which are in order."""
        marks, steps, removed = dict[int, _Mark](), dict[int, int](), 0
        kept = zip([0, *(end for _, end in ranges)], [*(start for start, _ in ranges), len(self.text)], strict=True)
        for start, end in kept:
            number = bisect_right(self._offsets, start) - 1
            if start and number >= 0:
                marks[removed] = _moved(self._marks[self._offsets[number]], start - self._offsets[number])
            shift = removed - start
            marks |= {at + shift: self._marks[at] for at in self._offsets if start <= at < end}
            steps |= {at + shift: step for at, step in self._steps.items() if start <= at < end}
            removed += end - start
        return SourceMap(without(self.text, ranges), self.file, marks, steps, self._labels)

    def __repr__(self) -> str:
        return f"SourceMap({len(self)} lines)"


def _moved(mark: _Mark, columns: int) -> _Mark:
    place = mark.place
    return replace(mark, place=replace(place, column=place.column + columns)) if mark.is_text else mark


def map_of_source(source: str, file: str = OWN_SOURCE, *, dbg: bool = False) -> SourceMap:
    r"""Return the map of an application's own source.

    Args:
        source: the source.
        file: the name of the source in messages.
        dbg: whether its `dbg` statements are kept.

    >>> map_of_source("fn main() {\n    let a = 1;\n    dbg(a);\n    f(a);\n}", "own.wgsl").place(3, 5)
    SourceOrigin(file='own.wgsl', line=4, column=5, operators=())
    """
    starts = [0, *accumulate(len(line) + 1 for line in source.split("\n"))][:-1]
    marks = {at: _Mark(SourceOrigin(file, number, 1), True) for number, at in enumerate(starts, 1)}
    found = SourceMap(source, file, marks, {})
    return found if dbg else found.without_dbg()


def map_of_kernel(
    spec: KernelSpec, folder: str = "ops", labels: Sequence[tuple[str, ...]] = (), *, dbg: bool = False
) -> SourceMap:
    """Return the source map of a rendered kernel, whose text is the result of `render`.

    Args:
        spec: the kernel.
        folder: the folder of its template below `shaders/`.
        labels: the labels of the operators of each expression step, if it has expressions: those of the first one come first.
        dbg: whether `dbg` statements are kept.
    """
    if spec.source:
        return map_of_source(spec.source, dbg=dbg)
    params, first = list[tuple[str, Hashable]](), 0
    for name, value in spec.params:
        params.append((name, _marked_steps(value, first) if isinstance(value, Expression) else value))
        first += len(value.steps) if isinstance(value, Expression) else 0
    marked = render_with_dbg(replace(spec, params=tuple(params)), folder, _environment(hides_uniforms=spec.hides_uniforms))
    marks: dict[int, _Mark] = {}
    steps: dict[int, int] = {}
    for i, found in enumerate(_MARKS.finditer(marked)):
        code, at = ord(found[0]), found.start() - i
        if code >= _PLACES:
            marks[at] = _marks[code - _PLACES]
        else:
            steps[at] = code - _STEPS
    found = SourceMap(_MARKS.sub("", marked), template_file(spec, folder), marks, steps, labels)
    return found if dbg else found.without_dbg()


def _marked_steps(value: Expression, first: int) -> Expression:
    return replace(value, steps=tuple(_marked_step(step, first) for step in value.steps))


def _marked_step(step: LetStatement, first: int) -> LetStatement:
    number = re.fullmatch(r"[yh](\d+)", step.name)
    return replace(step, code=_MarkedTerm(chr(_STEPS + first + int(number[1])), step.code)) if number else step


@dataclass(frozen=True, repr=False)
class _MarkedTerm(Term):
    """A term with a mark before its text."""

    mark: str
    value: Term

    def __str__(self) -> str:
        return f"{self.mark}{self.value}"


# Marking -------------------------------------------------------------------------------------------------------------

_marks: dict[int, _Mark] = {}
_numbers = count()


def _mark(file: str, source: str, offset: int, is_text: bool) -> int:
    """Return the number of a new mark for an offset of a file."""
    number = next(_numbers)
    line = source.count("\n", 0, offset) + 1
    _marks[number] = _Mark(SourceOrigin(file, line, offset - source.rfind("\n", 0, offset)), is_text)
    return number


def _marked(number: int, value: object) -> str:
    """Return the value of an expression with its mark. An empty value gets none, because templates may test for it."""
    text = str(value)
    return chr(_PLACES + number) + text if text else ""


def _marked_text(file: str, source: str, text: str, offset: int) -> str:
    """Return text of a file with a mark in each line that is not blank, behind the indentation."""
    return re.sub(r"\S.*", lambda line: _marked(_mark(file, source, offset + line.start(), True), line[0]), text)


class _Marking(Extension):
    """A Jinja extension that puts marks into templates: before each line of text, and before the value of each `{{ }}`."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        assert stream.name is not None
        assert self.environment.loader is not None
        source, _, _ = self.environment.loader.get_source(self.environment, stream.name)
        places = self._places(source)
        for token in stream:
            line = token.lineno
            if token.type == "data":
                yield Token(line, "data", _marked_text(stream.name, source, token.value, next(places)))
            elif token.type == "variable_begin":
                number = _mark(stream.name, source, next(places), False)
                yield token
                yield from (Token(line, "name", _marked.__name__), Token(line, "lparen", "("))
                yield from (Token(line, "integer", number), Token(line, "comma", ","))  # pyright: ignore[reportArgumentType] - integers are
            elif token.type == "variable_end":
                yield from (Token(line, "rparen", ")"), token)
            else:
                yield token

    def _places(self, source: str) -> Iterator[int]:
        """Yield the offsets of the pieces of text and the expressions of a template."""
        at = 0
        for _, kind, text in self.environment.lex(source):
            at = source.index(text, at)  # space before a tag may have been left out
            if kind in ("data", "variable_begin"):
                yield at
            at += len(text)


@cache
def _marked_file(name: str, text: str) -> str:
    return _marked_text(f"lib/math/{name}.wgsl", text, text, 0)


def _marked_library(*names: str) -> str:
    return "\n".join(_marked_file(name, text) for name, text in library_files(*names).items())


def _unmarked_int(value: object) -> int:
    """Return the integer of a number that a macro yields, as the filter `int` does."""
    return int(float(_MARKS.sub("", str(value))))


@cache
def _environment(*, hides_uniforms: bool) -> jinja2.Environment:
    variables: dict[str, Any] = {"lib": _marked_library, _marked.__name__: _marked, "hides_uniforms": hides_uniforms}
    env = make_environment(jinja2.FileSystemLoader, [_Marking], **variables)
    env.filters["int"] = _unmarked_int
    return env
