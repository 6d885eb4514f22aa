"""Errors say what was expected, and then what was received, what is allowed or what to do next."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

from webnn_wgpu.core import errors
from webnn_wgpu.core.errors import WebNNError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(errors.__file__).parents[1]

FILES = ("frontends", "exporters", "formats", "cli")
"""Subpackages whose errors are about files: their messages begin with the file, and are texts of their own."""

KINDS = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, WebNNError)}


def raised(source: str) -> Iterator[ast.Call]:
    """Yield the calls that create the errors which a module raises, by a class or by a function called `fail`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).rpartition(".")[2]
            if name in KINDS or re.fullmatch("_?fail", name):
                yield node.exc


def bare(calls: Iterable[ast.Call]) -> list[int]:
    """Return the lines of the errors that have a rule alone."""
    return [call.lineno for call in calls if not {"got", "allowed", "hint", None} & {k.arg for k in call.keywords}]


def test_errors_say_more_than_the_rule():
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in FILES]
    calls = {str(path.relative_to(PACKAGE)): list(raised(path.read_text("utf-8"))) for path in modules}
    assert sum(len(found) for found in calls.values()) > 250
    assert not {path: lines for path, found in calls.items() if (lines := bare(found))}


def test_an_error_with_a_rule_alone_is_found():
    source = 'raise fail("x must be 1")\nraise MLTypeError("x must be 1", operator="a")\nraise fail("a", got="2")'
    assert bare(raised(source)) == [1, 2]
