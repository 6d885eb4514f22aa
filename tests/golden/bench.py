"""The models of the benchmark, which are too large for the repository: golden models where they are at hand.

The environment variable `BENCH_MODELS` names their folder, as it does for the benchmark itself.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "BENCH_MODELS"


def folder() -> Path | None:
    """Return the folder of the models; None where the variable is not set or names none."""
    found = Path(os.environ.get(VARIABLE, ""))
    return found if VARIABLE in os.environ and found.is_dir() else None


def names() -> list[str]:
    """Return the names of the models that are there."""
    found = folder()
    return sorted(path.stem for path in found.glob("*.onnx")) if found else []


def path(name: str) -> Path:
    """Return the file of a model; an absolute path, since workers run in another folder."""
    return Path(os.environ[VARIABLE]).resolve() / f"{name}.onnx"


def version(name: str) -> str:
    """Return what differs between two versions of a model's file."""
    found = path(name).stat()
    return f"{found.st_size:x}-{found.st_mtime_ns:x}"


def note() -> str:
    """Return a line about the models: how many there are, or how to have them."""
    if count := len(names()):
        return f"models of the benchmark: {count}, from {VARIABLE}"
    return f"models of the benchmark: none; {VARIABLE} names the folder of their ONNX files"
