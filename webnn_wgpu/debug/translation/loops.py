"""The lines of WGSL that the loops of a compiled kernel come from.

Compilers drop the line numbers of a shader, but keep the order and the nesting of its loops. They may unroll or remove one.
Loops are therefore matched as trees, and a loop gets lines only if no other match is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from typing import Any

from ...core.errors import WebNNError
from ..wgsl import syntax
from ..wgsl.parsing import parse

_ENTRY = "main"

_MULTIPLYING = ("fma", "dot", "dot4I8Packed", "dot4U8Packed")
"""Built-in functions that become multiply-adds."""


@dataclass(frozen=True)
class SourceLoop:
    """A loop of a shader, where the entry point runs it. A function with a loop has one for each call.

    Attributes:
        first, last: the lines of its first and its last statement, counted from 1.
        multiplies: whether it multiplies numbers, other than in an index.
        inner: the loops in it, in the order in which they run.
    """

    first: int
    last: int
    multiplies: bool = False
    inner: tuple[SourceLoop, ...] = ()

    def __str__(self) -> str:
        return f"lines {self.first}-{self.last}"


def source_loops(wgsl: str) -> tuple[SourceLoop, ...]:
    """Return the outermost loops that the entry point runs, or () if the shader is not WGSL that the debugger reads.

    Example:
        >>> shader = '''fn total() -> u32 {
        ...     var t = 0u;
        ...     for (var i = 0u; i < 4u; i++) {
        ...         t += i;
        ...     }
        ...     return t;
        ... }
        ... @compute @workgroup_size(1) fn main() {
        ...     loop {
        ...         if (total() > 3u) { break; }
        ...     }
        ... }'''
        >>> print(*source_loops(shader), *source_loops(shader)[0].inner, sep=", ")
        lines 9-10, lines 3-4
    """
    try:
        module = parse(wgsl)
    except WebNNError:
        return ()
    functions = {name: each for name, each in module.declarations.items() if isinstance(each, syntax.Function)}
    return tuple(_loops(functions[_ENTRY].body, functions)) if _ENTRY in functions else ()


def _loops(node: object, functions: Mapping[str, syntax.Function]) -> Iterator[SourceLoop]:
    """Yield the outermost loops of a part of a shader, in the order in which they run."""
    if isinstance(node, syntax.Loop):
        yield from _loops(node.start, functions)
        repeated = (node.condition, node.body, node.continuing, node.break_if, node.update)
        inner = tuple(loop for part in repeated for loop in _loops(part, functions))
        multiplies = any(_multiplies(part, functions) for part in repeated)
        yield SourceLoop(node.line, max(_lines(node)), multiplies, inner)
        return
    for part in _parts(node):
        yield from _loops(part, functions)
    if isinstance(node, syntax.CallExpression) and node.callee.name in functions:
        yield from _loops(functions[node.callee.name].body, functions)


def _parts(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node):
        yield from (getattr(node, field.name) for field in fields(node))


def _lines(node: object) -> Iterator[int]:
    if isinstance(node, syntax.SyntaxNode):
        yield node.line
    for part in _parts(node):
        yield from _lines(part)


def _multiplies(node: object, functions: Mapping[str, syntax.Function]) -> bool:
    if isinstance(node, syntax.Index):
        return _multiplies(node.base, functions)
    if isinstance(node, syntax.Binary | syntax.Assign) and node.operator in ("*", "*="):
        return True
    if isinstance(node, syntax.CallExpression):
        called = functions.get(node.callee.name)
        if node.callee.name in _MULTIPLYING or (called and _multiplies(called.body, functions)):
            return True
    return any(_multiplies(part, functions) for part in _parts(node))


def lines_of_loops(compiled: Sequence[Mapping[str, Any]], loops: Sequence[SourceLoop]) -> dict[str, SourceLoop]:
    """Return label -> loop of the source for those compiled loops that have a certain counterpart.

    Args:
        compiled: loops with their `label`, `figures` and `inner` loops, in the order of the instructions.
        loops: the loops of the source at the same place.
    """
    choices = [choice for choice in combinations(loops, len(compiled)) if all(map(_may_be, compiled, choice))]
    found: dict[str, SourceLoop] = {}
    for i, each in enumerate(compiled):
        if len({choice[i] for choice in choices}) == 1:
            found |= {each["label"]: choices[0][i], **lines_of_loops(each["inner"], choices[0][i].inner)}
    return found


def _may_be(compiled: Mapping[str, Any], loop: SourceLoop) -> bool:
    """Return whether a compiled loop may come from a loop of the source, some of whose inner loops were unrolled or removed."""
    if compiled["figures"]["multiply-adds"] and not loop.multiplies:
        return False
    inner: Sequence[Mapping[str, Any]] = compiled["inner"]
    return any(all(map(_may_be, inner, choice)) for choice in combinations(loop.inner, len(inner)))
