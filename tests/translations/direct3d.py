"""What HLSL must not contain for FXC, the compiler that wgpu takes on Direct3D 12 where a program names no other."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_NEWER = re.compile(r"\b(?:u?int64_t\w*|half\d?|float16_t\w*|Wave[A-Z]\w+|dot4add\w+)\b")
_SHARED = re.compile(r"^groupshared (?P<type>\w+) (?P<name>\w+)(?P<sides>(?:\[\d+\])*);", re.MULTILINE)
_STRUCT = re.compile(r"^struct (?P<name>\w+) \{\n(?P<fields>.*?)^\};", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s+(?P<type>\w+) \w+(?P<sides>(?:\[\d+\])*);", re.MULTILINE)
_VECTOR = re.compile(r"^\s+(?:float|int|uint|bool)[2-4] (?P<name>\w+)(?P<sides>(?:\[\d+\])*)(?: =|;)", re.MULTILINE)
_STORE = re.compile(r"^\s+(?P<name>[A-Za-z_]\w*)(?P<places>\[[^\n=]*\]) = ", re.MULTILINE)
_TYPED_LOAD = re.compile(r"\bRWTexture\w+<")


def faults(hlsl: str, *, shared_bytes: int = 32768, typed_loads: bool = False) -> list[str]:
    """Return a sentence for each thing that FXC refuses, or that devices of Direct3D 12 need not have.

    Args:
        hlsl: the shader.
        shared_bytes: the most workgroup memory of a shader. Devices of Direct3D 12 have 32,768 bytes; other devices that get
            kernels of the same shader model may have more.
        typed_loads: whether the device loads texels of writable textures, as its software adapter does.
    """
    found = [f"shader model 5.1 does not have {name}" for name in dict.fromkeys(_NEWER.findall(hlsl))]
    if not typed_loads and _TYPED_LOAD.search(hlsl):
        found.append("not every device of Direct3D 12 loads texels of writable textures")
    structs = {match["name"]: match["fields"] for match in _STRUCT.finditer(hlsl)}
    shared = {match["name"]: _bytes(match["type"], match["sides"], structs) for match in _SHARED.finditer(hlsl)}
    if sum(shared.values()) > shared_bytes:
        found.append(f"workgroup memory has {sum(shared.values())} bytes; at most {shared_bytes} are possible")
    # Variables of functions alone: FXC stores components of vectors in workgroup memory at any index.
    vectors = {match["name"]: match["sides"].count("[") for match in _VECTOR.finditer(hlsl)}
    for store in _STORE.finditer(hlsl):
        places = _places(store["places"])
        if vectors.get(store["name"]) == len(places) - 1 and not re.fullmatch(r"\d+u?", places[-1]):
            found.append(f"FXC stores components of vectors at literal indices alone: {store[0].strip()}")
    return found


def _places(text: str) -> list[str]:
    """Return the indices in text such as `[i][min(uint(j), 3u)]`."""
    places: list[str] = []
    depth = start = 0
    for at, sign in enumerate(text):
        depth += (sign == "[") - (sign == "]")
        if sign == "[" and depth == 1:
            start = at + 1
        elif sign == "]" and depth == 0:
            places.append(text[start:at])
    return places


def _bytes(type_: str, sides: str, structs: Mapping[str, str]) -> int:
    """Return the size of a variable of scalars or vectors of 4 bytes per component, or of structures of these."""
    count = math.prod(map(int, re.findall(r"\d+", sides)))
    if type_ in structs:
        return count * sum(_bytes(field["type"], field["sides"], structs) for field in _FIELD.finditer(structs[type_]))
    match = re.fullmatch(r"(?:float|int|uint|bool)(\d?)", type_)
    assert match, f"{type_} has no size here"
    return 4 * int(match[1] or 1) * count
