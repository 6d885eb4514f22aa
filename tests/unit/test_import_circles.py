"""Modules of different rooms import each other in no circle, types included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grimp

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

FRONT_DOOR = "webnn_wgpu"
"""It names the frontends for type checkers, and the frontends use the public interface."""


def _reached(graph: Mapping[str, Set[str]], start: str) -> set[str]:
    found: set[str] = set()
    open_ = [start]
    while open_:
        for module in graph[open_.pop()] - found:
            found.add(module)
            open_.append(module)
    return found


def circles(graph: Mapping[str, Set[str]]) -> list[tuple[str, str]]:
    """Return pairs of modules of different rooms that reach each other."""
    reached = {module: _reached(graph, module) for module in graph}
    return [
        (one, other)
        for one in sorted(graph)
        for other in sorted(reached[one])
        if one < other and one in reached[other] and one.split(".")[1] != other.split(".")[1]
    ]


def test_rooms_import_each_other_in_no_circle() -> None:
    found = grimp.build_graph("webnn_wgpu", exclude_type_checking_imports=False)
    modules = found.modules - {FRONT_DOOR}
    assert len(modules) > 300
    assert circles({m: found.find_modules_directly_imported_by(m) - {FRONT_DOOR} for m in modules}) == []


def test_a_circle_is_found() -> None:
    graph = {"p.api.a": {"p.ops.b"}, "p.ops.b": {"p.ops.c"}, "p.ops.c": {"p.api.a"}}
    assert circles(graph) == [("p.api.a", "p.ops.b"), ("p.api.a", "p.ops.c")]
