"""What type checkers say of programs that use the package: some they must accept, others they must refuse.

A line of a program in `invalid` that must be refused has a comment beneath it for each checker, with a part of the message:

    builder.sofmax(x)
    # refused by pyright: Cannot access attribute "sofmax"
    # refused by mypy: has no attribute "sofmax"
"""

from __future__ import annotations

import json
import runpy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

import webnn_wgpu as wn
from tests.typing.checkers import CHECKERS, Diagnostic, check, expected_in, programs

if TYPE_CHECKING:
    from collections.abc import Sequence

VALID, INVALID = programs("valid"), programs("invalid")


@pytest.fixture(scope="session")
def diagnostics(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> list[Diagnostic]:
    """What the checkers report of all programs. The first of pytest-xdist's workers that asks runs them for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(pytestconfig, "workerinput"):
        folder = folder.parent
    report = folder / "type-checkers.json"
    with FileLock(folder / "type-checkers.lock"):
        if not report.exists():
            cache = Path(str(pytestconfig.cache.mkdir("mypy"))) if pytestconfig.cache else folder / "mypy"
            found = check(folder / "type-checkers", cache)
            report.write_text(json.dumps([asdict(diagnostic) for diagnostic in found]), encoding="utf-8")
    return [Diagnostic(**fields) for fields in json.loads(report.read_text(encoding="utf-8"))]


def of_program(diagnostics: Sequence[Diagnostic], checker: str, program: Path) -> list[Diagnostic]:
    return [d for d in diagnostics if (d.checker, d.program) == (checker, f"{program.parent.name}/{program.name}")]


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("program", VALID, ids=lambda program: program.stem)
def test_a_valid_program_is_accepted(diagnostics: list[Diagnostic], program: Path, checker: str) -> None:
    assert of_program(diagnostics, checker, program) == []


@pytest.mark.parametrize("program", VALID, ids=lambda program: program.stem)
def test_a_valid_program_runs(context: wn.MLContext, program: Path) -> None:
    runpy.run_path(str(program))["program"](context)


@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("program", INVALID, ids=lambda program: program.stem)
def test_an_invalid_program_is_refused(diagnostics: list[Diagnostic], program: Path, checker: str) -> None:
    expected = [e for e in expected_in(program) if e.checker == checker]
    found = of_program(diagnostics, checker, program)
    assert expected, f"{program.name} does not say what {checker} must report"
    missing = [e for e in expected if not any(e.line == d.line and e.message in d.message for d in found)]
    more = [d for d in found if not any(e.line == d.line and e.message in d.message for e in expected)]
    assert (missing, more) == ([], [])


def test_half_of_many_programs_are_refused() -> None:
    assert len(VALID) + len(INVALID) >= 40
    assert len(INVALID) >= 20


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(wn.__file__).parent / "py.typed").is_file()
