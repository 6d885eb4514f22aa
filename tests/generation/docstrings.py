"""The docstrings of operator methods."""

from __future__ import annotations

import textwrap
from inspect import cleandoc
from typing import TYPE_CHECKING

from webnn_wgpu.core.errors import SPEC_URL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.generation.signatures import Signature
    from webnn_wgpu.ops.interfaces.documentation import Group

_INDENT = 8
_WIDTH = 128 - _INDENT
"""Columns of a docstring in a method of a class."""

_STATE = "The builder has built its graph, or its context is lost."


def docstring(signature: Signature) -> str:
    """Return the docstring of a method, indented, with its quotes."""
    documentation = signature.documentation
    parts = [documentation.summary]
    parts += ["\n".join(_wrapped(paragraph)) for paragraph in cleandoc(documentation.details).split("\n\n") if paragraph]
    parts.append(_section("Args", [(a.name, a.text) for a in signature.implementation]))
    parts.append("Returns:\n" + _indented(_wrapped(documentation.returns, 4)))
    owner = "an operand or activation belongs" if _takes_activations(signature) else "an operand belongs"
    refused = f"{documentation.raises}, or {owner}" if documentation.raises else owner[0].upper() + owner[1:]
    parts.append(_section("Raises", [("MLTypeError", f"{refused} to another builder."), ("InvalidStateError", _STATE)]))
    if documentation.numerics:
        parts.append("Numerics:\n" + _indented(_wrapped(documentation.numerics, 4)))
    parts.append("Example:\n" + _indented(cleandoc(documentation.example).splitlines()))
    if signature.op.spec:
        parts.append(f"Spec: {SPEC_URL}{signature.op.spec}")
    text = "\n\n".join(parts)
    return textwrap.indent(f'"""{text}\n"""', " " * _INDENT)


def class_docstring(group: Group, methods: Sequence[str]) -> str:
    """Return the docstring of the class that has the methods of a group."""
    names = f"{', '.join(methods)}."
    return _of_class(f"{names} {group.remark}".rstrip(), group.summary)


def options_docstring(methods: Sequence[str]) -> str:
    """Return the docstring of the dictionary of options that some methods take."""
    names = f"{', '.join(methods[:-1])} and {methods[-1]}" if len(methods) > 1 else methods[0]
    return _of_class(f"Options of {names}.", "Options of several operators.")


def _of_class(text: str, summary: str) -> str:
    """Return a text as the docstring of a class; below a summary if it needs more than one line."""
    if len(text) > _WIDTH - len('""""""'):
        text = "\n".join([summary, "", *_wrapped(text, -4), ""])
    return textwrap.indent(f'"""{text}"""', "    ")


def _takes_activations(signature: Signature) -> bool:
    return any("Activation" in a.annotation for a in signature.keywords)


def _wrapped(text: str, indent: int = 0) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH - indent, break_long_words=False, break_on_hyphens=False)


def _indented(lines: list[str], by: int = 4) -> str:
    return "\n".join(f"{' ' * by}{line}" for line in lines)


def _section(title: str, entries: list[tuple[str, str]]) -> str:
    found = [f"{title}:"]
    for name, text in entries:
        head, *tail = textwrap.wrap(
            f"{name}: {' '.join(text.split())}",
            _WIDTH - 4,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        found.append(_indented([head, *tail]))
    return "\n".join(found)
