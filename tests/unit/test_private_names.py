"""Rooms of the package use no private names of each other: tools go through `api.internals`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TypeAlias

import webnn_wgpu

PACKAGE = Path(webnn_wgpu.__file__).parent

OF_OTHER_PACKAGES = frozenset(
    {
        *("_getframe", "_get_running_loop"),  # sys, asyncio
        "_uptodate",  # jinja2
        "_BACKEND",  # keras
        *("_parser", "_parsed_types", "_get_cached_btype", "_get_type_pointer"),  # cffi
        *("_wgpu_object", "_wgpu_usage", "_gfx_mark_for_sync"),  # pygfx
        *("_api", "_device", "_internal", "_release", "_poll", "_poll_wait", "_make_proxy_func"),  # wgpu
        *("_map_state", "_mapped_status", "_mapped_memoryviews"),  # wgpu
    }
)
"""Private names of other packages, for which there are no public ones."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


Names: TypeAlias = tuple[set[str], list[tuple[int, str]]]
"""The names that a module defines, and the private names of other objects that it uses, with their lines."""


def _names(source: str) -> Names:
    """Return the names that a module defines, and the private names of other objects that it uses, with their lines.

    It defines functions, classes, variables, attributes of instances and slots. It uses attributes of objects but `self`, and
    names that it imports.
    """
    defined: set[str] = set()
    used: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                used.append((node.lineno, node.attr))
            elif isinstance(node.ctx, ast.Store):
                defined.add(node.attr)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                defined.add(node.id)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and node.value.isidentifier():
                defined.add(node.value)  # __slots__, and names for setattr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            used += [(node.lineno, alias.name) for alias in node.names]
    return defined, [(line, name) for line, name in used if _is_private(name)]


def _foreign(room: dict[str, Names]) -> list[str]:
    own: set[str] = set().union(*(defined for defined, _ in room.values()))
    modules = {Path(path).stem for path in room}
    return [
        f"{path}:{line}: {name}"
        for path, (_, used) in room.items()
        for line, name in used
        if name not in own and name not in modules and name not in OF_OTHER_PACKAGES
    ]


def _rooms() -> dict[str, dict[str, Names]]:
    rooms: dict[str, dict[str, Names]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if len(place.parts) > 1:
            rooms.setdefault(place.parts[0], {})[str(place)] = _names(path.read_text("utf-8"))
    return rooms


def test_no_room_uses_a_private_name_of_another() -> None:
    rooms = _rooms()
    assert len(rooms) > 12
    assert [use for room in rooms.values() for use in _foreign(room)] == []


def test_a_private_name_of_another_room_is_found() -> None:
    source = "from ..api.graph import _hidden\n\ndef look(graph):\n    return graph._executable, graph.plan, self._own"
    assert sorted(_foreign({"debug/look.py": _names(source)})) == [
        "debug/look.py:1: _hidden",
        "debug/look.py:4: _executable",
    ]
