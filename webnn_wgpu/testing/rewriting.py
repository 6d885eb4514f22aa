"""Variants of a kernel that must have equal results: with another order of invocations, or other bytes behind its buffers.

The module parses only the entry point's parameters and calls of `arrayLength`. It inserts all text in one line, so that line
numbers do not change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..kernels.dbg import without_comments

_SIZE = re.compile(r"@workgroup_size\s*\(((?:[^()]|\([^()]*\))*)\)")
_BUILTIN = re.compile(r"@builtin\s*\(\s*(\w+)\s*,?\s*\)\s*(\w+)\s*:")
_SCALARS = {"f32": 4, "i32": 4, "u32": 4, "f16": 2, "i64": 8, "u64": 8}
_LETTERS = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}

_ORDERED = {
    "workgroup_id": "order_group",
    "local_invocation_id": "order_local",
    "local_invocation_index": "(order_local.x + order_size.x * (order_local.y + order_size.y * order_local.z))",
    "global_invocation_id": "(order_group * order_size + order_local)",
}
"""The expression of each built-in value, by the numbers of workgroup and invocation in the new order."""


@dataclass(frozen=True)
class _EntryPoint:
    """Positions in a source: the parameters of main, and the beginning of its body."""

    parameters: tuple[int, int]
    body: int
    size: str
    builtins: Mapping[str, str]


def _entry_point(code: str) -> _EntryPoint | None:
    """Return the facts about main, or None if its parameters are not all built-in values."""
    main = re.search(r"\bfn\s+main\s*\(", code)
    sizes = list(_SIZE.finditer(code, 0, main.start())) if main else []
    if main is None or not sizes:
        return None
    depth, end = 1, main.end()
    while depth and end < len(code):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    parameters = code[main.end() : end - 1]
    builtins = dict(_BUILTIN.findall(parameters))
    body = code.find("{", end)
    if body < 0 or parameters.count(":") != len(builtins):
        return None
    sides = [side for side in (part.strip() for part in _parts(sizes[-1][1])) if side]
    size = ", ".join(f"u32({side})" for side in [*sides, "1", "1"][:3])
    return _EntryPoint((main.end(), end - 1), body + 1, f"vec3<u32>({size})", builtins)


def _parts(text: str) -> list[str]:
    """Return the parts of a text between commas outside of parentheses."""
    return re.findall(r"(?:[^,()]|\([^()]*\))+", text)


def reordered(source: str, *, workgroups: bool, invocations: bool) -> str | None:
    """Return a kernel that numbers its workgroups, or the invocations of each, from the last to the first.

    A driver that runs them in sequence then runs them in reverse.

    Args:
        source: WGSL with an entry point main.
        workgroups: whether workgroups change their order.
        invocations: whether the invocations of a workgroup do.

    Returns:
        None if that is impossible: main takes its built-in values in a structure, or invocations cooperate in subgroups.

    >>> print(
    ...     reordered(
    ...         '''@compute @workgroup_size(64)
    ... fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ...     y[id.x] = 1.0;
    ... }''',
    ...         workgroups=False,
    ...         invocations=True,
    ...     ).splitlines()[2]
    ... )
        y[id.x] = 1.0;
    """
    code = without_comments(source)
    entry = _entry_point(code)
    if entry is None or (invocations and "subgroup" in code):
        return None
    first, end = entry.parameters
    needed = ("workgroup_id", "local_invocation_id", "num_workgroups")
    names = {builtin: f"order_{builtin}" for builtin in needed} | dict(entry.builtins)
    added = [f"@builtin({builtin}) {names[builtin]}: vec3<u32>, " for builtin in needed if builtin not in entry.builtins]
    parameters = "".join(added) + source[first:end]
    given = {builtin: f"order_given_{builtin}" for builtin in _ORDERED if builtin in names}
    for builtin, name in given.items():
        parameters = re.sub(rf"(@builtin\s*\(\s*{builtin}\s*,?\s*\)\s*){names[builtin]}\b", rf"\g<1>{name}", parameters)
    group, local = given["workgroup_id"], given["local_invocation_id"]
    if workgroups:
        group = f"{names['num_workgroups']} - 1u - {group}"
    if invocations:
        local = f"order_size - 1u - {local}"
    values = f" let order_size = {entry.size}; let order_group = {group}; let order_local = {local};"
    values += "".join(f" let {names[b]} = {value};" for b, value in _ORDERED.items() if b in entry.builtins)
    return source[:first] + parameters + source[end : entry.body] + values + source[entry.body :]


def unfenced(source: str, behind: Mapping[str, int]) -> tuple[str, frozenset[str]]:
    """Return a kernel whose lengths exclude the bytes behind its buffers, and the buffers for which that was possible.

    Args:
        source: the WGSL.
        behind: variable -> the number of bytes that are bound behind it.

    >>> unfenced("var<storage> x: array<vec2f>; ... arrayLength(&x)", {"x": 64})
    ('var<storage> x: array<vec2f>; ... (arrayLength(&x) - 8u)', frozenset({'x'}))
    """
    code = without_comments(source)
    calls = {n: list(re.finditer(rf"\barrayLength\s*\(\s*&\s*\(?\s*{n}\s*\)?\s*\)", code)) for n in behind}
    if sum(map(len, calls.values())) < len(re.findall(r"\barrayLength\b", code)):
        return source, frozenset()  # by way of a pointer, or of a structure: any buffer may be meant
    sizes = {name: _item_bytes(code, name) for name in behind}
    fit = [name for name, size in sizes.items() if not calls[name] or (size and behind[name] % size == 0)]
    edits = [(m.start(), m.end(), f"({m[0]} - {behind[n] // (sizes[n] or 1)}u)") for n in fit for m in calls[n]]
    for first, end, text in sorted(edits, reverse=True):
        source = source[:first] + text + source[end:]
    return source, frozenset(fit)


def _item_bytes(code: str, name: str) -> int | None:
    """Return the size of an item of a runtime-sized array of numbers or vectors in bytes. None for other types."""
    declared = re.search(rf"\bvar\s*<[^>]*>\s*{name}\s*:\s*array\s*<\s*([^,;]+?)\s*>\s*;", code)
    return _type_bytes(code, declared[1]) if declared else None


def _type_bytes(code: str, text: str) -> int | None:
    if text in _SCALARS:
        return _SCALARS[text]
    if alias := re.search(rf"\balias\s+{re.escape(text)}\s*=\s*([^;]+?)\s*;", code):
        return _type_bytes(code, alias[1])
    if wrapped := re.fullmatch(r"atomic\s*<\s*(\w+)\s*>", text):
        return _SCALARS.get(wrapped[1])
    if not (vector := re.fullmatch(r"vec([234])(?:([fiuh])|\s*<\s*(\w+)\s*>)", text)):
        return None
    size = _type_bytes(code, _LETTERS.get(vector[2], vector[3]))
    return None if size is None else size * (2 if vector[1] == "2" else 4)
