"""Kinds of model files that their suffixes do not tell apart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

MOST_TEXT = 1 << 28
"""The maximum size of the model.json of a TensorFlow.js model, in bytes."""


def is_tfjs(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is the model.json of a TensorFlow.js model, by its content."""
    place = Path(path)
    if place.suffix.lower() != ".json" or not place.is_file() or place.stat().st_size > MOST_TEXT:
        return False
    data = place.read_bytes()
    if b'"modelTopology"' not in data:
        return False
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "modelTopology" in document
