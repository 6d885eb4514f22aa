"""Lets wgpu look its C types up quickly.

wgpu names a C type, such as "WGPUBufferDescriptor *", for every struct that it passes to the native library. The first time it
meets a name, cffi has a C parser read all of webgpu.h's type names: 15 ms on a fast machine, for each of the fifty names that a
first graph needs. Names of declared types, pointers to them and arrays of them follow from what cffi has already parsed.
"""

from __future__ import annotations

import re
from typing import Any

_SIMPLE = re.compile(r"(?P<name>\w+) ?(?P<suffix>\*|\[\])? ?")


def speed_up_type_lookup() -> bool:
    """Have wgpu's cffi object find simple types without its C parser; return whether this version of cffi allows it."""
    try:
        from cffi import model
        from wgpu.backends.wgpu_native._ffi import ffi

        parser: Any = getattr(ffi, "_parser")  # noqa: B009 - cffi's stubs do not know it
        parse, declared, pointer_to = parser.parse_type, parser._declarations, parser._get_type_pointer
    except (ImportError, AttributeError):
        return False
    if parse.__module__ == __name__:
        return True
    parser.parse_type = _quick(parse, declared, pointer_to, model.ArrayType)
    return True


def _quick(parse: Any, declared: Any, pointer_to: Any, array_of: Any) -> Any:
    def parse_type(text: str) -> Any:
        match = _SIMPLE.fullmatch(text)
        found = match and declared.get(f"typedef {match['name']}")
        if not match or not found:
            return parse(text)
        type_, qualifiers = found
        if match["suffix"] == "*":
            return pointer_to(type_, qualifiers)
        return array_of(type_, None) if match["suffix"] else type_

    return parse_type
