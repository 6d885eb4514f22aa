"""Run Keras's own tests on a backend, and print the counts of each file beside those of JAX.

    python -m tests.keras.suite                           the files of PLACES on the backend "webnn"
    python -m tests.keras.suite ops/nn_test.py            some of them
    python -m tests.keras.suite --device webgpu           on a GPU instead of the reference backend
    python -m tests.keras.suite --backend jax --outcomes folder   record another backend

The tests are those in the installed package of Keras. They need `jax`, whose types of results they compare with, and some of
them `tensorflow`, `torch` and `grain`. `KERAS_LOGS` names a folder for the output of pytest.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "jax_counts.json"
"""Passed tests of each file on Keras's JAX backend, at most: those that pass here were not run there."""

PLACES = (
    "ops",
    "layers",
    "optimizers",
    "trainers",
    "activations",
    "losses",
    "metrics",
    "initializers",
    "regularizers",
    "constraints",
    "models",
    "random",
    "callbacks",
    "saving",
    "backend/common",
    "backend/tests",
)
"""Files and folders of Keras's sources whose tests run by default."""


def sources() -> Path:
    """Return the folder of Keras's sources. Keras itself is not imported."""
    found = find_spec("keras")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "src"


def files(places: list[str]) -> list[str]:
    """Return the test files below places, relative to the sources."""
    root = sources()
    found: list[str] = []
    for place in places:
        path = root / place
        found += [str(each.relative_to(root)) for each in (sorted(path.rglob("*_test.py")) if path.is_dir() else [path])]
    return found


def run(file: str, backend: str, device: str, seconds: int) -> dict[str, str]:
    """Run a test file in a process of its own; return the outcome of each test."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes.json"
        environment = {
            **os.environ,
            "KERAS_OUTCOMES": str(outcomes),
            "KERAS_OWN_BACKEND": backend,
            "KERAS_OWN_DEVICE": device,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "JAX_PLATFORMS": "cpu",
        }
        environment.pop("KERAS_BACKEND", None)
        if backend != "webnn":
            environment["KERAS_BACKEND"] = backend
        plugins = ["-p", "tests.keras.outcomes", "-p", "no:cacheprovider", "-p", "no:webnn_wgpu"]
        options = ["-q", "--tb=short", "-o", "addopts=", "-W", "ignore", "--rootdir", folder, *plugins]
        command = [sys.executable, "-m", "pytest", *options, str(sources() / file)]
        log = Path(os.environ.get("KERAS_LOGS", folder)) / f"{backend}-{file.replace('/', '-')}.log"
        with log.open("w") as written, contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, cwd=folder, stdout=written, stderr=written, timeout=seconds, check=False)
        return json.loads(outcomes.read_text()) if outcomes.exists() else {}


def main() -> None:
    """Run the files and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", default=list(PLACES))
    parser.add_argument("--backend", default="webnn")
    parser.add_argument("--device", default="reference", choices=("reference", "webgpu"))
    parser.add_argument("--outcomes", type=Path, help="a folder for a JSON file of outcomes per test file")
    parser.add_argument("--seconds", type=int, default=1800, help="limit for each file")
    arguments = parser.parse_args()
    recorded: dict[str, int] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    total, wanted = 0, 0
    for file in files(arguments.places):
        outcomes = run(file, arguments.backend, arguments.device, arguments.seconds)
        counts = Counter(outcomes.values())
        total, wanted = total + counts["passed"], wanted + recorded.get(file, 0)
        print(f"{file:60} {dict(counts)}, JAX {recorded.get(file, '?')}", flush=True)
        if arguments.outcomes is not None:
            arguments.outcomes.mkdir(parents=True, exist_ok=True)
            (arguments.outcomes / f"{file.replace('/', '-')}.json").write_text(json.dumps(outcomes, indent=0, sort_keys=True))
    print(f"{total} passed, {wanted} with JAX")


if __name__ == "__main__":
    main()
