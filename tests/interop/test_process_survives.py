"""Nothing that a program does to what it shares with a context ends the process inside wgpu-native."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import with_repository

from .abuses import ABUSES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ABUSES)
def test_abuse(name: str, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.abuses", name],
        cwd=repository,
        env=with_repository(repository),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("alive\n"), done.stdout
