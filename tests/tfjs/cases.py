"""Layers models with what TensorFlow.js made of them: a few in the repository, and all where the optional data are there."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.optional import REPOSITORY, TFJS

TOLERANCE = 1e-4
"""The largest difference, of the largest number."""


def cases(file: str) -> list[dict[str, Any]]:
    """Return the cases of a file, those of the optional data if they are there."""
    folder = TFJS.folder() or REPOSITORY / "tests" / "data" / "tfjs"
    return json.loads((folder / file).read_text())["cases"]


def array_of(entry: dict[str, Any]) -> np.ndarray:
    """Return a tensor of a case."""
    numbers = [float(v) if isinstance(v, str) else v for v in entry["data"]]
    return np.array(numbers, entry["dtype"]).reshape(entry["shape"])


def written(case: dict[str, Any], folder: Path) -> Path:
    """Write the model of a case, and return the path of its model.json."""
    (folder / "model.json").write_text(json.dumps(case["artefact"]))
    (folder / "weights.bin").write_bytes(base64.b64decode(case["weights"]))
    return folder / "model.json"


def distance(result: Any, expected: Any) -> float:
    """Return the largest difference of two arrays, of the largest expected number; infinite where they are not alike."""
    result, expected = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(expected)
    if result.shape != expected.shape or not np.array_equal(np.isfinite(result), finite):
        return float("inf")
    if not np.array_equal(result[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    return float(np.abs(result - expected)[finite].max(initial=0) / max(np.abs(expected[finite]).max(initial=0), 1e-9))
