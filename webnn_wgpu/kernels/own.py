"""Kernels that applications write themselves: the declarations of their WGSL, and their `KernelSpec`.

The module evaluates no part of the source. It appends constants and names of data types as declarations, which WGSL allows in
any order. Line numbers in a driver's messages are therefore those of the application's own source.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..core.errors import quoted
from .dbg import without_comments
from .element import ELEMENTS
from .spec import Binding, KernelSpec

Fail = Callable[..., Exception]

_STORAGE = re.compile(r"((?:@\w+\s*(?:\([^()]*\)\s*)?)+)var\s*<\s*storage\s*(?:,\s*(\w+)\s*)?,?\s*>\s*(\w+)(?:\s*:\s*([^;]*))?")
_OTHER = re.compile(r"@(?:group|binding)\b[^;{}]*?\bvar\s*(?:<\s*(?!storage\b)(\w+)\s*>)?\s*(\w+)\s*:\s*([^;]*)")
"""A variable with a binding that is no storage buffer: its address space, its name and its type."""

_ALIAS = re.compile(r"\balias\s+(\w+)\s*=\s*(\w+)\s*;")
_NUMBERS = re.compile(r"(?:array<)?(?:atomic<)?(?:(vec)[234]<|mat\dx\d<)?(f32|f16|i32|u32)[>,].*")
_SHORT = re.compile(r"\b(vec\d|mat\dx\d)([fhiu])\b")
_MAIN = re.compile(r"\bfn\s+main\b")
_HALF = re.compile(r"\b(f16|vec[234]h|mat[234]x[234]h)\b")
_ENABLED = re.compile(r"\benable\b[^;]*\bf16\b")
_ENABLE = re.compile(r"\benable\b([^;]*);")
_DECLARED = r"\b(?:(?:alias|struct|const|override|fn)\s+|var\s*(?:<[^<>]*>)?\s*)"
_OVERRIDE = r"(?:@id\s*\([^()]*\)\s*)?\boverride\s+{name}\b\s*(:[^=;]*)?(?:=[^;]*)?;"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "i32": np.dtype(np.int32), "u32": np.dtype(np.uint32)}
_SCALARS = {"f": "f32", "h": "f16", "i": "i32", "u": "u32"}
_SUFFIXES = {"int32": "i", "uint32": "u", "float32": "f", "float16": "h"}


@dataclass(frozen=True)
class Declared:
    """A storage buffer of bind group 0 that a source declares.

    Attributes:
        name: the name of the variable.
        access: "read" or "read_write".
        type: the declared type without white space, with the source's aliases replaced: "array<f32>".
    """

    name: str
    access: str
    type: str


def declared_bindings(source: str, fail: Fail) -> list[Declared]:
    """Return the storage buffers that a source declares in bind group 0, in the order of their bindings.

    Raises:
        Exception: the exception of `fail`: no function main, other variables than storage buffers, or bindings that are not
            0, 1, 2, ...
    """
    code = without_comments(source)
    if not _MAIN.search(code):
        hint = "" if "{" in code else "A file is read by Path(file).read_text()"
        raise fail("the shader must have an entry point main", got=_shortened(code), hint=hint)
    if other := _OTHER.search(code):
        space, name, type_ = other.groups()
        hint = f"A buffer `var<storage, read> {name}: {type_.strip()}` takes its place" if space else ""
        got = f"var{f'<{space}>' * bool(space)} {name}"
        raise fail("every variable with a binding must be a storage buffer", got=got, hint=hint)
    found: dict[int, Declared] = {}
    aliases = dict(_ALIAS.findall(code))
    for attributes, access, name, type_ in _STORAGE.findall(code):
        group, binding = (re.search(rf"@{word}\s*\(\s*(\d+)[iu]?\s*,?\s*\)", attributes) for word in ("group", "binding"))
        if group is None or binding is None or group[1] != "0":
            raise fail("every buffer must be declared with @group(0) and a number as @binding", got=f"var {name}")
        found[int(binding[1])] = Declared(name, access or "read", _without_aliases(type_, aliases))
    if sorted(found) != list(range(len(found))):
        raise fail("bindings must be numbered 0, 1, 2, ...", got=", ".join(f"{d.name}: {i}" for i, d in sorted(found.items())))
    return [found[i] for i in range(len(found))]


def check_elements(name: str, declared: str, dtype: np.dtype[Any], fail: Fail, *, bits: bool = False, hint: str = "") -> None:
    """Check that the data type of an array or operand is that of the numbers in its buffer.

    Buffers take the bytes of an array, which would be other numbers. An integer of 32 bits may hold several smaller elements.
    A vector of two such integers holds one of 64 bits.

    Args:
        name: the name of the buffer's variable.
        declared: its type in WGSL without white space: "array<f32>". Structures are not checked.
        dtype: the data type of the array or operand.
        fail: returns the error to raise.
        bits: whether integers may hold the bits of any data type. Graphs have no other way to pass bits.
        hint: the next step. The default is that for an array.

    Raises:
        Exception: the exception of `fail`: another data type.
    """
    numbers = _NUMBERS.fullmatch(declared if declared.endswith(">") else f"{declared}>")
    if numbers is None:
        return
    wanted = _DTYPES[numbers[2]]
    if dtype == wanted:
        return
    if wanted.kind != "f" and (bits or dtype.kind != "b"):
        whole = dtype.kind in "iu" and (dtype.itemsize == wanted.itemsize or numbers[1])
        if bits or whole or dtype.itemsize < wanted.itemsize:
            return
    if dtype.kind not in "biuf":
        raise fail("a buffer must get an array of numbers", got=f"{name}: {dtype}", allowed=f"{wanted}, for {declared}")
    raise wrong_elements(name, f"{wanted}, for {declared}", wanted, dtype, fail, hint)


def declared_integers(declared: str) -> np.dtype[Any] | None:
    """Return the data type of the single 32-bit integers that a buffer declares, or None for other contents.

    >>> declared_integers("array<atomic<u32>>"), declared_integers("array<vec2<u32>>")
    (dtype('uint32'), None)
    """
    numbers = _NUMBERS.fullmatch(declared if declared.endswith(">") else f"{declared}>")
    if numbers is None or numbers[1] or numbers[2] not in ("i32", "u32"):
        return None
    return _DTYPES[numbers[2]]


def wrong_elements(
    name: str, allowed: str, wanted: np.dtype[Any], dtype: np.dtype[Any], fail: Fail, hint: str = ""
) -> Exception:
    """Return the error of an array or operand whose data type is not that of its buffer."""
    return fail(
        "the data type must be that of the buffer",
        got=f"{name}: {dtype}",
        allowed=allowed,
        hint=hint or f"np.{wanted}({name}) converts the numbers. {name}.view(np.{wanted}) keeps the bits",
    )


def constant_declarations(constants: Mapping[str, Any], fail: Fail) -> tuple[str, ...]:
    """Return declarations of constants.

    Args:
        constants: name -> number or bool. Python's become constants of any fitting type, numpy's those of their own.
        fail: returns the error to raise.
    """
    return tuple(f"const {name} = {_literal(name, value, fail)};" for name, value in constants.items())


def type_declarations(data_types: Sequence[str]) -> tuple[str, ...]:
    """Return declarations of names for data types: `T0`, `T1`, ... for each, and `T` for the first.

    >>> type_declarations(["float32", "float16"])
    ('alias T = f32;', 'alias T0 = f32;', 'alias T1 = f16;')
    """
    words = [ELEMENTS[name].word if name in ELEMENTS else "" for name in data_types]
    names = [*(("T", word) for word in words[:1]), *((f"T{i}", word) for i, word in enumerate(words))]
    return tuple(f"alias {name} = {word};" for name, word in names if word)


def declaring(source: str, declarations: Iterable[str]) -> str:
    """Return a source with declarations behind it, and float16 enabled in its first line if it needs that.

    >>> print(declaring("fn main() { let x = T(); }", ["alias T = f16;"]))
    enable f16; fn main() { let x = T(); }
    alias T = f16;
    <BLANKLINE>
    """
    whole = "\n".join([source.rstrip("\n"), *declarations, ""])
    code = without_comments(whole)
    return "enable f16; " * (bool(_HALF.search(code)) and not _ENABLED.search(code)) + whole


def set_overrides(source: str, constants: Iterable[str]) -> tuple[str, list[str]]:
    """Return a source with constants in the place of its `override`s of these names, and the other constants.

    >>> set_overrides("override SIZE: u32 = 8; @id(1) override N: f32;", ["const SIZE = 4;", "const N = 0.5;", "const M = 1;"])
    ('const SIZE: u32 = 4; const N: f32 = 0.5;', ['const M = 1;'])
    """
    others: list[str] = []
    for constant in constants:
        name, value = constant.removeprefix("const ").removesuffix(";").split(" = ")
        found = re.search(_OVERRIDE.format(name=name), without_comments(source))
        if found is None:
            others.append(constant)
        else:
            type_ = found[1].rstrip() if found[1] else ""
            lines = "\n" * found[0].count("\n")  # later lines keep their numbers
            source = f"{source[: found.start()]}const {name}{type_} = {value};{lines}{source[found.end() :]}"
    return source, others


def unused(source: str, names: Iterable[str]) -> list[str]:
    """Return those names that do not occur in a source.

    >>> unused("override SIZE: u32 = 8; // WIDTH", ["SIZE", "WIDTH"])
    ['WIDTH']
    """
    words = set(_NAME.findall(without_comments(source)))
    return [name for name in names if name not in words]


def overridable(source: str) -> list[str]:
    """Return the names of a source's `override`s.

    >>> overridable("@id(1) override SIZE: u32 = 8; const WIDTH = SIZE;")
    ['SIZE']
    """
    return re.findall(r"\boverride\s+(\w+)", without_comments(source))


def for_naga(source: str) -> str:
    """Return a source without `subgroups` in its `enable` directives. Other text keeps its position.

    Browsers demand that extension for subgroup functions. naga refuses its name, and has the functions by a device's feature.

    >>> for_naga("enable subgroups; enable f16, subgroups; fn main() {}")
    '                  enable f16;            fn main() {}'
    """
    for found in _ENABLE.finditer(without_comments(source)):
        names = [name.strip() for name in found[1].split(",")]
        if "subgroups" in names:
            others = ", ".join(name for name in names if name not in ("subgroups", ""))
            lines = "\n" * found[0].count("\n")
            directive = f"enable {others};" * bool(others)
            blank = directive.ljust(len(found[0]) - len(lines)) + lines
            source = source[: found.start()] + blank + source[found.end() :]
    return source


def lacking(source: str, declarations: Iterable[str]) -> tuple[str, ...]:
    """Return those declarations whose names a source uses and does not declare itself.

    >>> lacking("fn main() { let x: T = T(SIZE); } const SIZE = 2;", ["alias T = f32;", "alias T0 = f32;", "const SIZE = 1;"])
    ('alias T = f32;',)
    >>> lacking("@group(0) @binding(0) var<storage, read> T: array<f32>; fn main() { let x = T[0]; }", ["alias T = f32;"])
    ()
    """
    code = without_comments(source)
    found: list[str] = []
    for declaration in declarations:
        name = declaration.split()[1]
        if re.search(rf"\b{name}\b", code) and not re.search(rf"{_DECLARED}{name}\b", code):
            found.append(declaration)
    return tuple(found)


def _without_aliases(type_: str, aliases: Mapping[str, str]) -> str:
    """Return a type without white space and without aliases of single words. Longer ones could grow without bounds."""
    for _ in aliases:  # An alias may name another one.
        type_ = re.sub(r"\w+", lambda word: aliases.get(word[0], word[0]), type_)
    return _SHORT.sub(lambda short: f"{short[1]}<{_SCALARS[short[2]]}>", re.sub(r"\s+", "", type_))


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


def own_spec(name: str, source: str, bindings: Iterable[Binding], given: Iterable[str] = ()) -> KernelSpec:
    """Return the kernel of a source.

    Args:
        name: the name in plans and messages.
        source: the WGSL, with an entry point main.
        bindings: the buffers in order. They are bound exactly, so that `arrayLength` counts their elements.
        given: declarations that a source in its place may use too.
    """
    return KernelSpec(template=name, params=(), bindings=tuple(bindings), source=source, given=tuple(given))


def _shortened(code: str) -> str:
    text = " ".join(code.split())
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
