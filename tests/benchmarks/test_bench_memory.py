"""Memory of a process that builds, runs and destroys a graph a thousand times."""

from __future__ import annotations

import gc

import pytest

import webnn_wgpu as wn
from tests.benchmarks.results import Results
from tests.runtime.counting import count_objects, resident_bytes
from tests.runtime.test_memory import LIMIT_BYTES, life

ROUNDS, STEP, WARM_UP = 1000, 100, 100


@pytest.mark.bench
def test_memory_over_a_thousand_builds(context: wn.MLContext, results: Results) -> None:
    curve: list[int] = []
    for i in range(WARM_UP + ROUNDS + 1):
        if i >= WARM_UP and (i - WARM_UP) % STEP == 0:
            gc.collect()
            curve.append(resident_bytes())
        life(context)
    grown = [(size - curve[0]) / 1e6 for size in curve]
    print(
        f"\nbuild, run, destroy, {ROUNDS} times after {WARM_UP} to warm up: {curve[0] / 1e6:.1f} MB at the start; growth in MB"
    )
    print("  ".join(f"{i * STEP}: {mb:+.2f}" for i, mb in enumerate(grown)))
    results.add(
        "memory", "build, run, destroy", start_bytes=curve[0], grown_bytes=[size - curve[0] for size in curve], step=STEP
    )
    print("wgpu objects:", {name: count for name, count in count_objects().items() if count})
    assert curve[-1] - curve[0] < LIMIT_BYTES
