"""Whatever an operator is called with, it refuses what it cannot take, says why, and leaves the builder as it was."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from tests.specification import operators
from tests.support import with_repository

from .calls import BASES, PRESENT, Workplace
from .misuse import misuses
from .refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEP = 8
"""Of so many invalid uses one is tried in a process of its own."""

PATIENCE = 300
"""Seconds after which a process hangs. It takes two or three."""

LEAST = 1000
"""How many invalid uses there must be."""


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


@pytest.mark.parametrize("op", PRESENT)
def test_invalid_uses_are_refused(reference: wn.MLContext, op: str) -> None:
    place = Workplace(reference)
    problems = [f"{m.what}: {problem}" for m in misuses(operators()[op]) if (problem := refusal_of(place, m))]
    assert problems == []
    made = place.call(op, **place.values(BASES[op]))
    place.builder.build({"y": made[0] if isinstance(made, list) else made})


def test_there_are_enough_invalid_uses() -> None:
    counts = {op: sum(1 for _ in misuses(operators()[op])) for op in PRESENT}
    assert min(counts.values()) >= LEAST // 100
    assert sum(counts.values()) >= LEAST


@pytest.mark.device
def test_no_invalid_use_crashes_or_hangs(repository: Path) -> None:
    command = [sys.executable, "-m", "tests.checks.sample", str(STEP), str(PATIENCE)]
    environment = with_repository(repository)
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tried = int(done.stdout.split()[-1])
    assert tried == -(-sum(1 for op in PRESENT for _ in misuses(operators()[op])) // STEP)
    assert tried >= LEAST
