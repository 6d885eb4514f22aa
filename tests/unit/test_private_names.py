"""Rooms of the package use no private names of each other: tools go through `api.internals`."""

from __future__ import annotations

import ast
from pathlib import Path

import webnn_wgpu

PACKAGE = Path(webnn_wgpu.__file__).parent

OF_OTHER_PACKAGES = frozenset(
    {
        *("_getframe", "_get_running_loop"),  # sys, asyncio
        "_uptodate",  # jinja2
        *("_parser", "_parsed_types", "_get_cached_btype", "_get_type_pointer"),  # cffi
        *("_wgpu_object", "_wgpu_usage", "_gfx_mark_for_sync"),  # pygfx
        *("_api", "_device", "_internal", "_release", "_poll", "_poll_wait", "_make_proxy_func"),  # wgpu
        *("_map_state", "_mapped_status", "_mapped_memoryviews"),  # wgpu
    }
)
"""Private names of other packages, for which there are no public ones."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _defined(tree: ast.AST) -> set[str]:
    """Return all private names that a module defines: functions, classes, variables, attributes of instances, slots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str(name)) if name.isidentifier():
                found.add(name)  # __slots__, and names for setattr
            case _:
                pass
    return found


def _used(tree: ast.AST) -> list[tuple[int, str]]:
    """Return private names of other objects than `self`, and private names that are imported, with their lines."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, alias.name) for alias in node.names]
    return [(line, name) for line, name in found if _is_private(name)]


def _foreign(room: dict[str, ast.AST]) -> list[str]:
    own: set[str] = set().union(*(_defined(tree) for tree in room.values()))
    modules = {Path(path).stem for path in room}
    return [
        f"{path}:{line}: {name}"
        for path, tree in room.items()
        for line, name in _used(tree)
        if name not in own and name not in modules and name not in OF_OTHER_PACKAGES
    ]


def _rooms() -> dict[str, dict[str, ast.AST]]:
    rooms: dict[str, dict[str, ast.AST]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if len(place.parts) > 1:
            rooms.setdefault(place.parts[0], {})[str(place)] = ast.parse(path.read_text("utf-8"))
    return rooms


def test_no_room_uses_a_private_name_of_another() -> None:
    rooms = _rooms()
    assert len(rooms) > 12
    assert [use for room in rooms.values() for use in _foreign(room)] == []


def test_a_private_name_of_another_room_is_found() -> None:
    source = "from ..api.graph import _hidden\n\ndef look(graph):\n    return graph._executable, graph.plan, self._own"
    assert sorted(_foreign({"debug/look.py": ast.parse(source)})) == [
        "debug/look.py:1: _hidden",
        "debug/look.py:4: _executable",
    ]
