"""Kernels that programs write themselves: what their WGSL declares, and how they become a `KernelSpec`.

Nothing of the source is evaluated here. Constants are appended as declarations, which WGSL allows in any order, so that the
numbers of lines in a driver's messages are those of the program's own source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..core.errors import quoted
from .spec import Binding, KernelSpec

Fail = Callable[..., Exception]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STORAGE = re.compile(r"((?:@\w+\s*(?:\([^()]*\)\s*)?)+)var\s*<\s*storage\s*(?:,\s*(\w+)\s*)?,?\s*>\s*(\w+)")
_MAIN = re.compile(r"\bfn\s+main\b")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUFFIXES = {"int32": "i", "uint32": "u", "float32": "f", "float16": "h"}


@dataclass(frozen=True)
class Declared:
    """A storage buffer of bind group 0 that a source declares."""

    name: str
    access: str


def declared_bindings(source: str, fail: Fail) -> list[Declared]:
    """Return the storage buffers that a source declares in bind group 0, in the order of their bindings.

    Raises:
        Exception: by `fail`: no function main, or bindings that are not 0, 1, 2, ...
    """
    code = _COMMENT.sub(" ", source)
    if not _MAIN.search(code):
        raise fail("the shader must have an entry point main", got=_shortened(code))
    found: dict[int, Declared] = {}
    for attributes, access, name in _STORAGE.findall(code):
        group, binding = (re.search(rf"@{word}\s*\(\s*(\d+)[iu]?\s*,?\s*\)", attributes) for word in ("group", "binding"))
        if group is None or binding is None or group[1] != "0":
            raise fail("every buffer must be declared with @group(0) and a number as @binding", got=f"var {name}")
        found[int(binding[1])] = Declared(name, access or "read")
    if sorted(found) != list(range(len(found))):
        raise fail("bindings must be numbered 0, 1, 2, ...", got=", ".join(f"{d.name}: {i}" for i, d in sorted(found.items())))
    return [found[i] for i in range(len(found))]


def with_constants(source: str, constants: Mapping[str, Any], fail: Fail) -> str:
    """Return a source with constants declared behind it.

    Args:
        source: WGSL.
        constants: name -> number or bool. Python's become constants of any fitting type, numpy's those of their own.
        fail: makes the error to raise.
    """
    lines = [f"const {name} = {_literal(name, value, fail)};" for name, value in constants.items()]
    return "\n".join([source.rstrip("\n"), *lines, ""])


def _literal(name: Any, value: Any, fail: Fail) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("__"):
        raise fail("a constant's name must be an identifier", got=repr(name))
    number, suffix = _number(value)
    if isinstance(number, bool):
        return "true" if number else "false"
    if isinstance(number, int) or (isinstance(number, float) and math.isfinite(number)):
        return f"{number!r}{suffix}"
    raise fail(f"constant {name} must be a finite number or a bool", got=quoted(number))


def _number(value: Any) -> tuple[Any, str]:
    """Return a Python or numpy number as Python's, and the suffix of WGSL literals of its type."""
    if not isinstance(value, np.generic):
        return value, ""
    scalar = cast("Any", value)
    return scalar.item(), _SUFFIXES.get(scalar.dtype.name, "")


def own_spec(name: str, source: str, bindings: Iterable[Binding]) -> KernelSpec:
    """Return the kernel of a source.

    Args:
        name: what it is called in plans and messages.
        source: WGSL with an entry point main.
        bindings: its buffers in order. They are bound exactly: `arrayLength` counts their elements.
    """
    return KernelSpec(name, (), tuple(bindings), source=source)


def _shortened(code: str) -> str:
    text = " ".join(code.split())
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
