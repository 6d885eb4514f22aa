from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.rotation import SHARES, in_turn, part_of, profile_of, share_of_today
from tests.support import PROFILES


def test_shares_together_are_all_profiles_and_the_full_one_is_in_each() -> None:
    tests = [(f"test_{i}[{profile}]", profile) for i in range(100) for profile in (*PROFILES, None)]
    for test, profile in tests:
        turns = [share for share in range(1, SHARES + 1) if in_turn(test, profile, share)]
        assert len(turns) == (SHARES if profile in ("full", None) else 1)
        assert in_turn(test, profile, None) == (profile in ("full", None))
    sizes = [sum(in_turn(test, profile, share) for test, profile in tests) for share in range(1, SHARES + 1)]
    assert max(sizes) < 1.2 * min(sizes)


def test_repeated_tests_have_their_turn_too() -> None:
    for test in (f"test_{i}" for i in range(20)):
        turns = [share for share in range(1, SHARES + 1) if in_turn(test, None, share, repeats=True)]
        assert len(turns) == 1
        assert turns == [share for share in range(1, SHARES + 1) if in_turn(test, "f16-only", share, repeats=True)]
        assert not in_turn(test, None, None, repeats=True)


def test_parts_of_a_run_together_are_all_items() -> None:
    class Run:
        rootpath = Path()

        def __init__(self, share: int | None, profiles: str) -> None:
            self._options = {"--profile-share": share, "--profiles": profiles}

        def getoption(self, name: str) -> str | int | None:
            return self._options[name]

    items = range(10)
    parts = [part_of(cast("pytest.Config", Run(share, "full")), items, 3) for share in range(1, SHARES + 1)]
    assert {item for part in parts for item in part} == {*items}
    assert all(len(part) <= 4 for part in parts)
    assert part_of(cast("pytest.Config", Run(None, "all")), items, 3) == items


def test_the_profile_of_a_test_is_that_of_its_parameters() -> None:
    class Mode:
        profile = "f16-only"

    assert profile_of([3, "full"]) == "full"
    assert profile_of(["x", Mode()]) == "f16-only"
    assert profile_of([3, "x", "reference"]) is None


def test_the_commit_picks_the_share_and_it_can_be_asked_for(repository: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", "--profile-share=2"]
    found = subprocess.run(
        [*command, "tests/ops/test_triangular.py"], cwd=repository, capture_output=True, text=True, check=True
    )
    tests = [line for line in found.stdout.splitlines() if "::" in line]
    others = [test for test in tests for profile in PROFILES if profile != "full" and f"[{profile}" in test]
    assert others
    assert all(in_turn(test, "default-limits", 2) for test in others)
    assert [test for test in tests if "[full" in test]
    assert share_of_today(repository) == share_of_today(repository)


def test_without_a_commit_the_day_picks_the_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    share, why = share_of_today(tmp_path)
    assert 1 <= share <= SHARES
    assert why.startswith("day ")
