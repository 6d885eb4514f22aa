"""Type checkers know the names that `__getattr__` finds at run time, and no others."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import webnn_wgpu as wn
from webnn_wgpu.api.operators.ext import Extensions
from webnn_wgpu.core.names import snake_case

PACKAGE = Path(wn.__file__).parent
CLASSES = (wn.ML, wn.MLContext, wn.MLGraph, wn.MLGraphBuilder, wn.MLOperand, wn.MLTensor, wn.AsyncMLContext, Extensions)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def declared(cls: type) -> dict[str, str]:
    """Names that a class and its bases have for type checkers alone, and the names that they stand for."""
    found: dict[str, str] = {}
    for base in cls.__mro__:
        if not base.__module__.startswith("webnn_wgpu."):
            continue
        tree = parsed(Path(inspect.getfile(base)))
        (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == base.__name__)
        for block in body:
            if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
                for line in block.body:
                    if isinstance(line, ast.Assign):
                        found |= {ast.unparse(name): ast.unparse(line.targets[0]) for name in line.targets[1:]}
                        found.setdefault(ast.unparse(line.targets[0]), ast.unparse(line.value))
                    elif isinstance(line, ast.FunctionDef):
                        found[line.name] = line.name
                    elif isinstance(line, ast.AnnAssign):
                        found[ast.unparse(line.target)] = snake_case(ast.unparse(line.target))
    return found


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_name_of_several_words_is_declared_in_camel_case(cls: type) -> None:
    names = {name for name in dir(cls) if "_" in name.strip("_") and not name.startswith("_") and not name.endswith("_")}
    camel = {name: original for name, original in declared(cls).items() if name != name.lower()}
    assert {snake_case(name) for name in camel} >= names
    assert {name: original for name, original in camel.items() if snake_case(name) != original} == {}


def test_an_asynchronous_context_has_what_a_context_has() -> None:
    public = {name for name in dir(wn.MLContext) if not name.startswith("_")}
    assert {*dir(wn.AsyncMLContext), *declared(wn.AsyncMLContext)} >= public


def test_type_checkers_see_no_getattr() -> None:
    hidden: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        if "__getattr__" not in path.read_text(encoding="utf-8"):
            continue
        tree = parsed(path)
        blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
        guarded = {
            id(node)
            for block in blocks
            for line in (block.body if ast.unparse(block.test).startswith("not ") else block.orelse)
            for node in ast.walk(line)
        }
        private = {
            id(node) for c in ast.walk(tree) if isinstance(c, ast.ClassDef) and c.name.startswith("_") for node in ast.walk(c)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__" and id(node) not in guarded | private:
                hidden.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert hidden == []
