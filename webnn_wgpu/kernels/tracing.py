"""Sources whose `dbg` statements write their arguments to a buffer: the WGSL of `debug.trace`.

The buffer is the only binding of bind group 1. Each value takes a record: the invocation, the statement and up to four words.
Only the compiler knows the type of a value: `with_value` asks it about one statement and one type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.data_types import Array
from .dbg import DbgStatement, without_comments

RECORD_WORDS = 11
"""Workgroup and invocation with three words each, the number of the statement, and the value's four words."""

COUNT_BYTES = 4
"""The size of the counter before the records: the number of records that a buffer of unlimited size would have."""

_SCALARS = {"i32": np.int32, "u32": np.uint32, "f32": np.float32, "bool": np.bool_, "f16": np.float16}
_WORD = {"i32": "bitcast<u32>({})", "u32": "{}", "f32": "bitcast<u32>({})", "bool": "u32({})", "f16": "bitcast<u32>(f32({}))"}
_IDS = {"workgroup": "workgroup_id", "invocation": "local_invocation_id", "global": "global_invocation_id"}
"""The names that a condition may use -> their built-in values."""

_MAIN = re.compile(r"\bfn\s+main\s*\(([^{]*?)\)\s*\{")
_PARAMETER = re.compile(r"((?:@\w+\s*(?:\([^()]*\))?\s*)*)(\w+)\s*:\s*(\w+)")


@dataclass(frozen=True)
class ValueType:
    """The type of a value that can be traced: a scalar, or a vector of them.

    Attributes:
        scalar: WGSL type of a component.
        size: the number of components of a vector. 1 for a scalar.
    """

    scalar: str
    size: int

    def __str__(self) -> str:
        return self.scalar if self.size == 1 else f"vec{self.size}<{self.scalar}>"

    def words(self, value: str) -> str:
        """Return four WGSL expressions of type u32, with commas, that hold a value of this type."""
        parts = [value] if self.size == 1 else [f"{value}.{c}" for c in "xyzw"[: self.size]]
        return ", ".join([*(_WORD[self.scalar].format(part) for part in parts), *["0u"] * (4 - self.size)])

    def decoded(self, words: Array) -> Array:
        """Return the values that words, [values, 4], hold: an array of scalars, or of [values, size]."""
        kept = np.ascontiguousarray(words[:, : self.size])
        typed: Array = kept if self.scalar in ("u32", "bool") else kept.view(np.int32 if self.scalar == "i32" else np.float32)
        found: Array = typed.astype(_SCALARS[self.scalar])
        return found[:, 0] if self.size == 1 else found


def value_types(source: str) -> list[ValueType]:
    """Return the types that a value of a source may have, those first that literals take."""
    scalars = [s for s in _SCALARS if s != "f16" or re.search(r"\benable\b[^;]*\bf16\b", without_comments(source))]
    return [ValueType(scalar, size) for size in range(1, 5) for scalar in scalars]


def with_values(source: str, statements: Sequence[DbgStatement]) -> str:
    """Return a source whose `dbg` statements compute their values, at the very lines and columns, and no more."""
    return _replaced(source, statements, [_padded("_ =", s) + s.value + ";" for s in statements])


def with_value(source: str, statements: Sequence[DbgStatement], number: int, type_: ValueType) -> str:
    """Return a source that compiles if the value of one of its statements has a certain type."""
    texts = [_padded("_ =", s) + s.value + ";" for s in statements]
    texts[number] = f"{{ let dbg_value: {type_} = {statements[number].value}; _ = dbg_value; }}"
    return _replaced(source, statements, texts)


def traced(source: str, statements: Sequence[DbgStatement], types: Sequence[ValueType], condition: str, limit: int) -> str:
    """Return a source that writes the values of its `dbg` statements to a buffer. Its lines keep their numbers.

    Args:
        source: WGSL with the entry point `main`.
        statements: the statements in it.
        types: the types of their values.
        condition: the WGSL condition of traced invocations, on `workgroup`, `invocation` and `global` of type vec3<u32>.
        limit: most records that the buffer holds.
    """
    texts = [
        f"{{ let dbg_value: {type_} = {s.value}; if (dbg_wanted()) {{ dbg_write({i}u, {type_.words('dbg_value')}); }} }}"
        for i, (s, type_) in enumerate(zip(statements, types, strict=True))
    ]
    code = _replaced(source, statements, texts)
    declarations = "".join(f"var<private> dbg_{name}: vec3<u32>;\n" for name in _IDS)
    names = "".join(f"    let {name} = dbg_{name};\n" for name in _IDS)
    ids = [f"dbg_{name}.{c}" for name in ("workgroup", "invocation") for c in "xyz"]
    words = [*ids, "statement", "a", "b", "c", "d"]
    stores = "".join(f"    dbg_trace.records[first + {i}u] = {word};\n" for i, word in enumerate(words))
    return f"""{_with_ids(code)}
struct DbgTrace {{ count: atomic<u32>, records: array<u32> }}
@group(1) @binding(0) var<storage, read_write> dbg_trace: DbgTrace;
{declarations}
fn dbg_wanted() -> bool {{
{names}    return {condition};
}}

fn dbg_write(statement: u32, a: u32, b: u32, c: u32, d: u32) {{
    let number = atomicAdd(&dbg_trace.count, 1u);
    if (number >= {limit}u) {{ return; }}
    let first = number * {RECORD_WORDS}u;
{stores}}}
"""


def _replaced(source: str, statements: Sequence[DbgStatement], texts: Sequence[str]) -> str:
    """Return a source with statements replaced. Statements keep their lines, and the text behind them keeps its columns."""
    parts: list[str] = []
    at = 0
    for statement, text in zip(statements, texts, strict=True):
        parts += [source[at : statement.start], text]
        at = statement.end
        parts.append("\n" * (source.count("\n", statement.start, at) - text.count("\n")))
    return "".join([*parts, source[at:]])


def _padded(text: str, statement: DbgStatement) -> str:
    """Return a text, padded so that the value of a statement keeps its column behind it."""
    return text + " " * (statement.value_start - statement.start - len(text))


def _with_ids(code: str) -> str:
    """Return a source whose entry point keeps which invocation it is."""
    plain = without_comments(code)
    main = _MAIN.search(plain)
    if main is None:
        return code
    found = {name: _id_of(built_in, main[1], plain) for name, built_in in _IDS.items()}
    added = ", ".join(f"@builtin({_IDS[name]}) dbg_{_IDS[name]}: vec3<u32>" for name, where in found.items() if not where)
    comma = ", " if added and main[1].strip() else ""
    kept = "".join(f" dbg_{name} = {where or f'dbg_{_IDS[name]}'};" for name, where in found.items())
    return code[: main.start(1)] + added + comma + code[main.start(1) : main.end()] + kept + code[main.end() :]


def _id_of(built_in: str, parameters: str, plain: str) -> str:
    """Return the expression of a built-in value among a source's parameters or struct members, or "" if there is none."""
    for attributes, name, type_ in _PARAMETER.findall(parameters):
        if re.search(rf"@builtin\s*\(\s*{built_in}\s*,?\s*\)", attributes):
            return str(name)
        struct = re.search(rf"\bstruct\s+{type_}\s*\{{([^}}]*)\}}", plain) if not attributes.strip() else None
        member = _id_of(built_in, struct[1], plain) if struct else ""
        if member:
            return f"{name}.{member}"
    return ""
