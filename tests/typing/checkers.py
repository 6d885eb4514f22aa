"""Runs pyright and mypy over programs, once for all of them, and reads what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import webnn_wgpu

FOLDER = Path(__file__).parent
CHECKERS = ("pyright", "mypy")

_UNKNOWN = [f"reportUnknown{kind}Type" for kind in ("Argument", "Member", "Variable")]

_EXPECTED = re.compile(r"# refused by (pyright|mypy): (.+)")


@dataclass(frozen=True)
class Diagnostic:
    """An error that a type checker reports.

    Attributes:
        checker: "pyright" or "mypy".
        program: path of the program below this folder: "valid/constants.py".
        line: number of the line, from 1.
        message: text of the error.
    """

    checker: str
    program: str
    line: int
    message: str


def programs(kind: str) -> list[Path]:
    """Return the programs in the folder `valid` or `invalid`."""
    return sorted((FOLDER / kind).glob("*.py"))


def expected_in(program: Path) -> Iterator[Diagnostic]:
    """Yield the errors that comments of a program demand, each for the nearest line of code above the comment."""
    line = 0
    for number, text in enumerate(program.read_text(encoding="utf-8").splitlines(), 1):
        if found := _EXPECTED.fullmatch(text.strip()):
            yield Diagnostic(found[1], f"{program.parent.name}/{program.name}", line, found[2])
        else:
            line = number


def check(project: Path, cache: Path) -> list[Diagnostic]:
    """Copy all programs into a project of their own, outside of this repository, and return what the type checkers report.

    Args:
        project: a folder to make.
        cache: where mypy keeps what it knows of libraries from run to run.
    """
    for kind in ("valid", "invalid"):
        shutil.copytree(FOLDER / kind, project / kind, ignore=shutil.ignore_patterns("__pycache__"))
    # An installed package is found where Python finds it. A checkout is named, as it may be another one than the installed one.
    root = Path(webnn_wgpu.__file__).parents[1]
    checkout = root not in [Path(folder) for folder in site.getsitepackages()]
    paths = [str(root)] * checkout
    settings = {
        "include": ["valid", "invalid"],
        "typeCheckingMode": "strict",
        "extraPaths": paths,
        # What is unknown after an error would be reported once more where it is used.
        "executionEnvironments": [{"root": "invalid", "extraPaths": paths} | dict.fromkeys(_UNKNOWN, False), {"root": "."}],
    }
    (project / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    lines = ["[mypy]", "strict = True", f"cache_dir = {cache}", *[f"mypy_path = {root}"] * checkout]
    # Errors within a checkout are not reported either, as they are not in an installed package.
    lines += ["[mypy-webnn_wgpu.*]", "follow_imports = silent", ""]
    (project / "mypy.ini").write_text("\n".join(lines), encoding="utf-8")
    running = [
        _start(project, "pyright", "--outputjson", "--pythonpath", sys.executable),
        _start(project, "mypy", "--output", "json", "--config-file", "mypy.ini", "valid", "invalid"),
    ]
    (pyright, pyright_errors), (mypy, mypy_errors) = (process.communicate() for process in running)
    assert pyright.startswith("{"), f"pyright: {pyright}{pyright_errors}"
    assert running[1].returncode in (0, 1), f"mypy: {mypy}{mypy_errors}"
    return [*_of_pyright(json.loads(pyright), project), *_of_mypy(mypy)]


def _start(project: Path, module: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", module, *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    return subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def _of_pyright(report: dict[str, list[dict[str, object]]], project: Path) -> Iterator[Diagnostic]:
    for found in report["generalDiagnostics"]:
        if found["severity"] == "error":
            program = Path(str(found["file"])).resolve().relative_to(project.resolve()).as_posix()
            line: int = found["range"]["start"]["line"]  # type: ignore[index]
            yield Diagnostic("pyright", program, line + 1, str(found["message"]))


def _of_mypy(report: str) -> Iterator[Diagnostic]:
    for text in report.splitlines():
        found = json.loads(text)
        if found["severity"] == "error":
            yield Diagnostic("mypy", Path(found["file"]).as_posix(), found["line"], found["message"])
