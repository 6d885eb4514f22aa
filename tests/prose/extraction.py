"""The prose of files, with everything else replaced by spaces, so that positions in the prose are positions in the file."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BLANK = re.compile(r"[^\n]")

_MARKDOWN_CODE = re.compile(
    r"^#[^\n]*$|^ *```.*?^ *```$|^ *\|[^\n]*\|$|^:::[^\n]*(\n +[^\n]+)*|<!--.*?-->|`[^`\n]+`", re.MULTILINE | re.DOTALL
)
"""Headings, fences, tables, directives, comments and code spans. Headings and cells of tables are no sentences."""

_LINK = re.compile(r"\]\([^)\s]+\)")

_DOCSTRING_CODE = re.compile(r"^ *>>>.*?(?=\n\s*\n|\Z)|``?[^`\n]+``?", re.MULTILINE | re.DOTALL)

_SECTION = re.compile(r"^ *(?:Args|Attributes|Returns|Yields|Raises|Example|Examples|Numerics|Spec):.*$", re.MULTILINE)

_ENTRY_NAMES = re.compile(r"^ +\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*(?=: )", re.MULTILINE)
"""Names of arguments and attributes before their text."""

_MESSAGE_CALL = re.compile(r"Error$|^_?(?:fail|refuse|fault|warn|tell|info|warning|debug|error)$")
"""Names of the functions and classes that take the text of a message."""

_MESSAGE_PARTS = frozenset(("rule", "got", "allowed", "hint", "help"))
"""Keyword arguments that are texts of messages."""

_TEMPLATE_COMMENT = re.compile(r"^ *(?://|\{#)([^\n]*)$", re.MULTILINE)


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Return a text with each match of a pattern replaced by spaces, and code spans by a word."""

    def blank(match: re.Match[str]) -> str:
        code = match[0]
        if code.startswith("`") and "\n" not in code:
            return "X" * len(code)
        return _BLANK.sub(" ", code)

    return pattern.sub(blank, text)


def of_markdown(text: str) -> str:
    """Return the prose of a page."""
    return _without(_LINK, _without(_MARKDOWN_CODE, text))


def of_docstring(text: str) -> str:
    """Return the prose of a docstring."""
    prose = _without(_SECTION, _without(_DOCSTRING_CODE, text))
    return _ENTRY_NAMES.sub(lambda match: re.sub(r"\w", "x", match[0]), prose)


@lru_cache(1)
def _nodes(source: str) -> Sequence[ast.AST]:
    # Docstrings and messages of a module are read one after the other.
    return [*ast.walk(ast.parse(source))]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of each docstring of a module, those of attributes included."""
    for node in _nodes(path.read_text("utf-8")):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for i, statement in enumerate(body):
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                continue
            documents = i == 0 or isinstance(body[i - 1], ast.Assign | ast.AnnAssign)
            if documents and isinstance(statement.value.value, str):
                yield statement.lineno, of_docstring(statement.value.value)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of each text that a module passes to an error, a warning or a log."""
    for node in _nodes(path.read_text("utf-8")):
        if not (isinstance(node, ast.Call) and _MESSAGE_CALL.search(_name(node.func))):
            continue
        for value in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in _MESSAGE_PARTS)):
            text = _literal(value)
            if " " in text:
                yield value.lineno, _without(_DOCSTRING_CODE, text)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _literal(value: ast.expr) -> str:
    """Return a text, with a word for each value that an f-string inserts."""
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in value.values)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of all comments of a template, with spaces for its code."""
    lines = path.read_text("utf-8").splitlines()
    found = [match[1] if (match := _TEMPLATE_COMMENT.match(line)) else "" for line in lines]
    yield 1, _without(_DOCSTRING_CODE, "\n".join(found))


def sentences(prose: str) -> Iterator[tuple[int, str]]:
    """Yield the position and the text of each sentence. Paragraphs, items and entries of lists end sentences."""
    for block in re.finditer(
        r"(?:(?!\n\s*\n|\n\s*[*\-#>] |\n\s*\d+\. |\n\s*[\w, *`]+: |\n {3}\S[^\n]*? {2}\S).)+", prose, re.DOTALL
    ):
        for sentence in re.finditer(r"\S.*?(?:[.!?][*_)'\"]*(?=\s|$)|\Z)", block[0], re.DOTALL):
            yield block.start() + sentence.start(), sentence[0]
