"""Whole models: what a run takes, and a process from its start to its first result, with caches on disk and without.

Measured are the models of `examples/models.py`, and every `NAME.onnx` in the folder that BENCH_MODELS names; random numbers
are their inputs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import webnn_wgpu as wn
from examples import models
from tests.benchmarks.first_result import feeds_of
from tests.benchmarks.results import Results

RUNS = 20

MAKERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": models.mlp,
    "mobilenet_v2, small": lambda: models.mobilenet_v2(size=96, width=32),
    "bert, 4 layers of 128": lambda: models.bert(layers=4, width=128),
}
FILES = sorted(Path(os.environ["BENCH_MODELS"]).glob("*.onnx")) if "BENCH_MODELS" in os.environ else []


@pytest.fixture(params=[*MAKERS, *FILES], ids=lambda param: getattr(param, "stem", param))
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if isinstance(request.param, Path):
        return request.param
    made = tmp_path / f"{request.param}.onnx"
    onnx.save(MAKERS[request.param](), made)
    return made


@pytest.mark.bench
def test_a_run(file: Path, context: wn.MLContext, results: Results) -> None:
    with wn.load(file, context) as model:
        feeds = feeds_of(model)
        model.run(feeds)
        walls: list[float] = []
        cpu = time.process_time()
        for _ in range(RUNS):
            begin = time.perf_counter()
            model.run(feeds)
            walls.append((time.perf_counter() - begin) * 1e3)
        cpu = (time.process_time() - cpu) * 1e3 / RUNS
        profile = model.profile(feeds)
        plan = model.graph.plan
        assert plan is not None
        results.add(
            "models",
            file.stem,
            median_ms=float(np.median(walls)),
            best_ms=min(walls),
            cpu_ms=cpu,
            gpu_ms=profile.gpu_ms,
            dispatches=len(plan.dispatches),
            shaders=len({d.spec for d in plan.dispatches}),
            device_bytes=plan.total_bytes,
            slot_bytes=plan.slot_bytes,
            unshared_bytes=plan.unshared_bytes,
        )


@pytest.mark.bench
def test_a_first_result(file: Path, tmp_path: Path, results: Results) -> None:
    """A process with empty caches, the driver's included, and another one after it."""
    caches = {name: str(tmp_path / "caches") for name in ("XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR")}
    figures: dict[str, float] = {}
    for which in ("cold", "warm"):
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.first_result", str(file)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, **caches},
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        figures |= {f"{which}_wall_s": time.perf_counter() - begin}
        figures |= {f"{which}_{name}": value for name, value in found.items()}
    results.add("cold start", file.stem, **figures)
