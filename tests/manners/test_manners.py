"""Using the package changes nothing that other code in the process can see, unless the program asks for it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import onnx
import pytest

from examples.models import mlp
from tests.support import with_repository

if TYPE_CHECKING:
    from pathlib import Path

OF_EACH_PROCESS = ("random numbers", "numpy's random numbers", "streams")
"""What differs from process to process."""


class Witness:
    """Runs `tests.manners.witness` in processes whose caches are empty, so that every kernel is compiled."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self._folder, self._repository = folder, repository
        self.model = str(folder / "mlp.onnx")
        onnx.save(mlp(), self.model)

    def __call__(self, *arguments: str) -> dict[str, Any]:
        caches = self._folder / "caches"
        shutil.rmtree(caches, ignore_errors=True)
        environment = with_repository(self._repository, XDG_CACHE_HOME=str(caches), MESA_SHADER_CACHE_DIR=str(caches / "mesa"))
        environment.pop("LP_NUM_THREADS", None)  # what the user has set the package would not set anyway
        done = subprocess.run(
            [sys.executable, "-W", "ignore::RuntimeWarning", "-m", "tests.manners.witness", *arguments],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Witness:
    return Witness(tmp_path_factory.mktemp("manners"), repository)


@pytest.fixture(scope="module")
def library(witness: Witness) -> dict[str, Any]:
    """A process that imports the package before the libraries it needs."""
    return witness("library", witness.model)


@pytest.fixture(scope="module")
def host(witness: Witness, library: dict[str, Any]) -> dict[str, Any]:
    """A process that imports the same libraries itself."""
    return witness("host", *library["modules"])


@pytest.fixture(scope="module")
def guest(witness: Witness) -> dict[str, Any]:
    """A process that has imported the libraries, and looked for adapters, when it imports the package."""
    return witness("guest", witness.model)


def comparable(state: dict[str, Any]) -> dict[str, Any]:
    """Return what two processes must have in common, with the addresses of objects left out."""
    text = json.dumps({key: value for key, value in state.items() if key not in OF_EACH_PROCESS})
    return json.loads(re.sub(r"0x[0-9a-f]+", "0x", text))


def test_no_step_changes_a_program_that_uses_wgpu_itself(guest: dict[str, Any]) -> None:
    assert guest["changes"] == {}


def test_nothing_is_changed_for_a_while(guest: dict[str, Any], library: dict[str, Any], host: dict[str, Any]) -> None:
    assert guest["passing"] == []
    assert set(library["passing"]) <= set(host["passing"])


def test_the_end_is_that_of_importing_the_libraries(library: dict[str, Any], host: dict[str, Any]) -> None:
    ours, theirs = comparable(library["state"]), comparable(host["state"])
    names = ours | theirs
    assert {name for name in names if ours.get(name) != theirs.get(name)} == set()


def test_only_python_and_declared_libraries_are_imported(guest: dict[str, Any], library: dict[str, Any]) -> None:
    assert guest["undeclared"] == []
    assert library["undeclared"] == []


def test_others_find_the_adapters_that_they_find_without_the_package(
    guest: dict[str, Any], library: dict[str, Any], host: dict[str, Any]
) -> None:
    before, after = guest["adapters"]
    assert before == after == library["adapters"] == host["adapters"] != []
