"""Nothing that a program does to what it shares with a context ends the process inside wgpu-native."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .abuses import ABUSES

if TYPE_CHECKING:
    from tests.programs import Programs


@pytest.mark.parametrize("name", ABUSES)
def test_abuse(name: str, programs: Programs) -> None:
    done = programs.run(["-m", "tests.interop.abuses", name])
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("alive\n"), done.stdout
