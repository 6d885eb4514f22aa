"""One place per operator: what belongs to it shares one stem, and every template has one owner."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from webnn_wgpu import ops
from webnn_wgpu.kernels.templates import shader_root
from webnn_wgpu.ops import OPS

REPOSITORY = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((shader_root() / "ops").iterdir())
STEMS = sorted(path.stem for path in (REPOSITORY / "webnn_wgpu" / "ops").glob("[!_]*.py"))


def stem(template: Path) -> str:
    return template.name.partition(".")[0]


def header(template: Path) -> tuple[list[str], str]:
    """The operators and the file that a template's first line (or lines, all `// op:`) names as its owners."""
    lines = template.read_text(encoding="utf-8").splitlines()
    first = " ".join(line.removeprefix("// op: ") for line in lines if line.startswith("// op: "))
    assert lines[0].startswith("// op: ")
    match = re.fullmatch(r"([\w.]+(?:, [\w.]+)*)  \(webnn_wgpu/ops/(\w+)\.py\)", first)
    assert match, f"{template.name} begins with {lines[0]!r}"
    return match[1].split(", "), match[2]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_one_owner_and_names_its_operators(template: Path) -> None:
    assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)?\.wgsl\.j2", template.name)
    named, owner = header(template)
    # What several operators share may be owned by a module that is no operator's.
    assert owner.strip("_") == stem(template)
    assert (REPOSITORY / "webnn_wgpu" / "ops" / f"{owner}.py").is_file()
    users = {op.name for op in OPS.values() if template.name in {f"{t.name}.wgsl.j2" for t in op.templates}}
    owned = users & {op.name for op in getattr(ops, owner).OPS} if not owner.startswith("_") else set[str]()
    # Others may use it too. A table of formulas is named as a whole.
    assert users
    assert owned <= set(named) <= users or named == [owner]


def test_every_template_is_used_and_every_used_one_is_there() -> None:
    used = {t.name for op in OPS.values() for t in op.templates}
    assert used == {path.name.removesuffix(".wgsl.j2") for path in TEMPLATES}


def test_shaders_are_wgsl_alone() -> None:
    assert {
        path.name for path in shader_root().rglob("*") if path.is_file() and not re.search(r"\.wgsl(\.j2)?$", path.name)
    } == set()
    for path in shader_root().rglob("*.wgsl"):
        assert not re.search(r"\{[{%#]|^\s*\$\$", path.read_text(encoding="utf-8"), re.MULTILINE), f"{path.name} needs .j2"


@pytest.mark.parametrize("name", STEMS)
def test_an_operators_file_has_its_test(name: str) -> None:
    assert (REPOSITORY / "tests" / "ops" / f"test_{name}.py").is_file()


@pytest.mark.parametrize("name", STEMS)
def test_an_operators_file_is_registered(name: str) -> None:
    module = getattr(ops, name)
    assert module.OPS
    assert all(OPS[op.name] is op for op in module.OPS)


def test_tests_are_of_operators() -> None:
    found = {path.stem.removeprefix("test_") for path in (REPOSITORY / "tests" / "ops").glob("test_*.py")}
    assert found <= set(STEMS)


def test_names_are_unique() -> None:
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for name in STEMS:
        for op in getattr(ops, name).OPS:
            owners[op.name].append(name)
            owners[op.python_name].append(name) if op.python_name != op.name else None
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_an_operator_is_whole(op: ops.OpDef) -> None:
    assert op.operands
    assert (not op.spec) if op.internal or op.extension else op.spec.startswith("#api-mlgraphbuilder-")
    assert re.fullmatch(r"x\.[a-z][a-z0-9_]*" if op.extension else r"[a-zA-Z0-9]+", op.name)
    assert op.internal or op.reference is not None
    assert (op.lower is None) <= (not op.templates)
    assert op.elementwise is None or op.tolerance is not None
    names = [o.name for o in op.operands] + [a.name for a in op.attrs]
    assert len(set(names)) == len(names)
    earlier: set[str] = set()
    for operand in op.operands:
        assert not operand.same_as or operand.same_as in earlier
        earlier.add(operand.name)
