"""Which tests run of those that repeat others for other devices, modes and sizes: all of them, or a share.

A share is a fixed part of these tests; the commit picks which, so that a run can be repeated and every test has its turn.
"""

from __future__ import annotations

import datetime
import shutil
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.support import PROFILES

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

Item = TypeVar("Item")

SHARES = 24
"""Into how many shares the tests of the profiles other than the full one, and tests marked `repeats`, are divided."""


def profile_of(parameters: Iterable[object]) -> str | None:
    """Return the profile a test is repeated for: a parameter is its name, or has it as its attribute `profile`."""
    names = [getattr(parameter, "profile", parameter) for parameter in parameters]
    return next((name for name in names if isinstance(name, str) and name in PROFILES), None)


def in_turn(test: str, profile: str | None, share: int | None, *, repeats: bool = False) -> bool:
    """Return whether a test runs.

    Args:
        test: its name in full.
        profile: the profile it is repeated for; None where it is not.
        share: which of the shares has its turn, 1 to `SHARES`; None for no share, but the full profile alone.
        repeats: whether it repeats another test in another mode, which its marker `repeats` says.
    """
    if profile in (None, "full") and not repeats:
        return True
    return share is not None and zlib.crc32(test.encode()) % SHARES == share - 1


def first_of(values: Iterable[object]) -> list[ParameterSet]:
    """Return values as parameters of a test, of which those behind the first repeat it in another mode."""
    return [pytest.param(value, marks=[pytest.mark.repeats] if i else []) for i, value in enumerate(values)]


def share_of(config: pytest.Config) -> tuple[int | None, str]:
    """Return the share that a run has, None where there is no rotation, and a line about it."""
    share: int | None = config.getoption("--profile-share")
    profiles: str = config.getoption("--profiles")
    if share is not None:
        return share, f"full, and share {share} of {SHARES} of the others' tests"
    if profiles == "rotate":
        share, why = share_of_today(config.rootpath)
        return share, f"full, and share {share} of {SHARES} of the others' tests, by {why} (again: --profile-share={share})"
    return None, profiles


def runs(config: pytest.Config, test: str, profile: str | None, *, repeats: bool) -> bool:
    """Return whether a run has a test, as `in_turn` does."""
    share, profiles = share_of(config)
    return profiles == "all" or in_turn(test, profile, share, repeats=repeats)


def part_of(config: pytest.Config, items: Sequence[Item], parts: int) -> Sequence[Item]:
    """Return the part of the items of a test that a run looks at: one of `parts`, which the commit picks, or all items.

    For a test that looks at many items of one kind, such as kernels, and whose time they make up.
    """
    share, profiles = share_of(config)
    return items if share is None and profiles == "all" else items[(share or 0) % parts :: parts]


@cache
def share_of_today(repository: Path, shares: int = SHARES) -> tuple[int, str]:
    """Return the share that has its turn, 1 to `shares`, and what picked it: the commit checked out, or else the day."""
    git = shutil.which("git")
    if git is not None:
        command = [git, "-C", str(repository), "rev-parse", "HEAD"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            commit = found.stdout.strip()
            return int(commit[:8], 16) % shares + 1, f"commit {commit[:8]}"
    day = datetime.date.today()
    return day.toordinal() % shares + 1, f"day {day}"
