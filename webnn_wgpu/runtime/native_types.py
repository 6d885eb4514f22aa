"""Lets wgpu look its C types up quickly, where a program has imported its native binding before `native_header` could.

wgpu names a C type, such as "WGPUBufferDescriptor *", for every struct that it passes to the native library. The first time it
meets a name, cffi has a C parser read all of webgpu.h's type names: 15 ms on a fast machine, for each of the sixty names that a
first graph needs. Primitive and declared types, pointers to them, arrays of them and functions of them follow from what cffi
has already parsed.
"""

from __future__ import annotations

import re
from typing import Any

_SIMPLE = re.compile(r"(?P<name>\w+)(?P<const> const)? ?(?P<suffix>\*|\[\])? ?")
_FUNCTION = re.compile(r"(?P<result>\w+)\((?P<arguments>[\w* ]+(, [\w* ]+)*)\)")
_CONST = 1
"""cffi's qualifier of constants."""


def speed_up_type_lookup(ffi: Any) -> bool:
    """Have a cffi object find simple types without its C parser; return whether it has one that this is known to suit."""
    try:
        from cffi import model

        parser = ffi._parser
        if parser.parse_type.__module__ != __name__:
            parser.parse_type = _Lookup(parser, model).parse_type
    except (ImportError, AttributeError):
        return False
    return True


class _Lookup:
    """Finds types among those that cffi has parsed; what is not as simple as that is left to its parser."""

    def __init__(self, parser: Any, model: Any) -> None:
        self._parse, self._declared, self._pointer_to = parser.parse_type, parser._declarations, parser._get_type_pointer
        self._model = model

    def parse_type(self, text: str) -> Any:
        """Return cffi's model of a type."""
        return self._simple(text) or self._function(text) or self._parse(text)

    def _simple(self, text: str) -> Any:
        """Return a named type, a pointer to one or an array of one; None for others."""
        match = _SIMPLE.fullmatch(text)
        found = match and self._named(match["name"])
        if not match or not found:
            return None
        type_, qualifiers = found
        if match["suffix"] == "*":
            return self._pointer_to(type_, qualifiers | _CONST if match["const"] else qualifiers)
        if match["const"]:
            return None
        return self._model.ArrayType(type_, None) if match["suffix"] else type_

    def _function(self, text: str) -> Any:
        """Return the type of a function of simple types; None for others."""
        match = _FUNCTION.fullmatch(text)
        if not match:
            return None
        result = self._named(match["result"])
        arguments = [self._simple(each) for each in match["arguments"].split(", ")]
        if not result or None in arguments:
            return None
        return self._model.RawFunctionType(tuple(arguments), result[0], False)

    def _named(self, name: str) -> Any:
        """Return a primitive or declared type and its qualifiers; None for others."""
        if name == "void":
            return self._model.void_type, 0
        if name in self._model.PrimitiveType.ALL_PRIMITIVE_TYPES:
            return self._model.PrimitiveType(name), 0
        return self._declared.get(f"typedef {name}")
